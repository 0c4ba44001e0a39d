"""Comparison of a model with baselines, on new tasks of any distribution and on prompts as in pretraining."""

from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from ictd.baselines import BASELINES, Given
from ictd.checks import Count, Flag, abbreviated, integer, validate
from ictd.context import Context
from ictd.evaluation import SolvedTasks, baseline_msve, factor_scores
from ictd.mrp import TaskDistribution, Tasks, value_function
from ictd.rng import generator
from ictd.statistics import log_spaced, standard_error
from ictd.training_data import Distribution, EnumeratedPrompts, SampledPrompts

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
        width = max(map(len, ["MSVE", *self]))
        rows = [(name, *(f"{number:.4g}" for number in score)) for name, score in self.items()]
        rows.insert(0, ("MSVE", "mean", "median", "standard error"))
        return "\n".join(f"{name:{width}}" + "".join(f"{cell:>15}" for cell in cells) for name, *cells in rows)


def with_values(name: str, value: object, sizes: dict) -> object:
    """Validate a model, or another object that has what is read of a model."""
    missing = [needed for needed in ("values", "discount", "depth") if not hasattr(value, needed)]
    if missing:
        raise ValueError(f"{name} is {abbreviated(value)}, which has no {' and no '.join(missing)}; give a Model.")
    return value


@validate
def evaluate(
    model: Annotated[Any, with_values],
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
        Several models, such as seeds, have one row each.  Any other object with ``values(context, queries)`` as in
        ``Model``, ``discount`` and ``depth`` is a model, too.
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
    tuning, shown = _drawn(tasks, prompts, model.discount, size, seed, "tuning")
    scores = factor_scores(BASELINES["theta_td"], tuning, [_featured(shown, tuning.tasks)], given, STEP_SIZES)
    given = replace(given, factors={"theta_td": STEP_SIZES[scores.argmin()]})
    data, shown = _drawn(tasks, prompts, model.discount, size, seed, "validation")
    values_only = SolvedTasks(_one_hot(data.tasks), data.value)
    baselines = baseline_msve(("zero", "constant"), values_only, [shown], given)
    baselines |= baseline_msve(("lstd", "theta_td"), data, [_featured(shown, data.tasks)], given)
    with np.errstate(over="ignore", invalid="ignore"):
        read = _featured(shown.grouped() if grouped else shown, data.tasks)
        own = values_only.error(model.values(read, queries=data.tasks.features))
        errors = {f"model{[*i] or ''}": own[i] for i in np.ndindex(own.shape[:-1])}
        errors |= {name: error for name, (error,) in baselines.items()}
        return Scores(
            {
                name: Score(float(error.mean()), float(np.median(error)), float(standard_error(error)))
                for name, error in errors.items()
            }
        )


def _drawn(
    tasks: TaskDistribution,
    prompts: EnumeratedPrompts | SampledPrompts,
    discount: float,
    size: int,
    seed: int,
    stream: str,
) -> tuple[SolvedTasks, Context]:
    """Tasks and their contexts, with one-hot features."""
    place = seed, tasks.name, tasks.states
    drawn = tasks.sample(size, generator(*place, stream))
    context = prompts.contexts(_one_hot(drawn), generator(*place, f"{stream} contexts"))
    return SolvedTasks(drawn, value_function(drawn.transition, drawn.reward, discount)), context


def _one_hot(tasks: Tasks) -> Tasks:
    return Tasks.unchecked(**{name: field for name, field in vars(tasks).items() if name != "features"})


def _featured(context: Context, tasks: Tasks) -> Context:
    return context if tasks.features is None else context.with_features(tasks.features)
