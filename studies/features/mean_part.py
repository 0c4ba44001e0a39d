"""Does the second part of the learned update weigh the mean TD error?

Next features are their mean m over the columns of a prompt and a rest (``algorithms.blocks_of``).  The best test
functions for columns with the weights mu are (I - gamma P~)^{-1} phi, with the reversed chain P~ (Scherrer, ICML 2010).
P~ keeps the mean under mu, so their mean is m / (1 - gamma) for any chain.  To first order their rest is
gamma (P~ phi - m), so eta_r is about 1 for a reversible chain.  If a constant is a feature, LSTD sets the mean TD error
to zero, and eta_m has no effect.
"""

from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights, estimates, initial_weights
from studies.features.algorithms import DIRECTIONS, blocks_of, fit, td, trimmed_mean
from studies.features.measures import block_coefficients
from studies.features.pretrain import blocks_of_training, pretrain
from studies.features.setting import Setting
from studies.features.tasks import HeldOut, held_out

COLUMNS = "setting", "columns", "seed", "method", "mean", "rest", "trimmed"


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
    """Write the coefficients eta_m and eta_r and the error of each method, for each seed.

    ``trimmed`` is the trimmed mean of the MSVE on other tasks than those of the fits.  The methods are

    - those of ``DIRECTIONS``: numbers with the least mean MSVE, also for "weighted" columns and "reversible" chains;
    - ``pretrained_values`` and ``pretrained_td``: all of u and A, pretrained on prompts that show both parts;
    - ``ordinary``: the setting's own ``weights``, pretrained towards true values on ordinary prompts;
    - ``without_mean``, ``without_rest``: these weights with one part taken out of their test functions.

    With a constant feature there are fits only.
    """
    given = Setting(**setting)
    plain = given.features == "normal"
    place = given.targets.index("values")
    u, A = (array[place] for array in load_arrays(weights, "u", "A"))
    rows = []
    for columns in ("equal", "weighted", "reversible") if plain else ("equal",):
        for seed in range(seeds):
            tuning, test = (
                held_out(given, tasks, seed, f"mean part {purpose}", columns) for purpose in ("tuning", "test")
            )
            found = fits(tuning, test, given.depth)
            if columns == "equal" and plain:
                found |= taken_out(Weights(u[seed], A[seed]), test, given.depth)
                if seed < pretrained_seeds:
                    found |= pretrained(given, seed, batch_size, learning_rate)
            rows += [(name, columns, seed, method, *numbers) for method, numbers in found.items()]
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def fits(tuning: HeldOut, test: HeldOut, depth: int) -> dict[str, tuple[float, float, float]]:
    """eta_m, eta_r and the error of each method of ``DIRECTIONS``."""
    found = {}
    for method, directions in DIRECTIONS.items():
        numbers = fit(tuning, blocks_of(tuning, method), depth)
        w, _ = td(test, blocks_of(test, method), numbers, depth)
        alpha, mean, rest = numbers @ directions
        found[method] = mean / alpha, rest / alpha, float(trimmed_mean(test.msve(w)))
    return found


def taken_out(weights: Weights, test: HeldOut, depth: int) -> dict[str, tuple[float, float, float]]:
    """Errors of weights pretrained on ordinary prompts, with and without one part in their test functions."""
    (mean,) = blocks_of(test, "mean")[1:]
    shown = {"ordinary": test.following, "without_mean": test.following - mean, "without_rest": mean}
    found = {}
    for method, second in shown.items():
        w = estimates(weights, gram_matrix(test, [test.phi, test.following], [test.phi, second]), depth)
        found[method] = np.nan, np.nan, float(trimmed_mean(test.msve(w)))
    return found


def gram_matrix(data: HeldOut, columns: list[np.ndarray], functions: list[np.ndarray]) -> np.ndarray:
    """Matrix G (N, D, D) of prompts with the columns x = [blocks; r], sum_s c(s) x(s) z(s)'.

    The blocks of z that a Transformer adds to its estimate may differ from those of x (``ictd.transformer``: k_l is a
    weighted sum of columns, and only TD errors read A M).
    """
    reward = data.tasks.reward[..., None]
    x, z = (np.concatenate([*blocks, reward], axis=-1) for blocks in (columns, functions))
    return (data.weight[..., None] * x).mT @ z


def pretrained(
    setting: Setting, seed: int, batch_size: int, learning_rate: float
) -> dict[str, tuple[float, float, float]]:
    """eta_m and eta_r after pretraining on prompts with the blocks phi, gamma m, gamma (P phi - m) and a control.

    Transformers of 2d features read the four blocks as two.
    """
    found = {}
    for target in ("values", "td"):
        start, control = (
            generator(seed, setting.env, setting.states, f"mean part {name}") for name in ("start", "control")
        )
        first = initial_weights(2 * setting.dimension, setting.initial_gain, start)
        blocks = blocks_of_training(setting, target, seed, batch_size, rollout_steps=1)
        prompted = ((block, *split_prompts(block.tasks, setting.discount, control)) for block in blocks)
        k, _ = block_coefficients(pretrain(first, setting, learning_rate, prompted).A)
        found[f"pretrained_{target}"] = k[1] / k[0], k[2] / k[0], np.nan
    return found


def split_prompts(tasks: Tasks, discount: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Matrices G (N, 4d+1, 4d+1) and queries [phi; 0] (N, n, 2d) of enumerated prompts with four blocks.

    The control is the rest of other states, in random order.
    """
    data = HeldOut(tasks, np.full_like(tasks.reward, 1 / tasks.states), discount)
    parts = blocks_of(data, "split")
    order = rng.permuted(np.broadcast_to(np.arange(tasks.states), tasks.reward.shape), axis=1)
    columns = [*parts, np.take_along_axis(parts[2], order[..., None], axis=1)]
    return gram_matrix(data, columns, columns), np.concatenate([data.phi, np.zeros_like(data.phi)], axis=-1)
