"""Comparison of a model with baselines, on new tasks of any distribution and on prompts as in pretraining."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from ictd.baselines import BASELINES, Given, constant_estimate
from ictd.checks import Count, Discount, Flag, abbreviated, integer, validate
from ictd.context import Context
from ictd.mrp import Tasks, msve, value_function
from ictd.prompt import state_features
from ictd.rng import generator
from ictd.statistics import log_spaced, mean_score, standard_error
from ictd.training_data import Block, Distribution, EnumeratedPrompts, SampledPrompts
from ictd.transformer import Model

# The ridge of LSTD, and candidates for the step size of theta^TD, as in config.yaml.
RIDGE, STEP_SIZES = 0.01, log_spaced(smallest=0.2, largest=10, number=25)
# Number of layers of theta^TD beside a module that does not say its own.
DEPTH = 30


class Score(NamedTuple):
    """Mean and median of the MSVE over tasks, and the standard error of the mean."""

    mean: float
    median: float
    standard_error: float


class Scores(dict[str, Score]):
    """Scores of estimates by their names, which are printed as a table."""

    def __repr__(self) -> str:
        rows = {"MSVE": Score._fields} | {name: [f"{number:.4g}" for number in score] for name, score in self.items()}
        return "\n".join(f"{name:12}" + "".join(f"{cell:>15}" for cell in cells) for name, cells in rows.items())


def model_or_modules(name: str, value: object, sizes: dict) -> object:
    """Validate a Model, a module of torch or a list of modules, without importing torch."""
    modules = value if isinstance(value, list) and value else [value]
    if not isinstance(value, Model) and not all(hasattr(one, "state_dict") for one in modules):
        raise ValueError(f"{name} is {abbreviated(value)}; give a Model, a module of torch, or a list of modules.")
    return value


@validate
@np.errstate(over="ignore", invalid="ignore")
def evaluate(
    model: Annotated[Any, model_or_modules],
    tasks: Distribution,
    prompts: EnumeratedPrompts | SampledPrompts,
    grouped: Flag = False,
    size: Count = 1000,
    seed: Annotated[int, integer(0)] = 0,
    discount: Discount | None = None,
    columns: Flag = False,
) -> Scores:
    """Compare a model with zero, one constant, LSTD and theta^TD, by the MSVE on the same contexts of new tasks.

    The baselines are those of the workflow: ``constant`` is the mean observed reward divided by 1 - gamma
    (``constant_estimate``), ``lstd`` has the ridge 0.01, and ``theta_td`` has the discount and the number of layers of
    the model.  Its step size is that of 25 from 0.2 to 10 with the least mean MSVE on as many other tasks.

    Parameters
    ----------
    model : Model, or what ``pretrain_attention`` takes: a module or a list of modules
        Several models, such as seeds, have one row each.
    tasks : TaskDistribution
    prompts : EnumeratedPrompts or SampledPrompts
    grouped : bool
        Whether the model reads one column for each state in place of one for each step (``Context.grouped``), as after
        pretraining on enumerated prompts.  The baselines read the same steps.
    size : int, number of tasks
        Memory grows with this number, and with the square of the number of states.
    seed : int
        Seed of tasks and contexts, in other random number streams than those of pretraining.
    discount, columns : float and bool, for modules only
        Gamma, and whether modules read whole columns, as in ``pretrain_attention``.  ``theta_td`` then has as many
        layers as the attribute ``depth`` of a module says, or 30.  Modules run in the mode that they are in; those with
        dropout need ``module.eval()`` before.

    Returns
    -------
    Scores
        A dict of rows by name, with ``mean``, ``median`` and ``standard_error`` over tasks.  It is printed as a table.

    Raises
    ------
    ValueError
        If an argument has the wrong type or is out of range, or the model has another number of features.

    Examples
    --------
    >>> import ictd
    >>> model = ictd.Model(ictd.theta_td(3), depth=100, discount=0.9)
    >>> scores = ictd.evaluate(model, ictd.TaskDistribution("loop", states=3), ictd.SampledPrompts(5, 100), size=200)
    >>> list(scores)
    ['model', 'zero', 'constant', 'lstd', 'theta_td']
    >>> scores["theta_td"].mean < scores["model"].mean < scores["zero"].mean
    True
    """
    if isinstance(model, Model):
        if discount is not None or columns:
            raise ValueError("discount and columns are for modules of torch; a Model has its own discount.")
        discount, depth = model.discount, model.depth
    else:
        if discount is None:
            raise ValueError("discount is missing; give that of pretrain_attention, or a Model.")
        if grouped and columns:
            raise ValueError("grouped is for Gram matrices, and columns=True gives a column for each step.")
        one = model[0] if isinstance(model, list) else model
        depth = getattr(one, "depth", DEPTH)
    given = Given(discount, depth, RIDGE, scaled=True, factors={})

    def drawn(stream: str) -> tuple[Block, Context, np.ndarray, Callable]:
        """New tasks, their one-hot contexts, features of the states, and the MSVE as a function of estimates."""
        place = seed, tasks.name, tasks.states
        new = tasks.sample(size, generator(*place, stream))
        rng = generator(*place, f"{stream} contexts")
        steps = prompts.steps(new, rng) if isinstance(prompts, SampledPrompts) else None
        block = Block(new, None, None, steps)
        one_hot = replace(block, tasks=Tasks.unchecked(**vars(new) | {"features": None})).contexts
        value = value_function(new.transition, new.reward, discount)
        phi = state_features(new.states, new.features)
        return block, one_hot, phi, partial(msve, new.stationary, value)

    _, steps, phi, errors = drawn("tuning")
    w = BASELINES["theta_td"].tuned(steps.with_features(phi), given, STEP_SIZES)  # (k, d, K) for K step sizes.
    scores = mean_score(errors(np.moveaxis(phi @ w, -1, 0)))
    given.factors["theta_td"] = STEP_SIZES[scores.argmin()]

    block, steps, phi, errors = drawn("validation")
    context, read = (one.with_features(phi) for one in (steps, steps.grouped() if grouped else steps))
    if isinstance(model, Model):
        own = model.values(read, queries=phi)
    else:
        from ictd.attention import module_values  # Importing torch takes seconds.

        own = module_values(model, block, discount, columns)
    values = {f"model{[*i] or ''}": own[i] for i in np.ndindex(own.shape[:-2])}
    values["zero"], values["constant"] = np.zeros_like(steps.b), constant_estimate(steps, discount)
    values |= {name: np.matvec(phi, BASELINES[name].estimate(context, given)) for name in ("lstd", "theta_td")}
    summaries = np.mean, np.median, standard_error
    found = {name: errors(estimate) for name, estimate in values.items()}
    return Scores({name: Score(*(float(of(error)) for of in summaries)) for name, error in found.items()})
