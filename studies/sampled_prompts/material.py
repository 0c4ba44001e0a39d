"""The teachers of one and the same student: multi-task TD and MC, with batches of finite or of infinite size.

What a run on sampled contexts sees is drawn on the way: tasks, their unrolled batches, and a context of each.
"""

from collections.abc import Callable

from ictd.evaluation import sample_contexts
from ictd.mrp import Tasks, sample_tasks, truncation_bias, value_function
from ictd.prompt import Context
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll


def expected_batches(tasks: Tasks, discount: float, rollout_steps: int) -> BatchStatistics:
    """What infinitely large batches come to: shares pi of visits, pi p of transitions, pi times expected returns.

    With these multi-task TD and MC differ in their targets alone.  It is the batch whose expectation is taken, given
    the task and its context, and so the gradient's, before it is clipped and goes into Adam.

    The unrolls are of N tasks with n states, with shares in place of counts.  ``discount`` is gamma; ``rollout_steps``
    is tau, after which returns are cut.
    """
    pi, value = tasks.stationary, value_function(tasks.transition, tasks.reward, discount)
    returns = value + truncation_bias(tasks.transition, value, discount, rollout_steps)
    transitions = pi[..., None] * tasks.transition
    return BatchStatistics.unchecked(visits=pi, transitions=transitions, return_sums=pi * returns)


def draw_material(
    teacher: str,
    env: str,
    states: int,
    seed: int,
    lengths: list[int],
    discount: float,
    batch_size: int,
    rollout_steps: int,
    **env_options,
) -> Callable[[int], tuple[Tasks, BatchStatistics, Context]]:
    """What a run on sampled contexts sees, a function from a number of tasks to the next so many of them.

    Parameters
    ----------
    teacher : "td", "mc", or "expected_td" or "expected_mc" where batches are infinitely large
    env, states, seed : of the run; teachers of a seed have the same tasks and contexts
    lengths : the least and the greatest length of a context, each length between them as likely
    discount : float, gamma
    batch_size, rollout_steps : of the unrolled batches
    """
    expected, algo = teacher.startswith("expected_"), teacher.removeprefix("expected_")
    # Multi-task TD has no use for returns, whose simulation takes most of the time.
    steps = rollout_steps if algo == "mc" else 1
    names = ("tasks", "unrolls", "lengths", "contexts")
    streams = {name: generator(seed, env, states, f"agent {name}") for name in names}

    def draw(size: int) -> tuple[Tasks, BatchStatistics, Context]:
        tasks = sample_tasks(env, states, size, streams["tasks"], **env_options)
        drawn = streams["lengths"].integers(lengths[0], lengths[1], size, endpoint=True)
        context = sample_contexts(tasks, drawn, streams["contexts"])
        if expected:
            return tasks, expected_batches(tasks, discount, rollout_steps), context
        return tasks, unroll(tasks, batch_size, discount, steps, streams["unrolls"]), context

    return draw
