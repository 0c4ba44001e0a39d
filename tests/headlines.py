"""Headline numbers, recomputed from the results of a run, with NumPy and code written from the paper.

The workflow's code is not used: values, the Transformer's gradient, and Adam are written here again, and stationary
distributions, contexts, layers, LSTD and the bootstrap are those of ``naive.py``, slow and obvious.  The package
only draws the random numbers that are not stored: initial weights, unseen tasks and their trajectories.

    PYTHONPATH=tests python -P tests/headlines.py results

prints each recomputed number with the stored number.  ``test_headlines.py`` requires that they agree.
"""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import naive
import numpy as np

import ictd  # Random draws only: initial_weights, sample_tasks, sample_paths, generator.

# Tables in the folder of results.
UNSEEN_MSVE, UNSEEN_BASELINES = "metrics/unseen_msve.csv", "metrics/unseen_baselines.csv"


class Number(NamedTuple):
    """A number: the recomputed value and the stored value."""

    name: str
    recomputed: np.ndarray | float
    stored: np.ndarray | float


def check(numbers: list[Number], tolerance: float) -> None:
    """Require that the numbers agree, relative to the largest stored entry of each."""
    assert numbers
    for name, recomputed, stored in numbers:
        assert np.shape(recomputed) == np.shape(stored) and np.isfinite(recomputed).all(), name
        np.testing.assert_allclose(recomputed, stored, rtol=0, atol=tolerance * np.abs(stored).max(), err_msg=name)


class Results:
    """A finished run: its folder, its settings, and its main setting (Figures 1 and 2)."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.settings = json.loads((self.folder / "manifest.json").read_text())["settings"]
        self.env, self.states, self.depth = (self.settings[key][0] for key in ("envs", "states", "depths"))
        self.discount, self.readings = self.settings["discount"], self.settings["readings"]
        self.algorithms, self.scaled = self.settings["algos"], self.readings["scaled_attention"]

    def cell(self, algo: str) -> str:
        """Name of the main setting's runs by an algorithm."""
        return f"{algo}-{self.env}-{self.states}-{self.depth}"

    def arrays(self, path: str) -> dict[str, np.ndarray]:
        """All arrays of a file."""
        with np.load(self.folder / path) as archive:
            return dict(archive)

    def rows(self, table: str | Path, **values) -> list[dict[str, str]]:
        """Rows, as texts, of a table that have these values; an absolute path may lead out of the folder."""
        with open(self.folder / table, newline="") as file:
            return [row for row in csv.DictReader(file) if all(row[key] == str(values[key]) for key in values)]


# Markov reward processes (section "Policy Evaluation")


def msve(p: np.ndarray, r: np.ndarray, discount: float, estimate: np.ndarray) -> float:
    """Mean square value error, sum_s mu(s) (v(s) - estimate(s))^2."""
    error = np.linalg.solve(np.eye(len(r)) - discount * p, r) - estimate
    return float(naive.stationary(p) @ error**2)


# Prompts


def prompts(contexts: np.ndarray) -> np.ndarray:
    """Append the column [phi(s); 0; 0] of each state s: prompts (..., n, 2n+1, m+1) from contexts (..., 2n+1, m)."""
    *lead, width, m = contexts.shape
    n = (width - 1) // 2
    Z = np.zeros((*lead, n, width, m + 1))
    for s in range(n):
        Z[..., s, :, :m] = contexts
        Z[..., s, s, m] = 1
    return Z


# The Transformer (section "Linear Attention and Transformer") with parameters in Theta^looped


def layer_matrices(u: np.ndarray, A: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P = [0, 0; u, 1], Q = [A, 0; 0, 0], and the mask M, which leaves the query out of the context."""
    width = len(u) + 1
    P, Q, M = np.zeros((width, width)), np.zeros((width, width)), np.eye(columns)
    P[-1, :-1], P[-1, -1] = u, 1
    Q[:-1, :-1] = A
    M[-1, -1] = 0
    return P, Q, M


def transformer(contexts: np.ndarray, u: np.ndarray, A: np.ndarray, depth: int, scaled: bool) -> np.ndarray:
    """TF_L, minus the last entry of Z_L, for each query state, (..., n)."""
    Z = prompts(contexts)
    P, Q, _ = layer_matrices(u, A, Z.shape[-1])
    return -naive.embeddings([P] * depth, [Q] * depth, Z, scaled)[-1][..., -1, -1]


def gradient(
    context: np.ndarray, u: np.ndarray, A: np.ndarray, depth: int, scaled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives (n, 2n) and (n, 2n, 2n) of TF_L with respect to u and A, from the last layer to the first.

    With B = Z M Z', a layer is Z + P B Q Z / divisor.  G is the derivative of TF_L with respect to the output of the
    layer.
    """
    Z, divisor = prompts(context), context.shape[-1] if scaled else 1
    P, Q, M = layer_matrices(u, A, Z.shape[-1])
    layers = naive.embeddings([P] * depth, [Q] * depth, Z, scaled)
    by_P, by_Q, G = 0, 0, np.zeros_like(layers[-1])
    G[..., -1, -1] = -1
    for Z in reversed(layers[:-1]):
        B = Z @ M @ Z.mT
        by_P = by_P + G @ (B @ Q @ Z).mT / divisor
        by_Q = by_Q + B @ P.T @ G @ Z.mT / divisor
        by_B = P.T @ G @ (Q @ Z).mT / divisor
        G = G + Q.T @ B @ P.T @ G / divisor + (by_B + by_B.mT) @ Z @ M
    return by_P[..., -1, :-1], by_Q[..., :-1, :-1]


# 1. Pretrained weights (Algorithms 1 and 2)


def pretrained_weights(results: Results, algo: str, updates: int) -> list[Number]:
    """Make the first updates of the first seed again, from the stored tasks and batches, and compare snapshots."""
    settings, n = results.settings, results.states
    material = f"{results.env}-{n}"
    path = next((results.folder / "tasks" / material).glob("0-*.npz")).name
    tasks = results.arrays(f"tasks/{material}/{path}")
    return_sums = results.arrays(f"returns/{material}/{path}")["return_sums"][0] if algo == "mc" else None
    run = results.arrays(f"runs/{results.cell(algo)}/{path}")
    start = ictd.initial_weights(n, results.readings["initial_gain"], ictd.generator(0, results.env, n, "weights"))
    theta = [start.u.copy(), start.A.copy()]
    moments = [[np.zeros_like(part), np.zeros_like(part)] for part in theta]
    numbers = []
    for k in range(updates):
        p, counts = np.zeros((n, n)), np.zeros((n, n))
        p[tasks["followers"]] = tasks["transition"][0, k]
        counts[tasks["followers"]] = tasks["transitions"][0, k]  # Of S_t to S_{t+1} in the batch.
        r = tasks["reward"][0, k]
        context = naive.enumerated_prompt(p, r, results.discount, 0)[:, :-1]
        model = (*theta, results.depth, results.scaled)
        value, slopes = transformer(context, *model), gradient(context, *model)
        change = [np.zeros_like(part) for part in theta]
        for s in range(n):
            if algo == "td":
                error = sum(counts[s, j] * (r[s] + results.discount * value[j] - value[s]) for j in range(n))
            else:
                error = return_sums[k, s] - counts[s].sum() * value[s]
            for total, slope in zip(change, slopes, strict=True):
                total += error * slope[s] / counts.sum()
        for part, moment, ascent in zip(theta, moments, change, strict=True):
            moment[0] = 0.9 * moment[0] - 0.1 * ascent  # Adam minimises.
            moment[1] = 0.999 * moment[1] + 0.001 * ascent**2
            first, second = moment[0] / (1 - 0.9 ** (k + 1)), moment[1] / (1 - 0.999 ** (k + 1))
            part -= settings["learning_rate"] * first / (np.sqrt(second) + 1e-8)
        for i in np.flatnonzero(run["tasks_seen"][0] == k + 1):
            for name, part in zip("uA", theta, strict=True):
                numbers.append(Number(f"{algo}, {name} after {k + 1} updates", part.copy(), run[name][0, i]))
    return numbers


# 2. The MSVE of the pretrained Transformers, and of LSTD, on sampled prompts


def unseen_tasks(results: Results, seed: int) -> Iterator[tuple]:
    """Transitions, rewards and trajectories of the tasks that decide the claims: random draws."""
    settings, env, n = results.settings["evaluation"], results.readings["evaluation_env"], results.states
    options = results.readings["env_options"].get(env, {})
    tasks = ictd.sample_tasks(env, n, settings["claim_tasks"], ictd.generator(seed, env, n, "claims"), **options)
    paths = ictd.sample_paths(tasks, max(settings["context_lengths"]), ictd.generator(seed, env, n, "claims contexts"))
    return zip(tasks.transition, tasks.reward, paths, strict=True)


def claim_tasks_msve(results: Results, lengths: list[int]) -> list[Number]:
    """MSVE on the tasks that decide the claims: means over tasks (seeds,)."""
    ridge, seeds = results.settings["evaluation"]["lstd_ridge"], range(results.settings["seeds"])
    weights = {algo: results.arrays(f"weights/{results.cell(algo)}.npz") for algo in results.algorithms}
    errors = {(method, m): [[] for _ in seeds] for method in [*weights, "lstd"] for m in lengths}
    for seed in seeds:
        for p, r, path in unseen_tasks(results, seed):
            for m in lengths:
                steps = path[: m + 1], r[path[:m]], len(r)
                estimates = {"lstd": naive.lstd(*steps, results.discount, ridge)}
                context = naive.columns_of_steps(*steps, results.discount)
                for algo, arrays in weights.items():
                    model = arrays["u"][seed], arrays["A"][seed], results.depth, results.scaled
                    estimates[algo] = transformer(context, *model)
                for method, estimate in estimates.items():
                    errors[method, m][seed].append(msve(p, r, results.discount, estimate))
    numbers = []
    for (name, m), found in errors.items():
        if name == "lstd":
            rows = results.rows(UNSEEN_BASELINES, method=name, states=results.states, context_length=m)
        else:
            cell = {"algo": name, "env": results.env, "states": results.states, "depth": results.depth}
            rows = results.rows(UNSEEN_MSVE, context_length=m, **cell)
        stored = np.array([float(row["msve"]) for row in rows])
        numbers.append(Number(f"{name}, {m} steps", np.mean(found, axis=1), stored))
    return numbers


# 3. The verdict on "the pattern of theta^TD emerges"


def squared_cosine(A: np.ndarray, discount: float) -> float:
    """Squared cosine between A and theta^TD's, zero if it is negative.

    All matrices A + a z' with a = [-gamma 1; 1] have the same outputs.  The cosine is computed for the matrix whose
    lower half has columns that sum to zero.
    """
    n = len(A) // 2
    a = np.append(np.full(n, -discount), np.ones(n))
    A = A - np.outer(a, A[n:].mean(axis=0))
    theta = np.zeros_like(A)
    theta[:n, :n], theta[:n, n:] = -np.eye(n), np.eye(n)
    cosine = (A * theta).sum() / np.linalg.norm(A) / np.linalg.norm(theta)
    return float(max(0, cosine) ** 2)


def pattern_claim(results: Results, algo: str) -> tuple[list[Number], str, str]:
    """The squared cosine of the mean A, its interval and the verdict, and the same values in claims.json."""
    A = results.arrays(f"weights/{results.cell(algo)}.npz")["A"]
    value = squared_cosine(A.mean(axis=0), results.discount)
    low, high = naive.bca_interval(A, lambda mean: squared_cosine(mean, results.discount), 10_000)
    claims = json.loads((results.folder / "claims.json").read_text())
    (claim,) = [one for one in claims if one["id"] == f"pattern/{results.cell(algo)}"]
    numbers = [
        Number(f"{algo}, pattern, {name}", number, claim[name])
        for name, number in (("value", value), ("low", low), ("high", high))
    ]
    if low > claim["threshold"]:
        verdict = "holds"
    elif high < claim["threshold"]:
        verdict = "refuted"
    else:
        verdict = "not shown"
    return numbers, verdict, claim["verdict"]


def main(folder: str) -> None:
    """Print the recomputed numbers and the stored numbers of a run."""
    results = Results(folder)
    lengths = results.settings["evaluation"]["context_lengths"]
    ends = [lengths[0], lengths[-1]]
    numbers = [number for algo in results.algorithms for number in pretrained_weights(results, algo, 50)]
    numbers += claim_tasks_msve(results, ends)
    for algo in results.algorithms:
        found, verdict, stored = pattern_claim(results, algo)
        numbers += found
        print(f"{algo}, pattern: {verdict}; in the results: {stored}")
    for name, recomputed, stored in numbers:
        difference = np.abs(np.subtract(recomputed, stored)).max()
        print(f"{name}: {np.mean(recomputed):.6g}; in the results: {np.mean(stored):.6g}; off by {difference:.0e}")


if __name__ == "__main__":
    main(sys.argv[1])
