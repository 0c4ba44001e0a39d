"""Gather what the theory's checks found into tables."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.frames import save_table
from ictd.grid import Cell
from ictd.steps import run
from ictd.storage import load_json, load_named

SIDES = ("left_mean", "left_max", "right_mean", "tightest", "violations")
ESTIMATE = ("norm", "standard_error", "noise")
OF_LINE = [f"{space}_{name}" for space in ("looped", "separate") for name in ESTIMATE]


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
                layers = np.arange(len(columns["left_mean"]))
                sides.append(_by_layer(columns, layers, statement=statement, env=path.stem, states=states))
    for path in descents:
        env, states = path.stem.split("-")
        part = load_named(path, "statements", "layers", *SIDES, "algos", "depths", "bound", "sharper", *OF_LINE)
        for j, statement in enumerate(part["statements"]):
            columns = {name: part[name][j] for name in SIDES}
            sides.append(_by_layer(columns, part["layers"], statement=statement, env=env, states=int(states)))
        for j, algo in enumerate(part["algos"]):
            for space, at in (("looped", np.arange(part["bound"].shape[1])), ("separate", part["depths"])):
                columns = {name: part[f"{space}_{name}"][j] for name in ESTIMATE}
                columns |= {name: part[name][j, at] for name in ("bound", "sharper")}
                curves.append(_by_layer(columns, at, algo=algo, space=space, env=env, states=int(states)))
    for path in pretrained:
        cell = Cell.parse(path.stem)._asdict()
        part = load_named(path, "seeds", "positions", "layers", *OF_LINE, "repeated", "theta_td")
        columns = {name: part[name].ravel() for name in OF_LINE}
        line.append(pd.DataFrame({**cell, **_grid(part, "seeds", "positions"), **columns}))
        line[-1]["theta_td"] = part["theta_td"][0]
        columns = {f"{space}_norm": part["repeated"][:, :, i].ravel() for i, space in enumerate(("looped", "separate"))}
        repeated.append(pd.DataFrame({**cell, **_grid(part, "seeds", "layers"), **columns}))
    made = {
        "statements": pd.concat(sides, ignore_index=True),
        "neu": pd.concat(curves, ignore_index=True),
        "pretrained": pd.concat(line, ignore_index=True),
        "repeated": pd.concat(repeated, ignore_index=True),
        "agreement": pd.DataFrame(load_json(agreement)),
        "precision": pd.concat([pd.DataFrame(load_json(path)) for path in precision], ignore_index=True),
    }
    for name, table in made.items():
        save_table(output / f"{name}.csv", table)


def _by_layer(columns: dict[str, np.ndarray], layers: np.ndarray, **names) -> pd.DataFrame:
    """A row a layer."""
    return pd.DataFrame({**names, "layer": layers, **columns})


def _grid(part: dict[str, np.ndarray], first: str, second: str) -> dict[str, np.ndarray]:
    """Columns that number the entries of an array with these two axes, named without the plural's s."""
    pair = np.meshgrid(part[first], part[second], indexing="ij")
    return {name.removesuffix("s"): column.ravel() for name, column in zip((first, second), pair, strict=True)}


if __name__ == "__main__":
    run(main)
