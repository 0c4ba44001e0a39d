"""Gather what the theory's checks found into tables."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.storage import load_json, load_named
from ictd.tables import long_table, save_tables
from ictd.theory.embeddings import ALGOS
from ictd.theory.family import MEMBERS

SIDES = ("left_mean", "left_max", "right_mean", "tightest", "violations")
ESTIMATE = ("norm", "standard_error", "noise")
OF_LINE = [f"{space}_{name}" for space in ("looped", "separate") for name in ESTIMATE]


def main(
    values: list[Path], descents: list[Path], agreement: Path, families: list[Path], precision: list[Path], output: Path
) -> None:  # fmt: skip
    """Write statements, neu, agreement, precision, family and family_updates as CSV into the folder ``output``."""
    sides, curves, members, updates = [], [], [], []
    for path in values:
        part = load_named(path, "states", "statements", *SIDES)
        for i, states in enumerate(part["states"]):
            for j, statement in enumerate(part["statements"]):
                columns = {name: part[name][i, j] for name in SIDES}
                layers = {"layer": np.arange(len(columns["left_mean"]))}
                sides.append(long_table(layers, columns, statement=statement, env=path.stem, states=states))
    for path in descents:
        env, states = path.stem.split("-")
        place = {"env": env, "states": int(states)}
        part = load_named(path, "statements", "layers", *SIDES, "algos", "depths", "bound", "sharper", *OF_LINE)
        for j, statement in enumerate(part["statements"]):
            columns = {name: part[name][j] for name in SIDES}
            sides.append(long_table({"layer": part["layers"]}, columns, statement=statement, **place))
        for j, algo in enumerate(part["algos"]):
            for space, at in (("looped", np.arange(part["bound"].shape[1])), ("separate", part["depths"])):
                columns = {name: part[f"{space}_{name}"][j] for name in ESTIMATE}
                columns |= {name: part[name][j, at] for name in ("bound", "sharper")}
                curves.append(long_table({"layer": at}, columns, algo=algo, space=space, **place))
    for path in families:
        env, states = path.stem.split("-")
        place = {"env": env, "states": int(states)}
        part = load_named(path, "errors", "bound", "violations", "depths", "updates")
        draws, layers = np.arange(len(part["violations"])), np.arange(len(part["bound"]))
        for member, errors in zip(MEMBERS, part["errors"], strict=True):
            axes = {"draw": draws, "layer": layers}
            members.append(long_table(axes, {"error": errors}, member=member, **place))
            members[-1]["bound"] = np.tile(part["bound"], len(draws)) if member == "inside" else np.nan
            counted = part["violations"] if member == "inside" else np.zeros(len(draws), int)
            members[-1]["violations"] = np.repeat(counted, len(layers))
        for algo, norms in zip(ALGOS, part["updates"], strict=True):
            updates.append(long_table({"draw": draws, "layer": part["depths"]}, {"norm": norms}, algo=algo, **place))
    made = {
        "statements": sides,
        "neu": curves,
        "agreement": pd.DataFrame(load_json(agreement)),
        "family": members,
        "family_updates": updates,
        "precision": [pd.DataFrame(load_json(path)) for path in precision],
    }
    save_tables(output, made)
