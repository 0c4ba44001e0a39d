"""Off-policy prompts: does eta become negative, as in the residual gradient algorithm, where TD becomes unstable?

The columns of a prompt have the weights (1 - x) mu + x nu, with x from 0 (on-policy) to 1.  TD converges for small
steps if all eigenvalues of its matrix sum_s c_s phi_s (phi_s - gamma sum_s' p(s' | s) phi_s')' have positive real
parts, which holds with the weights mu and not with all others (Tsitsiklis and Van Roy, IEEE Transactions on Automatic
Control 42(5), 1997).  A task is *unstable* if one has a negative real part.  For each task, nu is chosen from random
distributions as that with the smallest ("unstable") or the largest ("stable") least real part, or as the first one
("random").  The stable choice is as far from on-policy as the others and shows what instability adds.

Queries remain on-policy: losses and errors are those of the paper, weighted by mu.

Beside few numbers of the Transformer, the gradient TD algorithms GTD2 and TDC make as many expected updates as there
are layers, with auxiliary weights y (Sutton, Maei, Precup, Bhatnagar, Silver, Szepesvari and Wiewiora, ICML 2009):

    w <- w + a sum_s c_s (phi_s - gamma phi'_s) phi_s'y                                   GTD2
    w <- w + a sum_s c_s (delta_s phi_s - gamma phi'_s phi_s'y)                           TDC
    y <- y + b sum_s c_s (delta_s - phi_s'y) phi_s                                        both
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import Tasks
from ictd.prompt import Context
from ictd.rng import generator
from ictd.storage import save_table
from ictd.training_data import training_blocks
from ictd.transformer import estimates, initial_weights
from studies.features.algorithms import iterated, moments, moments_of, projection, solved, trimmed_mean
from studies.features.coefficients import measures
from studies.features.compare import described, FAILED
from studies.features.symmetric import FAMILIES, least_squares, weights_of
from studies.features.tasks import HeldOut, distribution, held_out

BEHAVIOURS = "unstable", "stable", "random"
# Random distributions are Dirichlet with this concentration, mixed with the uniform one, so that all states are seen.
CONCENTRATION, UNIFORM = 0.5, 0.01
# Candidates of eta, of a and of b / a.
SECONDS = np.linspace(-2, 4, 61)
STEPS, RATIOS = np.geomspace(0.02, 5, 12), np.array([0.1, 0.5, 1, 2, 10])
# Values of alpha and eta from which descents start.
STARTS = (0.3, 0.0), (1.0, 0.5), (0.3, -1.0)
AXES = "env", "features", "behaviour", "share", "seed", "unstable", "method"
COLUMNS = (*AXES, "eta", "median", "trimmed", "mean", "failed")


def least_eigenvalue(tasks: Tasks, weight: np.ndarray, discount: float) -> np.ndarray:
    """Least real part (..., N) of the eigenvalues of TD's matrix with weights (..., N, n) of the columns."""
    difference = tasks.features - discount * tasks.transition @ tasks.features
    return np.linalg.eigvals((weight[..., None] * tasks.features).mT @ difference).real.min(axis=-1)


def visited(
    tasks: Tasks, behaviour: str, share: float, candidates: int, discount: float, rng: np.random.Generator
) -> np.ndarray:
    """Weights (N, n) of the columns, (1 - x) mu + x nu.

    Parameters
    ----------
    tasks : Tasks, N of them
    behaviour : str, one of ``BEHAVIOURS``
    share : float, x
    candidates : int, number of random distributions from which nu is chosen
    discount : float, gamma
    rng : numpy.random.Generator
    """
    n = tasks.states
    drawn = rng.dirichlet(np.full(n, CONCENTRATION), (candidates, len(tasks)))
    drawn = (1 - UNIFORM) * drawn + UNIFORM / n
    chosen = np.zeros(len(tasks), dtype=int)
    if behaviour != "random" and share > 0:
        least = least_eigenvalue(tasks, drawn, discount)
        chosen = (least if behaviour == "unstable" else -least).argmin(axis=0)
    return (1 - share) * tasks.stationary + share * drawn[chosen, np.arange(len(tasks))]


@dataclass(frozen=True)
class OffPolicyPrompts:
    """Enumerated prompts whose columns have the weights of ``visited``."""

    behaviour: str
    share: float
    candidates: int
    discount: float

    def contexts(self, tasks: Tasks, rng: np.random.Generator) -> Context:
        """Averages over the context of each of N tasks, (N, d)."""
        weight = visited(tasks, self.behaviour, self.share, self.candidates, self.discount, rng)
        return Context.enumerated(tasks.transition, tasks.reward, tasks.features, weight)


def off_policy(data: HeldOut, prompts: OffPolicyPrompts, seed: int, purpose: str) -> HeldOut:
    """The same held-out tasks with off-policy prompts."""
    rng = generator(seed, "features off-policy", data.tasks.states, f"{prompts.behaviour} {purpose}")
    weight = visited(data.tasks, prompts.behaviour, prompts.share, prompts.candidates, data.discount, rng)
    return replace(data, weight=weight)


def gradient_td(data: HeldOut, name: str, step: float, ratio: float, updates: int) -> np.ndarray:
    """w (N, d) after some expected updates of "gtd2" or "tdc" from zero, with a = step and b = ratio a."""
    M, q = moments_of(data, data.phi)
    C = (data.weight[..., None] * data.phi).mT @ data.phi
    w, y = np.zeros_like(q), np.zeros_like(q)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(updates):
            delta, predicted = q - np.matvec(M, w), np.matvec(C, y)
            # gamma sum_s c_s phi'_s phi_s'y is C y - M'y.
            change = np.matvec(M.mT, y) + (0 if name == "gtd2" else delta - predicted)
            w, y = w + step * change, y + ratio * step * (delta - predicted)
    return w


def best_gradient_td(data: HeldOut, name: str, updates: int) -> tuple[float, float]:
    """Step and ratio of ``gradient_td`` with the least trimmed mean of the MSVE."""
    chosen = [(step, ratio) for step in STEPS for ratio in RATIOS]
    return min(chosen, key=lambda pair: trimmed_mean(data.msve(gradient_td(data, name, *pair, updates))))


def best_limit(data: HeldOut) -> float:
    """Eta with the least trimmed mean of the MSVE in the limit of many layers."""
    errors = [trimmed_mean(data.msve(solved(*moments(data, "second", eta), 0.0))) for eta in SECONDS]
    return float(SECONDS[np.argmin(errors)])


def best_numbers(data: HeldOut, family: str, depth: int) -> np.ndarray:
    """alpha and alpha eta (2,) of a family of weights with the least mean MSVE."""
    directions, gram = FAMILIES[family], data.gram
    starts = [np.array([alpha, alpha * eta])[: len(directions)] for alpha, eta in STARTS]
    numbers, _ = min((least_squares(start, directions, data, gram, depth) for start in starts), key=lambda end: end[1])
    B = np.tensordot(numbers, directions, axes=1)
    return B[:, 1]
