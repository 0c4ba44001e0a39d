"""Gather the values, yardsticks and weights of pretraining on sampled contexts."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.decomposition import decomposition_measures
from ictd.frames import save_table
from ictd.steps import run
from ictd.storage import join_arrays, load_arrays
from ictd.weights import Weights

TRAINED = ("algo", "env", "states", "depth", "discount")


def main(runs: list[Path], values: list[Path], paper: list[Path], yardsticks: list[Path], output: Path) -> None:
    """Write ``values``, ``yardsticks`` and ``shapes``, the measures of the last weights, as CSV into ``output``."""
    found = [values_table(path, "contexts") for path in values] + [values_table(path, "enumerated") for path in paper]
    tables = {
        "values": pd.concat(found, ignore_index=True),
        "yardsticks": pd.concat([yardsticks_table(path) for path in yardsticks], ignore_index=True),
        "shapes": pd.concat([shapes_table(path) for path in dict.fromkeys(runs)], ignore_index=True),
    }
    for name, table in tables.items():
        save_table(output / f"{name}.csv", table)


def named(path: Path) -> dict[str, str]:
    """The setting that a folder is named after; the paper's cells have no discount in their names."""
    return dict(zip(TRAINED, path.name.split("-"), strict=False))


def values_table(path: Path, prompts: str) -> pd.DataFrame:
    """A row a seed, snapshot and context length."""
    names = ("seeds", "tasks_seen", "context_lengths", "mean", "median")
    seeds, seen, lengths, mean, median = load_arrays(path, *names)
    env, discount = path.stem.rsplit("-", 1)
    axes = np.meshgrid(seeds, seen, lengths, indexing="ij")
    columns = {name: axis.ravel() for name, axis in zip(("seed", "tasks_seen", "context_length"), axes, strict=True)}
    place = {"discount": discount, **named(path.parent), "on_env": env, "on_discount": discount, "prompts": prompts}
    return pd.DataFrame({**place, **columns, "mean": mean.ravel(), "median": median.ravel()})


def yardsticks_table(path: Path) -> pd.DataFrame:
    """A row a method and context length."""
    methods, lengths, msve = load_arrays(path, "methods", "context_lengths", "msve")
    method, length = (axis.ravel() for axis in np.meshgrid(methods, lengths, indexing="ij"))
    place = dict(zip(("env", "states", "discount"), path.stem.split("-"), strict=True))
    columns = {"mean": msve.mean(axis=-1).ravel(), "median": np.median(msve, axis=-1).ravel()}
    return pd.DataFrame({**place, "method": method, "context_length": length, **columns})


def shapes_table(path: Path) -> pd.DataFrame:
    """A row a seed and snapshot: the measures of its weights."""
    seeds, seen, u, A = join_arrays([path], "seeds", "tasks_seen", "history_u", "history_A")
    place = named(path.parent)
    measures = decomposition_measures(Weights(u, A), float(place["discount"]))
    seed, tasks = (axis.ravel() for axis in np.meshgrid(seeds, seen, indexing="ij"))
    columns = {name: measure.ravel() for name, measure in measures.items()}
    return pd.DataFrame({**place, "seed": seed, "tasks_seen": tasks, **columns})


if __name__ == "__main__":
    run(main)
