"""Predict the two numbers during pretraining from a mean-field equation with Adam's steps.

One update is made for each task.  After k tasks, the mean-field equation moves A by

    -k eta m / (sqrt(s) + epsilon),    s <- s + (1 - 0.999^k) / (1 - 0.999^t) (q - s),

where m and q are the means over many tasks of the gradient's entries and of their squares, and t is the number of tasks
so far.  s contains squares of single tasks' gradients, so the noise of tasks and of their batches makes steps shorter.
The equation starts from A = 0 and u = 0, and A is projected on some directions after each step.
"""

from pathlib import Path

import numpy as np

from ictd.engine import BETA_2, EPSILON
from ictd.kernels import size
from ictd.mrp import Tasks, sample_tasks, value_function
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll
from ictd.statistics import log_spaced_integers
from ictd.storage import save_table
from ictd.transformer import Weights
from studies.emergence.few_numbers import SETS, basis, number_measures
from studies.emergence.numbers_engine import gradient_moments

# Number of tasks from which means are sampled, number of tasks in a mean, and number of tasks in a step.
POOL, AVERAGED, STRIDE = 20_000, 100, 5
# The variables, noise and rule of each prediction.  The last two predictions leave out the noise of batches, and Adam.
PREDICTIONS = (
    *((variables, "batches", "adam") for variables in (*SETS, "all")),
    ("all", "tasks", "adam"),
    (2, "batches", "gradient"),
)
COLUMNS = ("algo", "variables", "noise", "rule", "tasks_seen", "identity", "ones")


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    scaled_attention: bool,
    env_options: dict,
    tasks: int,
    predicted_tasks: int,
    snapshots: int,
    output: Path,
) -> None:
    """Write alpha and beta at the snapshots of a long run of ``tasks`` tasks, up to ``predicted_tasks``.

    ``variables`` is a key of SETS, or "all" for all entries of A.  With ``noise`` "batches", gradients come from
    sampled batches; with "tasks", from expected batches.  The rule "gradient" replaces Adam by plain gradients.
    """
    rng = generator(0, env, states, "dynamics")
    pool = sample_tasks(env, states, POOL, rng, **env_options[env])
    sampled = unroll(pool, batch_size, discount, rollout_steps if algo == "mc" else 1, rng)
    mu, p = pool.stationary, pool.transition
    expected = BatchStatistics.unchecked(
        visits=mu, transitions=mu[..., None] * p, return_sums=mu * value_function(p, pool.reward, discount)
    )
    stops = [stop for stop in log_spaced_integers(tasks, snapshots).tolist() if stop <= predicted_tasks]
    scale = 1 / states if scaled_attention else 1.0
    rows = []
    for variables, noise, rule in PREDICTIONS:
        projection = None if variables == "all" else projector(basis(variables, states))
        batches = sampled if noise == "batches" else expected
        A = mean_field(pool, batches, algo, depth, discount, scale, learning_rate, projection, rule == "adam", stops)
        measures = number_measures(Weights(np.zeros(A.shape[:-1]), A), discount, scaled_attention)
        for stop, identity, ones in zip(stops, measures["identity"], measures["ones"], strict=True):
            rows.append((algo, str(variables), noise, rule, stop, identity, ones))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def projector(bases: np.ndarray) -> np.ndarray:
    """Orthogonal projection (4n^2, 4n^2) on the span of bases (K, 2n, 2n)."""
    columns, _ = np.linalg.qr(bases.reshape(len(bases), -1).T)
    return columns @ columns.T


def mean_field(
    tasks: Tasks,
    batches: BatchStatistics,
    algo: str,
    depth: int,
    discount: float,
    scale: float,
    learning_rate: float,
    projection: np.ndarray | None,
    adam: bool,
    stops: list[int],
) -> np.ndarray:
    """Follow the equation from A = 0.

    Parameters
    ----------
    tasks : Tasks
    batches : BatchStatistics of these tasks
    algo : "td" or "mc"
    depth : int, number of layers L
    discount : float, gamma
    scale : float, the factor of attention, which is 1/n or 1
    learning_rate : float, eta
    projection : (4n^2, 4n^2) array, or None
    adam : bool, true for Adam, false for plain gradients
    stops : ascending numbers of tasks

    Returns
    -------
    A : (stops, 2n, 2n) array, at the first step that reaches each number of tasks
    """
    data = tasks.transition, tasks.reward, batches.visits, batches.transitions, batches.return_sums
    n, shape = size(tasks.states), (2 * tasks.states, 2 * tasks.states)
    A, mean, square, average = np.zeros(shape), np.empty(shape), np.empty(shape), np.zeros(shape)
    blocks = max(1, len(tasks) // AVERAGED)
    found, step = [], 0
    for stop in stops:
        while step * STRIDE < stop:
            first = step % blocks * AVERAGED
            block = [array[first : first + AVERAGED] for array in data]
            gradient_moments(n, A, *block, algo == "td", depth, discount, scale, mean, square)
            step += 1
            average += (1 - BETA_2**STRIDE) / (1 - BETA_2 ** (step * STRIDE)) * (square - average)
            change = mean / (np.sqrt(average) + EPSILON) if adam else mean
            A = A - learning_rate * STRIDE * change
            if projection is not None:
                A = (projection @ A.ravel()).reshape(shape)
        found.append(A)
    return np.array(found)
