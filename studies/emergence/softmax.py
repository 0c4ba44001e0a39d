"""Softmax attention with one column for each state is deflated TD.

Let the query of state s give the score tau to the column of s and 0 to the others.  Then a layer with step c,

    w(s) <- w(s) + c sum_j softmax(scores)_j (TD error of j),

is deflated TD with alpha = c (e^tau - 1) / (e^tau + n - 1) and beta = c / (e^tau + n - 1).  So beta / alpha = 1 /
(e^tau - 1), and c = alpha + n beta: the temperature is the ratio, and the step is the step along constants.

Here the scores (n, n) and c are trained by TD, on enumerated prompts and on sampled ones with a column for each step.
There the attention to a state is proportional to the number of its columns, and its TD error is the mean over them.  On
one prompt the layer is A = n [K; 0] [-I, I] with K' = c times the attention, and the observed transitions.
"""

import itertools
import math
from pathlib import Path

import numpy as np

from ictd.context import Context
from ictd.engine import adam
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.mrp import TaskDistribution
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.training_data import EnumeratedPrompts, SampledPrompts, training_blocks
from ictd.transformer import preconditioned_td
from studies.emergence.few_numbers import basis, share
from studies.emergence.questions import STREAM, summary
from studies.emergence.symmetry import Gradient, one_by_one

# Centre and half width of the first grid of alpha and c in the search for the best temperature, and the number of
# grids, each of half the width.
CENTRE, WIDTH, GRIDS = (0.8, 6.0), (0.8, 6.0), 8


def main(
    env: str,
    states: int,
    depths: list[int],
    lengths: list[int],
    discount: float,
    seeds: int,
    updates: int,
    test_tasks: int,
    output: Path,
) -> None:
    """Write for each run its step, temperature, share of two numbers and errors, and the best step and temperature.

    ``lengths`` are numbers of steps of sampled prompts, or 0 (``ENUMERATED``).  The best are tuned on other tasks.
    """
    parts = []
    for depth, length in itertools.product(depths, lengths):
        data, tuning = (draw_unseen_tasks(i, states, test_tasks, length or 1, discount, env, STREAM) for i in (0, 1))
        step, scores = best_numbers(tuning, length, depth)
        names = {"env": env, "depth": depth, "length": length, "best_step": step}
        names["best_temperature"] = temperature(scores)
        names["best_mean"] = errors(step, scores, data, length, depth).mean()
        runs = [pretrain_scores(env, states, depth, discount, updates, seed, length) for seed in range(seeds)]
        A = np.stack([attention_weights(step, attend(scores, np.ones(states))) for step, scores in runs])
        columns = summary(np.stack([errors(*run, data, length, depth) for run in runs]))
        columns["step"] = np.array([step for step, _ in runs])
        columns["temperature"] = np.array([temperature(scores) for _, scores in runs])
        columns["two"] = share(A, basis(2, states), discount)
        parts.append(long_table({"seed": np.arange(seeds)}, columns, **names))
    save_table(output, *parts)


def temperature(scores: np.ndarray) -> float:
    """Mean score of a state's own column minus that of the others, for scores (n, n)."""
    own = np.trace(scores) / len(scores)
    return own - (scores.sum() - np.trace(scores)) / (scores.size - len(scores))


def attend(scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Attention (..., n, n) of each state to each state, from scores (n, n) and numbers of columns (..., n)."""
    weights = columns[..., None, :] * np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def columns_of(context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Share of each state in the columns of a context (..., n), and its observed transitions (..., n, n)."""
    shares = context.D.sum(axis=-1)
    return shares, context.D / np.where(shares > 0, shares, 1.0)[..., None]


def errors(step: float, scores: np.ndarray, data: UnseenTasks, length: int, depth: int) -> np.ndarray:
    """MSVE (tasks,) of softmax attention on prompts of one length, or on enumerated prompts for length 0."""
    shares, P = columns_of(data.context(length))
    attention, w = attend(scores, shares), np.zeros(shares.shape)
    for _ in range(depth):
        w = w + step * np.matvec(attention, data.tasks.reward + data.discount * np.matvec(P, w) - w)
    return data.error(w)


def best_numbers(data: UnseenTasks, length: int, depth: int) -> tuple[float, np.ndarray]:
    """The step and the scores tau I with the lowest mean MSVE, by a search over alpha and c."""
    states, grid = data.tasks.states, np.linspace(-1, 1, 9)
    centre, width = np.array(CENTRE), np.array(WIDTH)

    def scores(alpha: float, step: float) -> np.ndarray:
        ratio = alpha / step
        return np.log((1 + (states - 1) * ratio) / (1 - ratio)) * np.eye(states)

    for _ in range(GRIDS):
        tried = [centre + width * pair for pair in itertools.product(grid, grid)]
        tried = [(alpha, step) for alpha, step in tried if 0 <= alpha < step]
        with np.errstate(over="ignore", invalid="ignore"):
            means = [errors(step, scores(alpha, step), data, length, depth).mean() for alpha, step in tried]
        centre, width = np.array(tried[np.nanargmin(means)]), width / 2
    return centre[1], scores(*centre)


def attention_weights(step: float, attention: np.ndarray) -> np.ndarray:
    """A (2n, 2n) with which a layer of TF_L moves w by ``step`` times ``attention`` (n, n) times the TD errors."""
    K = len(attention) * step * attention.T
    return preconditioned_td(np.concatenate([K, np.zeros_like(K)]))


def pretrain_scores(env, states, depth, discount, updates, seed, length) -> tuple[float, np.ndarray]:
    """Pretrain step and scores (n, n) by Algorithm 1, on prompts of one length, or on enumerated ones for length 0."""
    rng = generator(seed, env, states, "scores")
    numbers = np.concatenate([[0.1], rng.normal(0, 0.1, states**2)])
    gradient, moments, update = Gradient(states, depth, discount), np.zeros((2, len(numbers))), 0
    prompts = SampledPrompts(length, length) if length else EnumeratedPrompts()
    chains = TaskDistribution(env, states=states)
    parameter = np.zeros(2 * states + 4 * states**2)
    for block in training_blocks(chains, prompts, "td", discount, updates, seed, 64, 1):
        shares, P = columns_of(block.contexts)
        for columns, task in zip(shares, one_by_one(P, block), strict=True):
            update += 1
            parameter[2 * states :] = attention_weights(numbers[0], attend(scores_of(numbers), columns)).ravel()
            found = slopes(numbers, columns, gradient(parameter, task)[2 * states :].reshape(2 * states, -1))
            adam(numbers, found, *moments, 0.001, update)
    return numbers[0], scores_of(numbers)


def scores_of(numbers: np.ndarray) -> np.ndarray:
    """The scores (n, n) in the numbers (1 + n^2,): the step, and the scores."""
    states = math.isqrt(len(numbers))
    return numbers[1:].reshape(states, states)


def slopes(numbers: np.ndarray, columns: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Chain rule of ``attention_weights``: from the gradient for A (2n, 2n) to that for the numbers (1 + n^2,)."""
    step, attention = numbers[0], attend(scores_of(numbers), columns)
    states = len(attention)
    slope = states * (gradient[:states, states:] - gradient[:states, :states]).T  # For step times attention.
    centred = slope - (slope * attention).sum(axis=1, keepdims=True)
    return np.concatenate([[(slope * attention).sum()], (step * attention * centred).ravel()])
