"""A slider over the snapshots of pretraining, which shows A, its cosine to theta^TD and the MSVE of a cell's runs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import Cell
from ictd.report.tables import rows_with

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
# Colours of negative and positive entries; their opacity is the share of the largest entry.
COLOURS = ("#2166ac", "#b2182b")
WIDTH, HEIGHT = 300, 150  # Of a curve, in its own units.


def runs_of(
    cells: list[str], mean_entries: pd.DataFrame, learning: pd.DataFrame, weights: pd.DataFrame
) -> dict[str, dict]:
    """``run_data`` of each cell by its title, which counts the runs that diverged.

    Runs that diverged are left out, and cells whose runs all diverged.
    """
    runs = {}
    for name in cells:
        cell = Cell.parse(name)._asdict()
        diverged = rows_with(weights, **cell).set_index("seed")["diverged_at"] > 0
        if diverged.all():
            continue
        entries = rows_with(mean_entries, **cell, matrix="A").pivot(
            index="tasks_seen", columns=["row", "column"], values="mean"
        )
        course = rows_with(learning, **cell).pivot(index="seed", columns="tasks_seen")[~diverged]
        width = 2 * cell["states"]
        title = f"{name} ({diverged.sum()} of {len(diverged)} diverged)" if diverged.any() else name
        runs[title] = run_data(
            entries.index.to_numpy(),
            entries.to_numpy().reshape(-1, width, width),
            course["cosine"].to_numpy(),
            course["online_msve"].to_numpy(),
        )
    return runs


def run_data(tasks_seen: np.ndarray, mean_A: np.ndarray, cosines: np.ndarray, msve: np.ndarray) -> dict:
    """Gather what the slider shows of a cell with S runs at K snapshots.

    Parameters
    ----------
    tasks_seen : (K,) array
    mean_A : (K, 2n, 2n) array, means over runs
    cosines : (S, K) array
        Cosines of A to that of theta^TD.
    msve : (S, K) array

    Returns
    -------
    dict with
        tasks : K numbers of tasks
        A : for each snapshot 4 n^2 entries in percent of the largest
        curves : median cosine and median MSVE, each with the points of its curve and its values
    """
    percent = 100 * mean_A / np.abs(mean_A).max(axis=(-2, -1), keepdims=True)
    median_cosine, median_msve = np.median(cosines, axis=0), np.median(msve, axis=0)
    positions = np.log(np.maximum(tasks_seen, 1))
    return {
        "tasks": tasks_seen.tolist(),
        "A": percent.round().astype(int).reshape(len(mean_A), -1).tolist(),
        "curves": [
            _curve(positions, median_cosine, median_cosine),
            _curve(positions, np.log(median_msve), median_msve),
        ],
    }


def _curve(positions: np.ndarray, heights: np.ndarray, values: np.ndarray) -> dict:
    """Points of a curve that fills its picture from its lowest to its highest point, and its values as text."""
    x = 8 + (WIDTH - 16) * _unit(positions)
    y = HEIGHT - 8 - (HEIGHT - 40) * _unit(heights)
    points = np.stack([x, y], axis=1)
    return {"points": points.round(1).tolist(), "values": [f"{value:.3g}" for value in values]}


def _unit(array: np.ndarray) -> np.ndarray:
    """An array moved and scaled to [0, 1]."""
    return (array - array.min()) / (np.ptp(array) or 1)


def slider(runs: dict[str, dict]) -> str:
    """Make the HTML of the slider for ``run_data`` by title; without scripts it shows the first at its end."""
    if not runs:
        return "<p>All runs diverged.</p>"
    first = next(iter(runs.values()))
    last = len(first["tasks"]) - 1
    entries = first["A"][last]
    width = int(len(entries) ** 0.5)
    squares = "".join(
        f'<rect x="{i % width}" y="{i // width}" width="1" height="1" fill="{COLOURS[entry > 0]}"'
        f' fill-opacity="{abs(entry) / 100}"/>'
        for i, entry in enumerate(entries)
    )
    names = ("median cosine to θᵀᴰ", "median MSVE, enumerated prompts")
    curves = "".join(map(_drawn, names, first["curves"]))
    options = "".join(f"<option>{title}</option>" for title in runs)
    return f"""<div class="watch" id="slider" data-colours="{" ".join(COLOURS)}">
<p class="controls" hidden><label>Run <select>{options}</select></label>
<label>Tasks seen <input type="range" min="0" max="{last}" value="{last}"></label>
<output>{first["tasks"][last]:,}</output></p>
<svg viewBox="0 0 {width} {width}" role="img" aria-label="Mean A over its greatest entry">{squares}</svg>
{curves}
<script type="application/json">{json.dumps(runs, separators=(",", ":"))}</script>
<script>
{SCRIPT}</script></div>
"""


def _drawn(name: str, curve: dict) -> str:
    """A curve as SVG, with a circle at its last point."""
    points = " ".join(f"{x},{y}" for x, y in curve["points"])
    x, y = curve["points"][-1]
    return f"""<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name} against tasks seen">
<text x="8" y="16" font-size="12">{name}: <tspan class="value" font-weight="bold">{curve["values"][-1]}</tspan></text>
<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/>
<circle cx="{x}" cy="{y}" r="5" fill="#D55E00"/></svg>"""
