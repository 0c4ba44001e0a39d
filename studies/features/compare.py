"""Compare pretrained Transformers with algorithms on held-out tasks of a setting."""

from pathlib import Path

import numpy as np

from ictd.context import Context
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights
from ictd.transformer import estimates as transformer_estimates
from studies.features.algorithms import LSTD, blocks_of, fit, lstd, projection, td, trimmed_mean, tuned_lstd
from studies.features.setting import Setting
from studies.features.tasks import held_out

COLUMNS = "setting", "method", "seed", "trimmed", "median"


def main(name: str, setting: dict, tuning_tasks: int, test_tasks: int, weights: Path, output: Path) -> None:
    """Write the errors of each method on ``test_tasks`` tasks of each seed, the same for all methods.

    ``trimmed`` is the mean of the MSVE over tasks without the largest 5%, and ``median`` the median.  The parameters of
    the algorithms are tuned on ``tuning_tasks`` other tasks.
    """
    given = Setting(**setting)
    u, A = load_arrays(weights, "u", "A")
    tuning = held_out(given, tuning_tasks, 0, "tuning")
    numbers = {method: fit(tuning, blocks_of(tuning, method), given.depth) for method in ("td", "eta")}
    tuned = {method: tuned_lstd(method, tuning) for method in LSTD}
    rows = []
    for seed in range(given.seeds):
        data = held_out(given, test_tasks, seed, "test")
        found = {"zero": np.zeros((test_tasks, given.dimension)), "projection": projection(data)}
        for method, best in numbers.items():
            found[method], _ = td(data, blocks_of(data, method), best, given.depth)
        for method, (x, ridge) in tuned.items():
            (found[method],) = lstd(data, LSTD[method][0], x, [ridge])
        G = Context.enumerated(data.tasks.transition, data.tasks.reward, data.phi).gram_matrix(given.discount)
        for target, own_u, own_A in zip(given.targets, u[:, seed], A[:, seed], strict=True):
            found[f"pretrained_{target}"] = transformer_estimates(Weights(own_u, own_A), G, given.depth)
        for method, w in found.items():
            errors = data.msve(w)
            rows.append((name, method, seed, float(trimmed_mean(errors)), float(np.median(errors))))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
