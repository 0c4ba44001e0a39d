"""A slider over the snapshots of pretraining, which shows A, its pattern and the MSVE of a cell's runs."""

import json
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import Cell
from ictd.report.html import attribute, text
from ictd.report.tables import rows_with
from ictd.report.verdicts import in_words
from ictd.transformer import Weights
from ictd.weight_measures import pattern_shares, project_identifiable

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
# Colours of negative and positive entries; their opacity is the share of the largest entry.
COLOURS = ("#2166ac", "#b2182b")
# Of the picture of a curve, and of its margins, in its own units.
WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 26, 10, 38
# Labels of the two curves.
LABELS = ("squared cosine of mean A to theta^TD", "training error (median over trials)")


def runs_of(
    cells: list[str], mean_entries: pd.DataFrame, learning: pd.DataFrame, weights: pd.DataFrame, discount: float
) -> dict[str, dict]:
    """``run_data`` of each cell by its title, which counts the runs that diverged.

    Runs that diverged are left out, and cells whose runs all diverged.  The squared cosine, zero if the cosine
    is negative, is that of the mean identifiable A, as in the table of the mean weights.
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
        errors = rows_with(learning, **cell).pivot(index="seed", columns="tasks_seen", values="online_msve")[~diverged]
        width = 2 * cell["states"]
        mean_A = entries.to_numpy().reshape(-1, width, width)
        identifiable = project_identifiable(Weights(np.zeros((len(mean_A), width)), mean_A), discount).A
        shares = pattern_shares(identifiable)["pattern"]
        title = in_words(name)
        if diverged.any():
            title += f" ({diverged.sum()} of {len(diverged)} diverged)"
        runs[title] = run_data(entries.index.to_numpy(), mean_A, shares, errors.to_numpy())
    return runs


def run_data(tasks_seen: np.ndarray, mean_A: np.ndarray, shares: np.ndarray, msve: np.ndarray) -> dict:
    """Gather what the slider shows of a cell with S runs at K snapshots.

    Parameters
    ----------
    tasks_seen : (K,) array
    mean_A : (K, 2n, 2n) array, means over runs
    shares : (K,) array, squared cosines of the mean A to that of theta^TD
    msve : (S, K) array

    Returns
    -------
    dict with
        tasks : K numbers of tasks
        A : for each snapshot 4 n^2 entries in percent of the largest
        curves : squared cosine and median MSVE, each with its axes in SVG, the points of its curve, and its values
    """
    percent = 100 * mean_A / np.abs(mean_A).max(axis=(-2, -1), keepdims=True)
    median_msve = np.median(msve, axis=0)
    seen = np.log10(np.maximum(tasks_seen, 1))
    decades = np.floor(np.log10(median_msve.min())), np.ceil(np.log10(median_msve.max()))
    return {
        "tasks": tasks_seen.tolist(),
        "A": percent.round().astype(int).reshape(len(mean_A), -1).tolist(),
        "curves": [
            _curve(seen, shares, {"0": 0, "0.5": 0.5, "1": 1}, shares),
            _curve(seen, np.log10(median_msve), _decades(*decades), median_msve),
        ],
    }


def _decades(first: float, last: float) -> dict[str, float]:
    """Logarithms of the powers of ten of a logarithmic axis, at most about five of them, by their labels."""
    step = max(1, int(np.ceil((last - first) / 5)))
    return {f"{10.0**power:,.10g}": float(power) for power in np.arange(first, last + 1, step)}


def _curve(x: np.ndarray, y: np.ndarray, ticks: dict[str, float], values: np.ndarray) -> dict:
    """A curve of ``values`` at (x, y): its axes in SVG, its points in units of the picture, and its values as text.

    The horizontal axis is that of the logarithm of the number of tasks; ``ticks`` are those of the vertical axis.
    """
    tasks = _decades(np.floor(x.min()), np.floor(x.max()))
    low, high = min(*ticks.values(), y.min()), max(*ticks.values(), y.max())
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(at):
        return LEFT + (right - LEFT) * (at - x.min()) / (np.ptp(x) or 1)

    def down(at):
        return bottom - (bottom - TOP) * (at - low) / ((high - low) or 1)

    axes = f'<path d="M{LEFT},{TOP}V{bottom}H{right}" fill="none" stroke="currentColor"/>'
    for label, at in tasks.items():
        if at >= x.min():
            place = f"{across(at):.1f}"
            axes += f'<path d="M{place},{bottom}v4" stroke="currentColor"/>'
            axes += f'<text x="{place}" y="{bottom + 16}" text-anchor="middle">{label}</text>'
    for label, at in ticks.items():
        place = down(at)
        axes += f'<path d="M{LEFT},{place:.1f}h-4" stroke="currentColor"/>'
        axes += f'<text x="{LEFT - 7}" y="{place + 4:.1f}" text-anchor="end">{label}</text>'
    axes += f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 5}" text-anchor="middle">tasks seen</text>'
    points = np.stack([across(x), down(y)], axis=1)
    return {"axes": axes, "points": points.round(1).tolist(), "values": [f"{value:.4g}" for value in values]}


def slider(runs: dict[str, dict]) -> str:
    """Make the HTML of the slider for ``run_data`` by title.

    It begins with the first snapshot of the first run; without scripts this is all that it shows.
    """
    if not runs:
        return "<p>All runs diverged.</p>"
    first = next(iter(runs.values()))
    entries = first["A"][0]
    width = int(len(entries) ** 0.5)
    squares = "".join(
        f'<rect x="{i % width}" y="{i // width}" width="1" height="1" fill="{COLOURS[entry > 0]}"'
        f' fill-opacity="{abs(entry) / 100}"/>'
        for i, entry in enumerate(entries)
    )
    curves = "".join(map(_drawn, LABELS, first["curves"]))
    options = "".join(f"<option>{escape(title)}</option>" for title in runs)
    data = json.dumps(runs, separators=(",", ":")).replace("</", "<\\/")
    return f"""<div class="watch" id="slider" data-colours="{" ".join(COLOURS)}">
<p class="controls" hidden><label>Run <select>{options}</select></label>
<label>Tasks seen <input type="range" min="0" max="{len(first["tasks"]) - 1}" value="0"></label></p>
<p><span>Number of tasks: <output>{first["tasks"][0]:,}</output></span></p>
<figure><figcaption>mean A, scaled by its largest entry</figcaption>
<svg class="map" viewBox="0 0 {width} {width}" role="img" aria-label="Mean A, scaled by its largest entry">
{squares}</svg></figure>
{curves}
<script type="application/json">{data}</script>
<script>
{SCRIPT}</script></div>
"""


def _drawn(label: str, curve: dict) -> str:
    """A curve as SVG below its label and value, with a circle at its first point."""
    points = " ".join(f"{x},{y}" for x, y in curve["points"])
    x, y = curve["points"][0]
    return f"""<figure><figcaption>{text(label)}: <b class="value">{curve["values"][0]}</b></figcaption>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{attribute(label)} against tasks seen"
font-size="12" fill="currentColor">
<g>{curve["axes"]}</g>
<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/>
<circle cx="{x}" cy="{y}" r="5" fill="#D55E00"/></svg></figure>"""
