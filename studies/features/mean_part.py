"""Is eta for the mean TD error, or for the TD errors of single states?  Both parts of gamma P phi get a coefficient.

The parts are the mean m of the next features over the columns and the rest (``split``).  With test functions
phi + eta_m gamma m + eta_r gamma (P phi - m), an update of ``symmetric`` is

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
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.storage import load_arrays, save_table
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, initial_weights
from studies.features.algorithms import limit_error, trimmed_mean
from studies.features.grid import is_plain
from studies.features.pretrain import pretrain
from studies.features.reversibility import MixedChains, draw_held_out
from studies.features.split import (
    CONTROL,
    MEAN,
    PHI,
    REST,
    Split,
    fit_form,
    fit_test_functions,
    fit_two_blocks,
    on_blocks,
)
from studies.features.symmetric import best_of_starts, fixed_point
from studies.features.tasks import HeldOut, distribution, held_out

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

    The limit is LSTD with ``Split.test_functions``, whose averages are linear in both coefficients.
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
    numbers["td", "split"] = fixed_point(start, FITS["split"], tuning.data, tuning.gram, depth)
    for (target, method), chosen in numbers.items():
        B = np.tensordot(chosen, FITS[method], axes=1)
        shown = test.exchanged() if method == "exchanged" else test
        weights = Weights(np.zeros(4 * d), np.kron(B, np.eye(d)))
        found[target, method] = -B[:, 0], 1.0, shown.error(weights, depth)
    errors = limit_errors(tuning)
    i, j = np.unravel_index(errors.argmin(), errors.shape)
    best = limit_error(test.data, test.test_functions(MEANS[i], RESTS[j]))
    return found | {("values", "limit"): (np.array([1.0, MEANS[i], RESTS[j], 0.0]), 1.0, best)}


def pretrained(setting: dict, seed: int, batch_size: int, learning_rate: float) -> dict[str, Weights]:
    """Weights of 2d features after pretraining all of u and A on enumerated prompts with the four blocks.

    The targets are TD and true values.  A target with which pretraining diverges is left out.
    """
    discount = setting["discount"]
    start, control = (
        generator(seed, setting["env"], setting["states"], f"mean part {name}") for name in ("start", "control")
    )
    first = initial_weights(2 * setting["dimension"], setting["initial_gain"], start)
    tasks, prompts = distribution(setting, seed), EnumeratedPrompts()
    blocks = training_blocks(tasks, prompts, "values", discount, setting["updates"], seed, batch_size, rollout_steps=1)
    parts = ((block, Split.of(enumerated(block.tasks, discount), control)) for block in blocks)
    prompted = ((block, part.gram, part.queries) for block, part in parts)
    *_, last = pretrain(first, ["td", "values"], setting, learning_rate, prompted)
    return last


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

    - keys of ``FITS``: the numbers with the least mean MSVE; with the target "td", those at the fixed point of TD;
    - ``limit``: the best eta_m and eta_r in the limit of many layers;
    - ``pretrained``: all of u and A, pretrained on prompts with the four blocks; coefficients and ``share`` are those
      of ``fit_test_functions``, and with ``pretrained_form`` those of ``fit_form``;
    - ``ordinary``: the setting's own ``weights``, pretrained on prompts with gamma P phi in one block; coefficients are
      those of the features that are not constant;
    - ``without_mean``, ``without_rest``: these weights with one part taken out of the test functions.
    """
    u, A = (array[:, :, -1] for array in load_arrays(weights, "u", "A"))
    depth, kept = setting["depth"], setting["dimension"] - (setting["features"] == "constant")
    rows = []
    for (case_name, case), seed in product(cases_of(setting).items(), range(seeds)):
        own = case_name == "own"
        rng = generator(seed, "features", setting["states"], "mean part other states")
        tuning, test = (
            Split.of(case.draw(tasks, seed, f"mean part {purpose}"), rng, case.mean) for purpose in ("tuning", "test")
        )
        found = fitted(tuning, test, depth, FITS if own and is_plain(setting) else COMPARED)
        if own and seed < u.shape[1]:
            for i, target in enumerate(setting["targets"]):
                ordinary = Weights(u[i, seed], A[i, seed])
                k, share = fit_two_blocks(ordinary, kept)
                for method, taken_out in TAKEN_OUT.items():
                    left = np.where(np.isin(np.arange(4), taken_out), 0, k)
                    found[target, method] = left, share, test.error(on_blocks(ordinary, taken_out), depth)
        if own and can_show(setting) and seed < pretrained_seeds:
            for target, trained in pretrained(setting, seed, batch_size, learning_rate).items():
                error = test.error(trained, depth)
                found[target, "pretrained"] = *fit_test_functions(trained.A, kept), error
                found[target, "pretrained_form"] = *fit_form(trained.A, kept), error
        for (target, method), (k, share, error) in found.items():
            rows.append((name, case_name, target, seed, method, k[0], *(k[1:] / k[0]), share, error))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
