"""Training data on sampled contexts: tasks, the batches of their updates, and a context of each task.

The update for a task needs a target, TD's or MC's, and a batch, which is sampled or infinitely large.  So there are
four kinds of targets: "td", "mc", "expected_td" and "expected_mc".
"""

from collections.abc import Callable

from ictd.evaluation import sample_contexts
from ictd.mrp import Tasks, sample_tasks, truncation_bias, value_function
from ictd.prompt import Context
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll


def algorithm(target: str) -> str:
    """The algorithm, "td" or "mc", of a kind of target."""
    return target.removeprefix("expected_")


def expected_batches(tasks: Tasks, discount: float, rollout_steps: int) -> BatchStatistics:
    """Compute the statistics of infinitely large batches, divided by the batch size.

    With the stationary distribution mu, they are visits mu(s), transitions mu(s) p(s' | s), and return sums mu(s)
    E[G~(s)].  Updates by TD and MC then differ only in their targets.  The expectation is that of the gradient for a
    given task and context, before the gradient is clipped.

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
    target: str,
    env: str,
    states: int,
    seed: int,
    lengths: list[int],
    discount: float,
    batch_size: int,
    rollout_steps: int,
    **env_options,
) -> Callable[[int], tuple[Tasks, BatchStatistics, Context]]:
    """Make a function that draws the next tasks of a run, with their batches and contexts.

    The four targets of a seed have the same tasks and contexts.

    Parameters
    ----------
    target : "td" or "mc" for sampled batches, "expected_td" or "expected_mc" for infinitely large ones
    env : str, environment of the tasks
    states : int, n
    seed : int
    lengths : list of two ints
        Least and greatest length of a context; the length is uniform between the two.
    discount : float, gamma
    batch_size : int, b
    rollout_steps : int, tau
    **env_options : options of the environment

    Returns
    -------
    draw : function from a number of tasks N to Tasks, BatchStatistics and Context of N tasks
    """
    expected = target != algorithm(target)
    # TD does not use returns, whose simulation takes most of the time.
    steps = rollout_steps if algorithm(target) == "mc" else 1
    names = ("tasks", "unrolls", "lengths", "contexts")
    streams = {name: generator(seed, env, states, f"agent {name}") for name in names}

    def draw(size: int) -> tuple[Tasks, BatchStatistics, Context]:
        tasks = sample_tasks(env, states, size, streams["tasks"], **env_options)
        context_lengths = streams["lengths"].integers(lengths[0], lengths[1], size, endpoint=True)
        context = sample_contexts(tasks, context_lengths, streams["contexts"])
        if expected:
            batches = expected_batches(tasks, discount, rollout_steps)
        else:
            batches = unroll(tasks, batch_size, discount, steps, streams["unrolls"])
        return tasks, batches, context

    return draw
