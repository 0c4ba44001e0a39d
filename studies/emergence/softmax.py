"""Softmax attention with one column for each state is deflated TD.

Let the query of state s give the score tau to the column of s and 0 to the others.  Then a layer with step c,

    w(s) <- w(s) + c sum_j softmax(scores)_j (TD error of j),

is deflated TD with alpha = c (e^tau - 1) / (e^tau + n - 1) and beta = c / (e^tau + n - 1).  So beta / alpha = 1 /
(e^tau - 1), and c = alpha + n beta: the temperature is the ratio, and the step is the step along constants.

Here the scores (n, n) and c are trained by TD.  The layer is A = n [K; 0] [-I, I] with K' = c softmax(scores).
"""

import math
from pathlib import Path

import numpy as np

from ictd.engine import adam
from ictd.evaluation import draw_unseen_tasks
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.transformer import Weights, preconditioned_td
from studies.emergence.few_numbers import basis, share
from studies.emergence.questions import STREAM, enumerated_errors, summary
from studies.emergence.symmetry import Gradient, tasks_of


def main(
    env: str, states: int, depths: list[int], discount: float, seeds: int, updates: int, test_tasks: int, output: Path
) -> None:
    """Write for each run its step, the mean weight of a state on itself, the share of two numbers, and errors."""
    tasks = draw_unseen_tasks(0, states, test_tasks, 1, discount, env, STREAM).tasks
    parts = []
    for depth in depths:
        runs = [pretrain_scores(env, states, depth, discount, updates, seed) for seed in range(seeds)]
        step, attention = np.array([run[0] for run in runs]), np.stack([run[1] for run in runs])
        A = np.stack([attention_weights(*run) for run in runs])
        columns = summary(enumerated_errors(Weights(np.zeros(A.shape[:-1]), A), tasks, discount, depth))
        columns["step"], columns["two"] = step, share(A, basis(2, states), discount)
        columns["own_weight"] = np.trace(attention, axis1=1, axis2=2) / states
        parts.append(long_table({"seed": np.arange(seeds)}, columns, env=env, depth=depth))
    save_table(output, *parts)


def two_numbers(temperature: float, step: float, states: int) -> tuple[float, float]:
    """alpha and beta of softmax attention with the score tau and step c."""
    total = np.exp(temperature) + states - 1
    return step * (np.exp(temperature) - 1) / total, step / total


def softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax along the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention_weights(step: float, attention: np.ndarray) -> np.ndarray:
    """A (2n, 2n) with which a layer of TF_L moves w by ``step`` times ``attention`` (n, n) times the TD errors."""
    K = len(attention) * step * attention.T
    return preconditioned_td(np.concatenate([K, np.zeros_like(K)]))


def pretrain_scores(env, states, depth, discount, updates, seed, learning_rate=0.001) -> tuple[float, np.ndarray]:
    """Pretrain scores and step by Algorithm 1: the step, and the attention (n, n) of each state to each column."""
    rng = generator(seed, env, states, "scores")
    numbers = np.concatenate([[0.1], rng.normal(0, 0.1, states**2)])
    gradient, moments = Gradient(states, "td", depth, discount), np.zeros((2, len(numbers)))
    for update, task in enumerate(tasks_of(env, states, "td", discount, updates, seed), 1):
        A = attention_weights(*of_numbers(numbers))
        found = gradient(np.concatenate([np.zeros(2 * states), A.ravel()]), task)[2 * states :]
        adam(numbers, slopes(numbers, found.reshape(A.shape)), *moments, learning_rate, update)
    return of_numbers(numbers)


def of_numbers(numbers: np.ndarray) -> tuple[float, np.ndarray]:
    """Step and attention (n, n) of the numbers (1 + n^2,): the step, and the scores."""
    states = math.isqrt(len(numbers))
    return numbers[0], softmax(numbers[1:].reshape(states, states))


def slopes(numbers: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Chain rule of ``attention_weights``: from the gradient for A (2n, 2n) to that for the numbers (1 + n^2,)."""
    step, attention = of_numbers(numbers)
    states = len(attention)
    slope = states * (gradient[:states, states:] - gradient[:states, :states]).T  # For step times attention.
    centred = slope - (slope * attention).sum(axis=1, keepdims=True)
    return np.concatenate([[(slope * attention).sum()], (step * attention * centred).ravel()])
