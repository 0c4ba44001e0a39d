"""Training data on sampled contexts: tasks, the batches of their updates, and a context of each task.

The update for a task needs a target (TD's or MC's), a batch (sampled or infinitely large) and a prompt.  Runs with a
sampled batch and a column for each step of the context are named "td" and "mc".  The prefix "expected_" stands for
infinitely large batches, "grouped_" for the grouped columns of the same contexts (``ictd.prompt.Context.grouped``), and
"enumerated_" for the enumerated prompts of the same tasks.
"""

from collections.abc import Callable, Iterable

import numpy as np

from ictd.mrp import Tasks, sample_tasks, truncation_bias, value_function
from ictd.prompt import Context
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll
from ictd.training_data import sample_contexts
from studies.sampled_prompts.grid import ENUMERATED, GROUPED


def algorithm(target: str) -> str:
    """The algorithm, "td" or "mc", of a kind of run."""
    return target.split("_")[-1]


def batch_kind(target: str) -> str:
    """The kind of batch of a kind of run: its name without the format of prompts."""
    return target.removeprefix(GROUPED).removeprefix(ENUMERATED)


def prompt_format(target: str) -> str:
    """The format of the prompts of a kind of run: GROUPED, ENUMERATED, or "" for a column for each step."""
    return target.removesuffix(batch_kind(target))


def training_prompts(format: str, tasks: Tasks, context: Context, discount: float) -> np.ndarray:
    """The prompts of N tasks and their contexts in one format, for ``ictd.engine.Engine.train``."""
    if format == ENUMERATED:
        return tasks.transition
    return (context.grouped() if format == GROUPED else context).gram_matrix(discount)


def expected_batches(tasks: Tasks, discount: float, rollout_steps: int) -> BatchStatistics:
    """Compute the statistics of infinitely large batches, divided by the batch size.

    With the stationary distribution mu, they are visits mu(s), transitions mu(s) p(s' | s), and return sums mu(s)
    E[G~(s)].  Updates by TD and MC then differ only in their targets.  The update uses the expectation of the gradient
    for a given task and context, before clipping.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    discount : float, gamma
    rollout_steps : int, tau, after which returns are truncated

    Returns
    -------
    BatchStatistics of N tasks, with shares in place of counts
    """
    mu = tasks.stationary
    value = value_function(tasks.transition, tasks.reward, discount)
    returns = value + truncation_bias(tasks.transition, value, discount, rollout_steps)
    transitions = mu[..., None] * tasks.transition
    return BatchStatistics.unchecked(visits=mu, transitions=transitions, return_sums=mu * returns)


def training_data(
    env: str,
    states: int,
    seed: int,
    lengths: list[int],
    discount: float,
    batch_size: int,
    rollout_steps: int,
    **options,
) -> Callable[[int, Iterable[str]], tuple[Tasks, Context, dict[str, BatchStatistics]]]:
    """Make a function that samples the next tasks of a seed, with their contexts, and their batches for some targets.

    All targets have the same tasks and contexts.

    Parameters
    ----------
    env : str, environment of the tasks
    states : int, n
    seed : int
    lengths : list of two ints
        Least and greatest length of a context; the length is uniform between the two.
    discount : float, gamma
    batch_size : int, b
    rollout_steps : int, tau
    **options : options of the environment

    Returns
    -------
    draw : function
        Takes a number of tasks N and targets, and returns Tasks, Context and, by target, BatchStatistics of N tasks.
        The batches of a target do not depend on the other targets.
    """
    names = ("tasks", "lengths", "contexts")
    streams = {name: generator(seed, env, states, f"agent {name}") for name in names}
    # TD does not use returns.  Sampling them takes most of the time.
    steps = {"td": 1, "mc": rollout_steps}
    unroll_streams = {algo: generator(seed, env, states, "agent unrolls") for algo in steps}

    def draw(size: int, targets: Iterable[str]) -> tuple[Tasks, Context, dict[str, BatchStatistics]]:
        tasks = sample_tasks(env, states, size, streams["tasks"], **options)
        context_lengths = streams["lengths"].integers(lengths[0], lengths[1], size, endpoint=True)
        context = sample_contexts(tasks, context_lengths, streams["contexts"])
        batches = {}
        for target in set(targets):
            if target in steps:
                batches[target] = unroll(tasks, batch_size, discount, steps[target], unroll_streams[target])
            else:
                batches[target] = expected_batches(tasks, discount, rollout_steps)
        return tasks, context, batches

    return draw
