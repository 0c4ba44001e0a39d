"""Compare pretrained Transformers with algorithms on held-out tasks of a setting."""

from pathlib import Path

import numpy as np

from ictd.report.tables import load_table
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights
from ictd.transformer import estimates as transformer_estimates
from studies.features.algorithms import TUNED, estimates, projection, trimmed_mean, tune
from studies.features.symmetric import weights_of
from studies.features.tasks import held_out

# An estimate fails on a task if its MSVE is above this multiple of the mean MSVE of estimates of zero.
FAILED = 10
COLUMNS = ("setting", "method", "seed", "median", "trimmed", "mean", "failed", "first", "second")


def main(name: str, setting: dict, tasks: int, test_tasks: int, weights: Path, best: Path, output: Path) -> None:
    """Write the errors of each method on ``test_tasks`` tasks of each seed, the same for all methods.

    ``median``, ``trimmed`` and ``mean`` are those of the MSVE over tasks, ``trimmed`` without the largest 5%.
    ``failed`` is the share of tasks with an MSVE above 10 times the mean MSVE of estimates of zero.  ``first`` and
    ``second`` are the parameters of a method, tuned on ``tasks`` other tasks.
    """
    depth = setting["depth"]
    tuning = held_out(setting, tasks, 0, "tuning")
    tuned = {method: tune(method, tuning, depth) for method in TUNED}
    numbers = load_table(best)
    numbers = numbers[numbers["target"] == "values"].set_index("family")
    u, A = (array[:, :, -1] for array in load_arrays(weights, "u", "A"))
    rows = []
    for seed in range(setting["seeds"]):
        data = held_out(setting, test_tasks, seed, "test")
        gram = data.gram
        zero = np.zeros((test_tasks, setting["dimension"]))
        fitted = {"zero": zero, "projection": projection(data)}
        parameters = {}
        for family, row in numbers.iterrows():
            B = row[["b11", "b12", "b21", "b22"]].to_numpy(float).reshape(2, 2)
            fitted[family] = transformer_estimates(weights_of(B, setting["dimension"]), gram, depth)
            parameters[family] = row["alpha"], row["eta"]
        for method, chosen in tuned.items():
            x, other = chosen
            (fitted[method],) = estimates(method, data, x, [other], depth)
            parameters[method] = chosen
        for i, target in enumerate(setting["targets"]):
            fitted[f"pretrained_{target}"] = transformer_estimates(Weights(u[i, seed], A[i, seed]), gram, depth)
        scale = FAILED * data.msve(zero).mean()
        for method, w in fitted.items():
            found = summary_of(data.msve(w), scale)
            rows.append((name, method, seed, *found, *parameters.get(method, (np.nan, np.nan))))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def summary_of(errors: np.ndarray, scale: float) -> tuple[float, ...]:
    """Median, trimmed mean, mean, and share above a scale, of errors (N,); NaN counts as infinite."""
    errors = np.where(np.isnan(errors), np.inf, errors)
    return float(np.median(errors)), float(trimmed_mean(errors)), float(errors.mean()), float((errors > scale).mean())
