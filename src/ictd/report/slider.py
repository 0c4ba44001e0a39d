"""Pretraining as one can watch it: a slider over the snapshots of a cell's runs, with A, its cosine and the MSVE."""

import json
from pathlib import Path

import numpy as np

from ictd.report import html
from ictd.report.result_tables import seen_measures
from ictd.storage import load_named
from ictd.transformer import Weights

# Colours of negative and positive entries, whose opacity is their share of the greatest.
COLOURS = ("#2166ac", "#b2182b")
WIDTH, HEIGHT = 300, 150  # of a curve, in its own units

SCRIPT = """
(() => {
  const root = document.currentScript.parentElement, runs = JSON.parse(root.querySelector("script").textContent);
  const [map, ...curves] = root.querySelectorAll("svg"), select = root.querySelector("select");
  const slider = root.querySelector("input"), said = root.querySelector("output");
  let run;
  const show = () => {
    const k = +slider.value;
    run.A[k].forEach((entry, i) => {
      const square = map.children[i];
      square.setAttribute("fill", entry < 0 ? "NEGATIVE" : "POSITIVE");
      square.setAttribute("fill-opacity", Math.abs(entry) / 100);
    });
    curves.forEach((svg, i) => {
      const [x, y] = run.curves[i].points[k];
      svg.querySelector("circle").setAttribute("cx", x);
      svg.querySelector("circle").setAttribute("cy", y);
      svg.querySelector(".value").textContent = run.curves[i].values[k];
    });
    said.textContent = run.tasks[k].toLocaleString("en");
  };
  const choose = () => {
    run = runs[select.value];
    const width = Math.sqrt(run.A[0].length);
    map.setAttribute("viewBox", `0 0 ${width} ${width}`);
    map.innerHTML = run.A[0].map((_, i) =>
      `<rect x="${i % width}" y="${Math.floor(i / width)}" width="1" height="1"/>`).join("");
    curves.forEach((svg, i) => svg.querySelector("polyline").setAttribute("points", run.curves[i].points.join(" ")));
    slider.max = run.tasks.length - 1;
    show();
  };
  slider.addEventListener("input", show);
  select.addEventListener("change", choose);
  root.querySelector(".controls").hidden = false;
  choose();
})();
""".replace("NEGATIVE", COLOURS[0]).replace("POSITIVE", COLOURS[1])


def main(weights: list[Path], discount: float, output: Path) -> None:
    """Write the page for the runs of all cells; those that diverged are left out, and cells without others."""
    runs = {}
    for path in weights:
        found = load_named(path, "tasks_seen", "online_msve", "history_u", "history_A", "diverged_at")
        kept, tasks_seen = found["diverged_at"] == 0, found["tasks_seen"]
        if kept.any():
            history = Weights(found["history_u"][kept], found["history_A"][kept])
            to_theta = seen_measures(history, discount)["cosine"]
            left_out = f" ({(~kept).sum()} of {len(kept)} diverged)" if not kept.all() else ""
            runs[path.stem + left_out] = run_data(tasks_seen, history.A, to_theta, found["online_msve"][kept])
    html.save(output, "slider", slider(runs))


def run_data(tasks_seen: np.ndarray, A: np.ndarray, to_theta: np.ndarray, msve: np.ndarray) -> dict:
    """What the slider shows of a cell with S runs at K snapshots.

    Parameters
    ----------
    tasks_seen : (K,) array
    A : (S, K, 2n, 2n) array
    to_theta : (S, K) array
        Cosine of A to theta^TD's.
    msve : (S, K) array

    Returns
    -------
    dict with
        tasks : K numbers of tasks
        A : of each snapshot the mean over runs, 4 n^2 entries in percent of the greatest
        curves : median cosine, and median MSVE, each with points of its curve and values
    """
    mean = A.mean(axis=0)
    percent = 100 * mean / np.abs(mean).max(axis=(-2, -1), keepdims=True)
    cosines, errors = np.median(to_theta, axis=0), np.median(msve, axis=0)
    place = np.log(np.maximum(tasks_seen, 1))
    return {
        "tasks": tasks_seen.tolist(),
        "A": percent.round().astype(int).reshape(len(mean), -1).tolist(),
        "curves": [_curve(place, cosines, cosines), _curve(place, np.log(errors), errors)],
    }


def _curve(place: np.ndarray, heights: np.ndarray, values: np.ndarray) -> dict:
    """A curve's points, from its least to its greatest height, and what is said of each."""
    unit = lambda array: (array - array.min()) / (np.ptp(array) or 1)  # noqa: E731
    points = np.stack([8 + (WIDTH - 16) * unit(place), HEIGHT - 8 - (HEIGHT - 40) * unit(heights)], axis=1)
    return {"points": points.round(1).tolist(), "values": [f"{value:.3g}" for value in values]}


def slider(runs: dict[str, dict]) -> str:
    """The slider over cells by name as HTML, which shows the last snapshot of the first where scripts are off."""
    if not runs:
        return "<p>All runs diverged.</p>"
    first = next(iter(runs.values()))
    width = int(len(first["A"][-1]) ** 0.5)
    squares = "".join(
        f'<rect x="{i % width}" y="{i // width}" width="1" height="1" fill="{COLOURS[entry > 0]}"'
        f' fill-opacity="{abs(entry) / 100}"/>'
        for i, entry in enumerate(first["A"][-1])
    )
    names = ("median cosine to θᵀᴰ", "median MSVE, enumerated prompts")
    curves = "".join(map(_drawn, names, first["curves"]))
    options = "".join(f"<option>{name}</option>" for name in runs)
    return f"""<div class="watch" id="slider">
<p class="controls" hidden><label>Run <select>{options}</select></label>
<label>Tasks seen <input type="range" min="0" max="{len(first["tasks"]) - 1}" value="{len(first["tasks"]) - 1}"></label>
<output>{first["tasks"][-1]:,}</output></p>
<svg viewBox="0 0 {width} {width}" role="img" aria-label="Mean A over its greatest entry">{squares}</svg>
{curves}
<script type="application/json">{json.dumps(runs, separators=(",", ":"))}</script>
<script>{SCRIPT}</script></div>
"""


def _drawn(name: str, curve: dict) -> str:
    points = " ".join(f"{x},{y}" for x, y in curve["points"])
    x, y = curve["points"][-1]
    return f"""<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name} against tasks seen">
<text x="8" y="16" font-size="13">{name}: <tspan class="value" font-weight="bold">{curve["values"][-1]}</tspan></text>
<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/>
<circle cx="{x}" cy="{y}" r="5" fill="#D55E00"/></svg>"""
