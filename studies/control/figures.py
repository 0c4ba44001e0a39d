"""Draw control in context: beside yardsticks, what limits it, regret, and one run."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from ictd.statistics import bootstrap_interval
from studies.control.measured import Offline, Online

TD, MC, THETA, LSTD, (BLACK, ORANGE, SKY, *_) = *(COLOURS[name] for name in ("td", "mc", "theta_td", "lstd")), LINES
LOOKS = {
    "smoothed": ("smoothed model", ORANGE, "-"), "lspi": ("LSPI", LSTD, "-"), "mc": (NAMES["mc"], MC, "-"),
    "theta_td": (NAMES["theta_td"], THETA, "-"), "td": (NAMES["td"], TD, "-"), "paper_td": ("as the paper", TD, "--"),
    "lspi_mean": ("LSPI, mean process", LSTD, ":"), "posterior": ("posterior sampling", BLACK, "-"),
    "q_learning": ("Q-learning", SKY, "-"), "sarsa": (r"SARSA($\lambda$)", SKY, ":"),
    "td pseudo_steps": ("TD, pseudo-steps", TD, ":"),
}  # fmt: skip
LIMITS = {
    "": ("as it is", BLACK, "-"), " half_error": ("half of its error", BLACK, ":"),
    " exact_unseen": ("exact where not seen", ORANGE, "-"), " exact_as_unseen": ("exact in as many pairs", ORANGE, ":"),
    " random_error": ("random errors", SKY, "-"), " random_advantage": ("random advantages", SKY, ":"),
    " aligned_advantage": ("random, as much against the truth", SKY, "--"),
}  # fmt: skip


def main(variants: dict, offline: list[Path], online: Path, output: Path) -> None:
    """Write each figure as PNG and SVG; ``offline`` is that of the first place."""
    at, of, share = Offline(offline[0]), Online(online), "share of the way"
    first = next(name for name in at.methods if name in variants)
    shown, panels = [name for name in LOOKS if name in at.methods and name != "paper_td"], {}
    for what, title in (("", "beside smoothed"), ("error", "error of q"), ("advantage_error", "error of advantages")):
        found = [at.of(what, name) if what else at.share(name) - at.share("smoothed") for name in shown]
        panels[title] = [(at.lengths, one, LOOKS[name]) for name, one in zip(shown, found, strict=True)]
    save(lines(panels, "transitions", share, ("x", "xy", "xy")), output / "offline.png")
    panels = {}
    for title, name in (("Transformer", first), ("smoothed model", "smoothed")):
        panels[title] = [(at.lengths, at.share(name + kind), look) for kind, look in LIMITS.items()]
    save(lines(panels, "transitions", share, ("x", "x"), sharey=True), output / "limits.png")
    panels, acts = {}, [name for name in LOOKS if name in of.methods]
    for rule in of.rules:
        panels[rule] = [(of.arrays["steps"], of.of("regret", name, rule).swapaxes(1, 2), LOOKS[name]) for name in acts]
    save(lines(panels, "steps", "regret", ("", ""), sharey=True), output / "regret.png")
    save(run(at.arrays), output / "run.png")


def lines(panels: dict[str, list], xlabel: str, ylabel: str, logs: tuple, **given) -> Figure:
    """A panel a title, with lines (x, samples (seeds, X, N), look): means over seeds and N, 95% intervals over N."""
    figure, (grid,) = plt.subplots(1, len(panels), figsize=(WIDTH, 2.4), squeeze=False, **given)
    for axes, (title, drawn), log in zip(grid, panels.items(), logs, strict=True):
        for x, samples, (label, colour, style) in drawn:
            axes.plot(x, samples.mean(axis=(0, 2)), color=colour, ls=style, lw=1.2, marker="o", ms=2, label=label)
            ends = np.array([bootstrap_interval(one) for one in samples.mean(axis=0)])
            axes.fill_between(x, *ends.T, color=colour, alpha=0.15, lw=0)
        axes.set(xlabel=xlabel, title=title, **{f"{axis}scale": "log" for axis in log})
    grid[0].set_ylabel(ylabel)
    legend(figure)
    return figure


def run(of: dict[str, np.ndarray]) -> Figure:
    """Policies of one run on the process's graph, with q of each action as estimated and as it is."""
    q, p, states = of["run_q"], of["run_transition"], len(of["run_counts"])
    figure, grid = plt.subplots(1, len(q), figsize=(WIDTH, 2.2))
    where = [(np.cos(angle), np.sin(angle)) for angle in 2 * np.pi * (np.arange(states) / states + 0.125)]
    arrow = {"arrowstyle": "->", "color": TD, "shrinkA": 24, "shrinkB": 24, "connectionstyle": "arc3,rad=0.2"}
    for k, axes in enumerate(grid):
        best = q[k].argmax(axis=-1)
        for s, j in np.ndindex(states, states):
            if s != j and p[s, best[s], j] > 0.05:
                axes.annotate("", where[j], where[s], arrowprops=arrow | {"lw": 2.5 * p[s, best[s], j]})
        for s, place in enumerate(where):
            pairs = enumerate(zip(q[k, s], of["run_exact"][k, s], strict=True))
            text = [f"{'►' if a == best[s] else '   '} {one:.1f} ({true:.1f})" for a, (one, true) in pairs]
            box = {"boxstyle": "round", "fc": "#ffffff", "ec": THETA if of["run_optimal"][s, best[s]] else MC}
            axes.text(*place, "\n".join(text), ha="center", va="center", fontsize=6, bbox=box)
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.2, 1.2), title=f"iteration {k + 1}")
        axes.set_axis_off()
    return figure
