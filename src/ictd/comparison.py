"""Comparison of a model with baselines, on new tasks of any distribution and on prompts as in pretraining."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np

from ictd.baselines import BASELINES, Given, constant_estimate
from ictd.checks import Count, Flag, integer, validate
from ictd.context import Context
from ictd.mrp import Tasks, msve, value_function
from ictd.rng import generator
from ictd.statistics import log_spaced, mean_score, standard_error
from ictd.training_data import Distribution, EnumeratedPrompts, SampledPrompts
from ictd.transformer import Model

# The ridge of LSTD, and candidates for the step size of theta^TD, as in config.yaml.
RIDGE, STEP_SIZES = 0.01, log_spaced(smallest=0.2, largest=10, number=25)


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


@validate
@np.errstate(over="ignore", invalid="ignore")
def evaluate(
    model: Model,
    tasks: Distribution,
    prompts: EnumeratedPrompts | SampledPrompts,
    grouped: Flag = False,
    size: Count = 1000,
    seed: Annotated[int, integer(0)] = 0,
) -> Scores:
    """Compare a model with zero, one constant, LSTD and theta^TD, by the MSVE on the same contexts of new tasks.

    The baselines are those of the workflow: ``constant`` is the mean observed reward divided by 1 - gamma
    (``constant_estimate``), ``lstd`` has the ridge 0.01, and ``theta_td`` has the discount and the number of layers of
    the model.  Its step size is that of 25 from 0.2 to 10 with the least mean MSVE on as many other tasks.

    Parameters
    ----------
    model : Model
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
    given = Given(model.discount, model.depth, RIDGE, scaled=True, factors={})

    def drawn(stream: str) -> tuple[Context, np.ndarray, Callable]:
        """One-hot contexts of new tasks, features of the states, and the MSVE as a function of estimates."""
        place = seed, tasks.name, tasks.states
        new = tasks.sample(size, generator(*place, stream))
        one_hot = Tasks.unchecked(**vars(new) | {"features": None})
        steps = prompts.contexts(one_hot, generator(*place, f"{stream} contexts"))
        value = value_function(new.transition, new.reward, model.discount)
        phi = np.eye(tasks.states) if new.features is None else new.features
        return steps, phi, partial(msve, new.stationary, value)

    steps, phi, errors = drawn("tuning")
    w = BASELINES["theta_td"].tuned(steps.with_features(phi), given, STEP_SIZES)  # (k, d, K) for K step sizes.
    scores = mean_score(errors(np.moveaxis(phi @ w, -1, 0)))
    given.factors["theta_td"] = STEP_SIZES[scores.argmin()]

    steps, phi, errors = drawn("validation")
    context, read = (one.with_features(phi) for one in (steps, steps.grouped() if grouped else steps))
    own = model.values(read, queries=phi)
    values = {f"model{[*i] or ''}": own[i] for i in np.ndindex(own.shape[:-2])}
    values["zero"], values["constant"] = np.zeros_like(steps.b), constant_estimate(steps, model.discount)
    values |= {name: np.matvec(phi, BASELINES[name].estimate(context, given)) for name in ("lstd", "theta_td")}
    summaries = np.mean, np.median, standard_error
    found = {name: errors(estimate) for name, estimate in values.items()}
    return Scores({name: Score(*(float(of(error)) for of in summaries)) for name, error in found.items()})
