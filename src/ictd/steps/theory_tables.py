"""Gather what the theory's checks found into tables."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.frames import save_table
from ictd.grid import Cell
from ictd.steps import run
from ictd.storage import load_json, load_named

SIDES = ("left_mean", "left_max", "right_mean", "tightest", "violations")
NEU = ("norm", "standard_error", "noise", "bound", "sharper")
LINE = [f"{space}_{field}" for space in ("looped", "separate") for field in ("norm", "standard_error", "noise")]


def main(
    values: list[Path], descents: list[Path], pretrained: list[Path], agreement: Path, precision: list[Path],
    output: Path,
) -> None:  # fmt: skip
    """Write statements, neu, pretrained, repeated, agreement and precision as CSV into the folder ``output``."""
    sides, curves, line, repeated = [], [], [], []
    for path in values:
        part = load_named(path, "states", "statements", *SIDES)
        for i, states in enumerate(part["states"]):
            for j, statement in enumerate(part["statements"]):
                columns = {name: part[name][i, j] for name in SIDES}
                sides.append(_by_layer(columns, statement=statement, env=path.stem, states=states))
    for path in descents:
        env, states = path.stem.split("-")
        part = load_named(path, "statements", *SIDES, "algos", *NEU, "depths", "separate")
        for j, statement in enumerate(part["statements"]):
            columns = {name: part[name][j] for name in SIDES}
            sides.append(_by_layer(columns, statement=statement, env=env, states=int(states)))
        for j, algo in enumerate(part["algos"]):
            columns = {name: part[name][j] for name in NEU}
            columns["separate"] = np.full_like(columns["norm"], np.nan)
            columns["separate"][part["depths"]] = part["separate"][j]
            curves.append(_by_layer(columns, algo=algo, env=env, states=int(states)))
    for path in pretrained:
        cell = Cell.parse(path.stem)._asdict()
        part = load_named(path, "seeds", "positions", "depths", *LINE, "repeated", "theta_td")
        seed, position = np.meshgrid(part["seeds"], part["positions"], indexing="ij")
        columns = {"seed": seed, "position": position, **{name: part[name] for name in LINE}}
        line.append(pd.DataFrame({**cell, **{name: column.ravel() for name, column in columns.items()}}))
        line[-1]["theta_td"] = part["theta_td"][0]
        looped, separate = part["repeated"].T
        columns = {"seed": part["seeds"][0], "layers": part["depths"], "looped_norm": looped, "separate_norm": separate}
        repeated.append(pd.DataFrame({**cell, **columns}))
    statements = pd.concat(sides, ignore_index=True).dropna(subset=["left_mean"])
    made = {
        "statements": statements,
        "neu": pd.concat(curves, ignore_index=True),
        "pretrained": pd.concat(line, ignore_index=True),
        "repeated": pd.concat(repeated, ignore_index=True),
        "agreement": pd.DataFrame(load_json(agreement)),
        "precision": pd.concat([pd.DataFrame(load_json(path)) for path in precision], ignore_index=True),
    }
    for name, table in made.items():
        save_table(output / f"{name}.csv", table)


def _by_layer(columns: dict[str, np.ndarray], **names) -> pd.DataFrame:
    """A row a layer."""
    return pd.DataFrame({**names, "layer": np.arange(len(columns[next(iter(columns))])), **columns})


if __name__ == "__main__":
    run(main)
