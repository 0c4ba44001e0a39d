"""Is eta for the mean TD error, or for the TD errors of single states?  Both parts of gamma P phi get a coefficient.

With weights c of the columns, next features are their mean and a rest whose mean is zero,

    gamma P phi = gamma m + gamma (P phi - m),    m = sum_s c(s) (P phi)(s).

With test functions phi + eta_m gamma m + eta_r gamma (P phi - m), an update of ``symmetric`` is

    w <- w + alpha (mean of delta phi) + alpha gamma (eta_m (mean of delta) m + eta_r cov(delta, P phi)),

with means and the covariance over the columns: eta_m weighs the mean TD error and nothing else, and eta_r weighs only
deviations from it.  Prompts of the paper (eq. (Z0 redef)) do not show the parts, so that their coefficients are equal,
eta.  A first-order step of eligibility, phi + gamma P phi, has eta_m = eta_r = 1.

The best test functions for c = mu are (I - gamma P~)^{-1} phi (Scherrer, ICML 2010; ``reversibility``).  P~ keeps the
mean under mu, so that their mean is m / (1 - gamma) for any chain, that is eta_m = 1 / (1 - gamma).  Their rest is
gamma (P~ phi - m) to first order, so that eta_r is about 1 for a reversible chain.  If constants are features, LSTD
sets the mean TD error to zero, and eta_m has no effect.

Controls of the rest are next features of other columns, whose mean is the same.  A control of the mean is that of
another task, "exchanged".
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from ictd.mrp import Tasks
from ictd.prompt import Gram
from ictd.rng import generator
from ictd.storage import load_arrays, save_table
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, estimates, initial_weights
from studies.features.algorithms import limit_error, trimmed_mean
from studies.features.coefficients import measures, permutation_fit
from studies.features.grid import is_plain
from studies.features.pretrain import pretrain
from studies.features.reversibility import MixedChains, draw_held_out
from studies.features.symmetric import best_of_starts, resting_point
from studies.features.tasks import HeldOut, distribution, held_out

# The TD error without the reward, in terms of the blocks phi, gamma m, gamma (P phi - m), and a control times gamma.
TD_ERROR = np.array([-1.0, 1.0, 1.0, 0.0])
# Directions of B, as in ``symmetric``, that add each block to the test functions.
PHI, MEAN, REST, CONTROL = np.eye(4)[:, :, None] * TD_ERROR
# Directions of each fit; its numbers are alpha, and alpha times the other coefficients.
FITS = {
    "td": np.stack([PHI]),
    "tied": np.stack([PHI, MEAN + REST]),
    "mean": np.stack([PHI, MEAN]),
    "rest": np.stack([PHI, REST]),
    "split": np.stack([PHI, MEAN, REST]),
    "other_states": np.stack([PHI, MEAN, CONTROL]),
    "exchanged": np.stack([PHI, REST, CONTROL]),
}
# Fits of the cases other than a setting's own prompts with normal features.
COMPARED = "td", "mean", "split", "other_states"
# Alphas from which descents start.
ALPHAS = 0.3, 1.5
# Candidates of eta_m and eta_r in the limit of many layers.
MEANS, RESTS = np.linspace(-2, 20, 45), np.linspace(-2, 2, 21)
# What is taken out of the test functions of pretrained weights.
TAKEN_OUT = {"ordinary": (), "without_mean": (1,), "without_rest": (2,)}
COLUMNS = (
    "setting", "case", "target", "seed", "method", "alpha", "mean", "rest", "control", "share", "error",
)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Held-out tasks with prompts that show the parts of the next features, and a control.

    Parameters
    ----------
    data : HeldOut, N tasks with m columns
    mean, rest : (N, m, d) arrays, m, the same in all columns, and P phi - m
    control : (N, m, d) array
    """

    data: HeldOut
    mean: np.ndarray
    rest: np.ndarray
    control: np.ndarray

    @classmethod
    def of(cls, data: HeldOut, rng: np.random.Generator, mean: str = "columns") -> Self:
        """Split the next features; the control is the rest with next features of other columns, in a random order.

        The mean is that over "columns", with their weights, or the one under the "stationary" distribution, sum_s
        mu(s) phi(s).
        """
        weight = data.weight[..., None]
        m = (weight * data.phi_next).sum(axis=1, keepdims=True)
        order = rng.permuted(np.broadcast_to(np.arange(data.phi.shape[1]), data.phi.shape[:2]), axis=1)
        others = np.take_along_axis(data.phi_next, order[..., None], axis=1)
        control = others - (weight * others).sum(axis=1, keepdims=True)
        if mean == "stationary":
            m = (data.tasks.stationary[..., None] * data.tasks.features).sum(axis=1, keepdims=True)
        return cls(data, np.broadcast_to(m, data.phi.shape), data.phi_next - m, control)

    def exchanged(self) -> Self:
        """The same with the mean of another task, the one before, as the control."""
        return replace(self, control=np.roll(self.mean, 1, axis=0))

    @cached_property
    def gram(self) -> Gram:
        """Averages over columns [phi; gamma m; gamma (P phi - m); gamma control; r], as TF_L depends on them."""
        following = (self.data.discount * part for part in (self.mean, self.rest, self.control))
        return self.data.gram_of(self.data.phi, *following)

    @cached_property
    def doubled(self) -> Gram:
        """The same for Transformers of 2d features, which read the four blocks as two; queries are [phi; 0]."""
        d = self.data.phi.shape[-1]
        return replace(self.gram, queries=np.pad(self.gram.queries, [(0, 0), (0, 0), (0, d)]))

    def error(self, weights: Weights, depth: int) -> float:
        """Trimmed mean of the MSVE of weights of 2d features."""
        with np.errstate(over="ignore", invalid="ignore"):
            w = estimates(weights, self.doubled, depth)
        return float(trimmed_mean(self.data.msve(w[..., : self.data.phi.shape[-1]])))

    def tests(self, eta_m: float, eta_r: float) -> np.ndarray:
        """Test functions phi + eta_m gamma m + eta_r gamma (P phi - m) (N, m, d)."""
        return self.data.phi + self.data.discount * (eta_m * self.mean + eta_r * self.rest)


def on_blocks(weights: Weights, taken_out: tuple[int, ...]) -> Weights:
    """Weights of 2d features on four blocks with the estimates of weights of d features on [phi; gamma P phi].

    With [phi; gamma P phi] = S (blocks), they are u S and S' A S.  The rows of A are the test functions: blocks that
    are ``taken_out`` have rows of zeros.
    """
    S = np.kron([[1, 0, 0, 0], [0, 1, 1, 0]], np.eye(weights.dimension))
    A = S.T @ weights.A @ S
    A.reshape(4, -1)[list(taken_out)] = 0
    return Weights(weights.u @ S, A)


def two_block_fit(weights: Weights, kept: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of weights of d features on [phi; gamma P phi], over the first ``kept`` features.

    They are alpha and eta of ``coefficients``, for the mean and for the rest; the share of the squared norm is that of
    the multiples of I.
    """
    d = weights.dimension
    index = np.concatenate([np.arange(kept), d + np.arange(kept)])
    found = measures(weights.u[index], weights.A[np.ix_(index, index)])
    return found["alpha"] * np.array([1, found["eta"], found["eta"], 0]), float(found["four"])


def instrument_fit(A: np.ndarray, kept: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of the blocks in the test functions of A (4d, 4d), over the first ``kept`` of d features.

    The estimate is w = -(k_0 + ... + k_{L-1}) A[:, :d] (``ictd.transformer``), so that the test function of a column x
    is -A[:, :d]' x.  Each d x d block is fitted by multiples of I and 11', as in ``coefficients``.  The share is that
    of the squared norm of A[:, :d], over these features, in the multiples of I.
    """
    d = len(A) // 4
    blocks = A.reshape(4, d, 4, d)[:, :kept, 0, :kept]
    k = -permutation_fit(blocks)[0]
    return k, float(kept * (k**2).sum() / (blocks**2).sum())


def form_fit(A: np.ndarray, kept: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of the nearest (k TD_ERROR') x I to A (4d, 4d), and its share of the squared norm.

    All columns of A count, also those that are not in the test functions, but change how TD errors are updated.
    """
    d, square = len(A) // 4, (TD_ERROR**2).sum()
    blocks = A.reshape(4, d, 4, d)[:, :kept, :, :kept].swapaxes(1, 2)
    k = permutation_fit(blocks)[0] @ TD_ERROR / square
    return k, float(kept * square * (k**2).sum() / (blocks**2).sum())


@dataclass(frozen=True)
class Case:
    """Tasks and prompts of one kind, and the mean that is split off.

    Parameters
    ----------
    setting : dict, as in ``config.yaml``
    mean : str, as in ``Split.of``
    chains : MixedChains with columns weighted by mu, in place of the setting's own distribution; None for that one
    """

    setting: dict
    mean: str = "columns"
    chains: MixedChains | None = None

    def draw(self, size: int, seed: int, purpose: str) -> HeldOut:
        """Draw held-out tasks."""
        if self.chains is None:
            return held_out(self.setting, size, seed, purpose)
        return draw_held_out(self.chains, size, self.setting["discount"], seed, purpose)


def can_show(setting: dict) -> bool:
    """Whether prompts can show the parts in pretraining: those of a plain setting with enumerated prompts."""
    return is_plain(setting) and setting["prompts"] == "enumerated"


def cases_of(setting: dict) -> dict[str, Case]:
    """Cases by name: the setting's own prompts, and others to compare.

    For plain settings with enumerated prompts they are the mean under the stationary distribution, columns that are
    weighted by mu, and reversible chains with such columns.  For a constant feature it is a setting without it.
    """
    found = {"own": Case(setting)}
    if setting["features"] == "constant":
        found["without_constant"] = Case(setting | {"features": "normal", "dimension": setting["dimension"] - 1})
    if can_show(setting):
        found["stationary"] = Case(setting, mean="stationary")
        for name, drift in {"weighted": 1.0, "reversible": 0.0}.items():
            chains = MixedChains(setting["env"], drift, "normal", setting["states"], setting["dimension"])
            found[name] = Case(setting, chains=chains)
    return found


def fit_numbers(tuning: Split, directions: np.ndarray, depth: int) -> np.ndarray:
    """Numbers (K,) of a fit with the least mean MSVE at L layers, by descents from TD with each of ``ALPHAS``."""
    starts = [np.pad([alpha], (0, len(directions) - 1)) for alpha in ALPHAS]
    return best_of_starts(starts, directions, tuning.data, tuning.gram, depth)


def limit_errors(split: Split) -> np.ndarray:
    """Trimmed mean (45, 21) of the MSVE in the limit of many layers, for each pair of ``MEANS`` and ``RESTS``.

    The limit is LSTD with the test functions of ``Split.tests``, whose averages are linear in both coefficients.
    """
    data, eta_r = split.data, RESTS[:, None, None]
    blocks = data.phi, data.discount * split.mean, data.discount * split.rest
    weighted = [(data.weight[..., None] * z).mT for z in blocks]
    matrices = [z @ (data.phi - data.discount * data.phi_next) for z in weighted]
    sides = [np.matvec(z, data.reward) for z in weighted]
    errors = np.empty((len(MEANS), len(RESTS)))
    for i, eta_m in enumerate(MEANS):
        matrix = matrices[0] + eta_m * matrices[1] + eta_r[..., None] * matrices[2]
        side = sides[0] + eta_m * sides[1] + eta_r * sides[2]
        errors[i] = trimmed_mean(data.msve(np.linalg.solve(matrix, side[..., None])[..., 0]))
    return errors


def fitted(
    tuning: Split, test: Split, depth: int, methods: Iterable[str]
) -> dict[tuple[str, str], tuple[np.ndarray, float, float]]:
    """Coefficients k (4,) of the blocks, 1, and the error on test tasks, by target and method.

    The methods are keys of ``FITS``, the limit of many layers, and with the target "td" the numbers at which the
    expected update of TD is zero.
    """
    d, numbers, found = tuning.data.phi.shape[-1], {}, {}
    for method in methods:
        own = tuning.exchanged() if method == "exchanged" else tuning
        numbers["values", method] = fit_numbers(own, FITS[method], depth)
    start = np.pad(numbers["values", "td"], (0, 2))
    numbers["td", "split"] = resting_point(start, FITS["split"], tuning.data, tuning.gram, depth)
    for (target, method), chosen in numbers.items():
        B = np.tensordot(chosen, FITS[method], axes=1)
        shown = test.exchanged() if method == "exchanged" else test
        weights = Weights(np.zeros(4 * d), np.kron(B, np.eye(d)))
        found[target, method] = -B[:, 0], 1.0, shown.error(weights, depth)
    errors = limit_errors(tuning)
    i, j = np.unravel_index(errors.argmin(), errors.shape)
    best = limit_error(test.data, test.tests(MEANS[i], RESTS[j]))
    return found | {("values", "limit"): (np.array([1.0, MEANS[i], RESTS[j], 0.0]), 1.0, best)}


def pretrained(setting: dict, target: str, seed: int, batch_size: int, learning_rate: float) -> Weights | None:
    """Weights of 2d features after pretraining all of u and A on enumerated prompts with the four blocks.

    The target is "td" or "values".  None if pretraining diverges.
    """
    discount = setting["discount"]
    start, control = (
        generator(seed, setting["env"], setting["states"], f"mean part {name}") for name in ("start", "control")
    )
    first = initial_weights(2 * setting["dimension"], setting["initial_gain"], start)
    tasks, prompts = distribution(setting, seed), EnumeratedPrompts()
    blocks = training_blocks(tasks, prompts, target, discount, setting["updates"], seed, batch_size, rollout_steps=1)
    prompted = ((block, Split.of(enumerated(block.tasks, discount), control).doubled) for block in blocks)
    *_, weights = pretrain(first, target, setting, learning_rate, prompted)
    return weights


def enumerated(tasks: Tasks, discount: float) -> HeldOut:
    """Tasks with their enumerated prompts."""
    return HeldOut.enumerated(tasks, tasks.transition, np.full_like(tasks.reward, 1 / tasks.states), discount)


def main(
    name: str,
    setting: dict,
    tasks: int,
    seeds: int,
    pretrained_seeds: int,
    batch_size: int,
    learning_rate: float,
    weights: Path,
    output: Path,
) -> None:
    """Write the coefficients and the error of each method, for each case of ``cases_of``, target and seed.

    ``alpha`` is the coefficient of phi, and ``mean``, ``rest`` and ``control`` are those of the other blocks over it.
    ``error`` is the trimmed mean of the MSVE on other tasks than those of the fits.  The methods are

    - keys of ``FITS``: the numbers with the least mean MSVE; with the target "td", those at which TD rests;
    - ``limit``: the best eta_m and eta_r in the limit of many layers;
    - ``pretrained``: all of u and A, pretrained on prompts with the four blocks; coefficients and ``share`` are those
      of ``instrument_fit``, and with ``pretrained_form`` those of ``form_fit``;
    - ``ordinary``: the setting's own ``weights``, pretrained on prompts with gamma P phi in one block; coefficients are
      those of the features that are not constant;
    - ``without_mean``, ``without_rest``: these weights with one part taken out of the test functions.
    """
    u, A = (array[:, :, -1] for array in load_arrays(weights, "u", "A"))
    depth, kept = setting["depth"], setting["dimension"] - (setting["features"] == "constant")
    rows = []
    for case_name, case in cases_of(setting).items():
        own = case_name == "own"
        methods = FITS if own and is_plain(setting) else COMPARED
        for seed in range(seeds):
            rng = generator(seed, "features", setting["states"], "mean part other states")
            tuning, test = (
                Split.of(case.draw(tasks, seed, f"mean part {purpose}"), rng, case.mean)
                for purpose in ("tuning", "test")
            )
            found = fitted(tuning, test, depth, methods)
            for i, target in enumerate(setting["targets"]) if own and seed < u.shape[1] else ():
                ordinary = Weights(u[i, seed], A[i, seed])
                k, share = two_block_fit(ordinary, kept)
                for method, taken_out in TAKEN_OUT.items():
                    left = np.where(np.isin(np.arange(4), taken_out), 0, k)
                    found[target, method] = left, share, test.error(on_blocks(ordinary, taken_out), depth)
            for target in ("td", "values") if own and can_show(setting) and seed < pretrained_seeds else ():
                trained = pretrained(setting, target, seed, batch_size, learning_rate)
                if trained is not None:
                    error = test.error(trained, depth)
                    found[target, "pretrained"] = *instrument_fit(trained.A, kept), error
                    found[target, "pretrained_form"] = *form_fit(trained.A, kept), error
            for (target, method), (k, share, error) in found.items():
                rows.append((name, case_name, target, seed, method, k[0], *(k[1:] / k[0]), share, error))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
