"""Off-policy prompts: does eta become negative, as in the residual gradient algorithm, where TD becomes unstable?

The columns of a prompt have the weights (1 - x) mu + x nu, with x from 0 (on-policy) to 1.  TD converges for small
steps if all eigenvalues of its matrix sum_s c_s phi_s (phi_s - gamma sum_s' p(s' | s) phi_s')' have positive real
parts, which holds with the weights mu and not with all others (Tsitsiklis and Van Roy, IEEE Transactions on Automatic
Control 42(5), 1997).  A task is *unstable* if one has a negative real part.  For each task, nu is chosen from random
distributions as that with the smallest ("unstable") or the largest ("stable") least real part, or as the first one
("random").  The stable choice is as far from on-policy as the unstable one, so the difference between
the two choices shows the effect of instability.

Queries remain on-policy: losses and errors are those of the paper, weighted by mu.

The weights with few numbers (``symmetric``) are compared with the gradient TD algorithms GTD2 and TDC
(``ictd.baselines``), which make as many updates as there are layers.
"""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from ictd.baselines import gtd2, tdc
from ictd.mrp import Tasks
from ictd.prompt import Context
from ictd.rng import generator
from ictd.storage import save_table
from ictd.transformer import estimates
from studies.features.algorithms import best_limit, limit, projection, trimmed_mean
from studies.features.coefficients import measures
from studies.features.compare import FAILED, summary_of
from studies.features.pretrain import pretrained_towards_values
from studies.features.symmetric import FAMILIES, best_of_starts, weights_of
from studies.features.tasks import HeldOut, distribution, held_out

BEHAVIOURS = "unstable", "stable", "random"
# Random distributions are Dirichlet with this concentration, mixed with the uniform one, so that all states are seen.
CONCENTRATION, UNIFORM = 0.5, 0.01
# A task is unstable if an eigenvalue has a smaller real part; features of rank below d have eigenvalues of about 0.
UNSTABLE = -1e-12
# Candidates of the step size of GTD2 and TDC, and of their second step size over the first.
STEP_SIZES, RATIOS = np.geomspace(0.02, 5, 12), np.array([0.1, 0.5, 1, 2, 10])
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


GRADIENT_TD = {"gtd2": gtd2, "tdc": tdc}


def gradient_td(data: HeldOut, name: str, step: float, ratio: float, updates: int) -> np.ndarray:
    """w (N, d) of "gtd2" or "tdc"."""
    with np.errstate(over="ignore", invalid="ignore"):
        return GRADIENT_TD[name](data.context, data.discount, float(step), float(ratio * step), updates)


def best_gradient_td(data: HeldOut, name: str, updates: int) -> tuple[float, float]:
    """Find the step size, and the ratio of the second step size to it, with the least trimmed mean of the MSVE."""
    pairs = [(step, ratio) for step in STEP_SIZES for ratio in RATIOS]
    return min(pairs, key=lambda pair: trimmed_mean(data.msve(gradient_td(data, name, *pair, updates))))


def best_numbers(data: HeldOut, family: str, depth: int) -> np.ndarray:
    """The matrix B (2, 2) of a family with the least mean MSVE."""
    directions = FAMILIES[family]
    starts = [np.array([alpha, alpha * eta])[: len(directions)] for alpha, eta in STARTS]
    numbers = best_of_starts(starts, directions, data, data.gram, depth)
    return np.tensordot(numbers, directions, axes=1)


def main(
    env: str,
    setting: dict,
    features: list[str],
    shares: list[float],
    candidates: int,
    depths: list[int],
    tasks: int,
    seeds: int,
    pretrained_shares: list[float],
    pretrained_seeds: int,
    updates: int,
    batch_size: int,
    learning_rate: float,
    output: Path,
) -> None:
    """Write eta and the errors of each method, for each kind of features, behaviour, share and seed.

    Parameters are chosen on other tasks than those of the errors.  ``unstable`` is the share of unstable tasks.  The
    columns ``median``, ``trimmed``, ``mean`` and ``failed`` are those of ``compare``.  The methods are

    - ``zero``, ``projection``: estimates of zero, and the least MSVE;
    - ``lstd``, ``limit``: LSTD, and LSTD with test functions phi + eta gamma P phi and the best eta;
    - ``FAMILY_L``: theta_td, residual_gradient or two_numbers with the least mean MSVE at L layers;
    - ``gtd2``, ``tdc``: with the best step sizes, and as many updates as the setting has layers;
    - ``pretrained``: all of u and A, pretrained towards true values.
    """
    rows = []
    for kind, behaviour, share, seed in product(features, BEHAVIOURS, shares, range(seeds)):
        own = setting | {"env": env, "features": kind, "prompts": "enumerated"}
        prompts = OffPolicyPrompts(behaviour, share, candidates, own["discount"])
        tuning, test = (
            off_policy(held_out(own, tasks, seed, purpose), prompts, seed, purpose) for purpose in ("tuning", "test")
        )
        found = methods(tuning, test, own["depth"], depths)
        if behaviour == "unstable" and share in pretrained_shares and seed < pretrained_seeds:
            weights = pretrained_towards_values(
                distribution(own, seed), prompts, own, updates, seed, batch_size, learning_rate
            )
            if weights is not None:
                eta = float(measures(weights.u, weights.A)["eta"])
                found["pretrained"] = eta, estimates(weights, test.gram, own["depth"])
        scale = FAILED * test.msve(found["zero"][1]).mean()
        unstable = float((least_eigenvalue(test.tasks, test.weight, test.discount) < UNSTABLE).mean())
        for method, (eta, w) in found.items():
            summary = summary_of(test.msve(w), scale)
            rows.append((env, kind, behaviour, share, seed, unstable, method, eta, *summary))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def methods(tuning: HeldOut, test: HeldOut, depth: int, depths: list[int]) -> dict[str, tuple[float, np.ndarray]]:
    """Eta, or NaN, and w (N, d) on the test tasks, by the names of the methods of ``main`` without pretraining."""
    eta = best_limit(tuning, tuning.phi_next)
    found = {
        "zero": (np.nan, np.zeros((len(test.tasks), test.tasks.dimension))),
        "projection": (np.nan, projection(test)),
        "lstd": (0.0, limit(test, test.phi)),
        "limit": (eta, limit(test, test.phi + eta * test.discount * test.phi_next)),
    }
    for layers in depths:
        for family in ("theta_td", "residual_gradient", "two_numbers"):
            B = best_numbers(tuning, family, layers)
            w = estimates(weights_of(B, test.tasks.dimension), test.gram, layers)
            found[f"{family}_{layers}"] = float(B[1, 1] / B[0, 1]), w
    for name in GRADIENT_TD:
        found[name] = np.nan, gradient_td(test, name, *best_gradient_td(tuning, name, depth), depth)
    return found
