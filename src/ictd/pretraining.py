"""Pretraining by multi-task TD (Algorithm 1) and multi-task MC (Algorithm 2).

One update is made for each task.  With the batch S_0, R_1, ..., S_b of a task, and with estimates TF_L on its
enumerated prompt, the parameters theta = (u, A) move along

    (1/b) sum_t delta_t grad TF_L(S_t),

by Adam, where delta_t is R_{t+1} + gamma TF_L(S_{t+1}) - TF_L(S_t) for TD and G_t - TF_L(S_t) for MC.

``ictd.engine`` carries out the updates with compiled kernels, ``ictd.torch_twin`` with automatic differentiation on
whole prompts.
"""

import logging
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

import numpy as np

from ictd.algorithms import ALGORITHMS
from ictd.checks import (
    ArrayLike,
    Count,
    Discount,
    Flag,
    NotNegative,
    Positive,
    Seeds,
    choice,
    equal_fields,
    instance,
    integers,
    refuse,
    validate,
)
from ictd.engine import Engine
from ictd.mrp import Tasks, msve, value_function
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.training_data import (
    BLOCK,
    Block,
    Distribution,
    EnumeratedPrompts,
    SampledPrompts,
    enumerated_prompts,
    training_blocks,
)
from ictd.transformer import Model, Weights, initial_weights

ENGINES = ("compiled", "torch")
Target = Annotated[str, choice(ALGORITHMS)]
# Seconds between progress messages.
PROGRESS_SECONDS = 10
# A pretrained model is compared with zero on the first tasks, with contexts of these lengths unless pretraining had
# others.
COMPARED_TASKS, COMPARED_PROMPTS = 200, SampledPrompts(5, 100)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class History:
    """Snapshots and estimates of one pretraining run.

    Parameters
    ----------
    tasks_seen : (K,) int array
        Numbers of tasks after which snapshots were taken, ascending; the last is the number of all tasks.
    weights : Weights with a leading axis of K snapshots
    estimates : (N, n) array
        Value estimates for each task just before its update.
    """

    tasks_seen: np.ndarray
    weights: Weights
    estimates: np.ndarray

    __eq__ = equal_fields


class Divergence(ArithmeticError):
    """A parameter or a value estimate is not finite.

    Attributes
    ----------
    task : int
        Number, from 1, of the first task whose estimates or update are not finite.
    history : History
        Snapshots and estimates before that task; later entries are NaN.
    """

    def __init__(self, task: int, history: History):
        super().__init__(f"parameters or values stop being finite at task {task} of {len(history.estimates)}")
        self.task, self.history = task, history


@validate
def pretrain_history(
    tasks: Annotated[Tasks, instance(Tasks, reward="N, n")],
    batches: Annotated[BatchStatistics, instance(BatchStatistics, visits="N, n")],
    algo: Annotated[str, choice(ALGORITHMS)],
    depth: Count,
    discount: Discount,
    learning_rate: Positive,
    start: Annotated[Weights, instance(Weights, u="2d", A="2d, 2d")],
    engine: Annotated[str, choice(ENGINES)] = "compiled",
    tasks_seen: Annotated[ArrayLike, integers("K", 1)] | None = None,
    scaled: Flag = True,
) -> History:
    """Pretrain with one update for each task, and keep snapshots of the weights and all estimates.

    Parameters
    ----------
    tasks : Tasks, N of them with n states, in the order of the updates
    batches : BatchStatistics of these tasks
    algo : str, "td" (Algorithm 1), "mc" (Algorithm 2) or another registered algorithm (``register_algorithm``)
    depth : int, number of layers L
    discount : float, gamma in [0, 1), the one that the batches were drawn with
    learning_rate : float, Adam's alpha
    start : Weights of d features, the initial parameters
    engine : "compiled" (kernels) or "torch" (on whole prompts)
    tasks_seen : ascending int array that ends with N, optional
        Numbers of tasks after which to take snapshots.  By default there is one snapshot, after N tasks.
    scaled : bool
        Whether attention is divided by the context length n.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        If a name is unknown, shapes do not match, or a number is out of range.
    Divergence
        If a parameter or an estimate is not finite.  It has the history up to that task.
    """
    for name in ("u", "A"):
        refuse(f"start.{name}", ~np.isfinite(getattr(start, name)), "is not finite")
    refuse("batches.transitions", (batches.transitions > 0) & (tasks.transition == 0), "counts steps that cannot be")
    stops = _ascending([len(tasks)] if tasks_seen is None else tasks_seen, len(tasks))
    if start.dimension != tasks.dimension:
        raise ValueError(f"start has {start.dimension} features, and the tasks have {tasks.dimension}.")
    if engine == "compiled":
        make, prompts = Engine, enumerated_prompts(tasks, discount, scaled)
    else:
        from ictd.torch_twin import TorchEngine as make  # Importing torch takes seconds.

        prompts = EnumeratedPrompts().columns(tasks, discount)
    run = make(start, depth, discount, learning_rate, scaled)
    targets = ALGORITHMS[algo].targets(tasks, batches, discount)
    weights = _no_weights(start.dimension, len(stops))
    estimates, done = _train_with_snapshots(run, (tasks.reward, targets, prompts, tasks.features), stops, weights)
    history = History(stops, weights, estimates)
    if done < len(tasks):
        raise Divergence(done + 1, history)
    return history


@validate
def pretrain(
    tasks: Distribution,
    depth: Count,
    discount: Discount,
    prompts: EnumeratedPrompts | SampledPrompts | None = None,
    target: Target = "td",
    updates: Count = 20_000,
    seeds: Seeds = 0,
    learning_rate: Positive = 0.001,
    batch_size: Count = 64,
    rollout_steps: Count = 200,
    initial_gain: NotNegative = 0.1,
    clip: NotNegative = 0.0,
    progress: Flag = True,
) -> Model:
    """Pretrain Transformers on random tasks, one for each seed, with one update for each task.

    With the default arguments this is Algorithm 1 with the paper's settings (Table "hyperparameters").  Tasks are drawn
    in blocks, so memory does not grow with the number of updates.

    Parameters
    ----------
    tasks : TaskDistribution
    depth : int, number of layers L
    discount : float, gamma
    prompts : EnumeratedPrompts or SampledPrompts
        By default enumerated, as in the paper.
    target : str
        "td" (Algorithm 1), "mc" (Algorithm 2), "values" (the true values), "three_step_td", "td_lambda", or an
        algorithm of one's own (``register_algorithm``).
    updates : int, number of tasks
    seeds : int, or several of them
    learning_rate : float, Adam's alpha
    batch_size : int, b, number of steps of each task in an update
    rollout_steps : int, tau, number of rewards of a return of "mc"
    initial_gain : float, factor of the initial weights (``initial_weights``)
    clip : float
        Largest norm of a gradient; longer ones are shortened to it.  0 means no limit.
    progress : bool
        Whether to print the number of updates so far to the standard error stream.

    Returns
    -------
    Model
        With several seeds, its weights have a leading axis of seeds.  The weights of a seed that diverges are NaN.

    Raises
    ------
    ValueError
        If an argument has the wrong type or is out of range.

    Warns
    -----
    UserWarning
        If a model diverged, or its mean MSVE is above 1.1 times that of zero for all states, on sampled contexts of the
        first 200 tasks.  They have 5 to 100 steps, or the numbers of steps of ``prompts``.  ``ictd.evaluate`` compares
        in detail.

    Examples
    --------
    >>> import ictd
    >>> model = ictd.pretrain(
    ...     ictd.TaskDistribution("boyan", states=6, features=3), depth=5, discount=0.9,
    ...     prompts=ictd.SampledPrompts(5, 50), updates=2000, seeds=range(2), progress=False,
    ... )
    >>> model.weights.A.shape
    (2, 6, 6)
    """
    prompts = prompts or EnumeratedPrompts()
    sampled = prompts if isinstance(prompts, SampledPrompts) else COMPARED_PROMPTS
    several = np.ndim(seeds) > 0
    seeds = np.atleast_1d(seeds).tolist()
    weights, worse = [], 0
    with progress_bar(updates * len(seeds), progress) as bar:
        for seed in seeds:
            place = seed, tasks.name, tasks.states
            start = initial_weights(tasks.dimension, initial_gain, generator(*place, "weights"))
            engine = Engine(start, depth, discount, learning_rate, clip=clip)
            blocks = training_blocks(tasks, prompts, target, discount, updates, seed, batch_size, rollout_steps)
            first = next(blocks)
            weights.append(_final_weights(engine, chain([first], blocks), discount, seed, bar.update))
            model, rng = Model(weights[-1], depth, discount), generator(*place, "validation contexts")
            worse += _worse_than_zero(model, first.tasks[:COMPARED_TASKS], sampled, rng)
    if worse:
        scale = "scale rewards to about -1 to 1, and " if np.abs(first.tasks.reward).max() > 2 else ""
        warnings.warn(
            f"zero has a smaller MSVE than {worse} of {len(seeds)} models, on contexts of {sampled.shortest} to"
            f" {sampled.longest} sampled steps; {scale}pretrain with"
            " prompts=SampledPrompts(5, 100) and clip=1, or give context.grouped() to a model of enumerated prompts.",
            stacklevel=3,  # The caller of the function behind its validation.
        )
    u, A = (np.stack([getattr(one, name) for one in weights]) for name in ("u", "A"))
    return Model(Weights(u, A), depth, discount) if several else model


def progress_bar(updates: int, shown: bool):
    """A bar on the standard error stream, which is printed at most once a second."""
    from tqdm import tqdm  # The steps of the workflow do not need it.

    return tqdm(total=updates, unit=" updates", mininterval=1, disable=not shown)


def _worse_than_zero(model: Model, tasks: Tasks, prompts: SampledPrompts, rng: np.random.Generator) -> bool:
    """Whether a model diverged, or has a larger mean MSVE than zero, by more than a hardly trained one."""
    if np.isnan(model.weights.u).any():
        return True
    value = value_function(tasks.transition, tasks.reward, model.discount)
    with np.errstate(all="ignore"):
        estimate = model.values(prompts.contexts(tasks, rng), queries=tasks.features)
        error, zero = (msve(tasks.stationary, value, one).mean() for one in (estimate, 0 * value))
    return not error <= 1.1 * zero


def _final_weights(engine: Engine, blocks: Iterable[Block], discount: float, seed: int, advance: Callable) -> Weights:
    """Weights of one run after the updates of all blocks, or NaN after a divergence."""
    seen = 0
    for block in blocks:
        part = block.tasks.reward, block.targets, block.prompts(discount), block.tasks.features
        _, done = train_until_divergence(engine, *part)
        advance(len(block.tasks))
        if done < len(block.tasks):
            report_divergence(seed, seen + done + 1)
            return _no_weights(engine.dimension)
        seen += done
    return engine.weights()


def report_divergence(seed: int, update: int) -> None:
    """Log that estimates or parameters of a seed are not finite at an update, which has a number from 1."""
    logger.warning("seed %d diverged at update %d; its weights are NaN", seed, update)


def pretrain_runs(engines: list, draw: Callable[[int, list[int]], list[tuple]], tasks: int) -> list[Weights]:
    """Pretrain several runs on the same tasks, which are drawn in blocks, so memory does not grow with their number.

    Parameters
    ----------
    engines : list of Engines, one for each run, or of objects with their methods
    draw : function
        Takes a number of tasks and the indices of the runs that go on, and returns for each of these the arguments of
        ``Engine.train`` for the next tasks.
    tasks : int

    Returns
    -------
    list of Weights, those of each run after all tasks, NaN after a divergence
    """
    running = list(range(len(engines)))
    for first in range(0, tasks, BLOCK):
        size = min(BLOCK, tasks - first)
        blocks = draw(size, running) if running else []
        for run, block in zip(running, blocks, strict=True):
            _, done = train_until_divergence(engines[run], *block)
            if done < size:
                logger.warning("diverged at task %d", first + done + 1)
                running = [other for other in running if other != run]
    return [engine.weights() if run in running else _no_weights(engine.dimension) for run, engine in enumerate(engines)]


def train_until_divergence(engine, *block) -> tuple[np.ndarray, int]:
    """Make the updates of a block, and count those before the first with estimates or parameters that are not finite.

    Parameters
    ----------
    engine : Engine, or an object with its methods
    block : the arguments of ``Engine.train`` for N tasks

    Returns
    -------
    estimates : (N, n) array
        Value estimates just before each update; NaN for tasks that were not reached or whose estimates are not finite.
    updates : int, N without a divergence
    """
    estimates, updates = engine.train(*block)
    estimates[updates:] = np.nan
    weights = engine.weights()
    if updates > 0 and not (np.isfinite(weights.u).all() and np.isfinite(weights.A).all()):
        # The engine notices it by the estimates of the next task, if there is one.
        updates -= 1
    return estimates, int(updates)


def _train_with_snapshots(engine, block: tuple, seen: np.ndarray, weights: Weights) -> tuple[np.ndarray, int]:
    """Train on a block, and fill the snapshots of the weights after ``seen`` tasks.

    Returns the estimates and the number of updates, as ``train_until_divergence``.
    """
    estimates = np.full_like(block[0], np.nan)
    start, said = 0, time.monotonic()
    for i, stop in enumerate(seen.tolist()):
        part = (None if array is None else array[start:stop] for array in block)
        estimates[start:stop], done = train_until_divergence(engine, *part)
        if done < stop - start:
            return estimates, start + done
        start, current = stop, engine.weights()
        weights.u[i], weights.A[i] = current.u, current.A
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            logger.info("%d of %d tasks", stop, seen[-1])
    return estimates, start


def _no_weights(dimension: int, *lead: int) -> Weights:
    """Weights that are NaN, with leading axes."""
    width = 2 * dimension
    return Weights(np.full((*lead, width), np.nan), np.full((*lead, width, width), np.nan))


def _ascending(counts, tasks: int) -> np.ndarray:
    counts = np.asarray(counts, np.int64)
    if counts[-1] != tasks or (np.diff(counts, prepend=0) <= 0).any():
        raise ValueError(f"tasks_seen must ascend from at least 1 to the number of tasks, {tasks}.")
    return counts
