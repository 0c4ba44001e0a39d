"""Gather what was found at pretrained weights into tables."""

from pathlib import Path

from ictd.pipeline.grid import Cell
from ictd.storage import load_named
from ictd.tables import long_table, save_tables
from ictd.theory.tables import OF_LINE


def main(pretrained: list[Path], output: Path) -> None:
    """Write pretrained and repeated as CSV into the folder ``output``."""
    line, repeated = [], []
    for path in pretrained:
        cell = Cell.parse(path.stem)._asdict()
        part = load_named(path, "seeds", "positions", "layers", *OF_LINE, "repeated", "theta_td")
        axes = {"seed": part["seeds"], "position": part["positions"]}
        line.append(long_table(axes, {name: part[name] for name in OF_LINE}, **cell))
        line[-1]["theta_td"] = part["theta_td"][0]
        columns = {f"{space}_norm": part["repeated"][:, :, i] for i, space in enumerate(("looped", "separate"))}
        repeated.append(long_table({"seed": part["seeds"], "layer": part["layers"]}, columns, **cell))
    save_tables(output, {"pretrained": line, "repeated": repeated})
