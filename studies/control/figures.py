"""Draw control in context: beside yardsticks, what limits it, its variants, regret, and one run."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from ictd.statistics import bootstrap_interval
from studies.control.grid import but_for
from studies.control.measured import Offline, Online

THETA, LSTD, (BLACK, ORANGE, SKY, PURPLE, *_) = *(COLOURS[name] for name in ("theta_td", "lstd")), LINES
BESIDE = {
    "smoothed": ("smoothed model", ORANGE, "-"), "lspi": ("LSPI", LSTD, "-"),
    "lspi_mean": ("LSPI, mean process", LSTD, ":"), "theta_td": (NAMES["theta_td"], THETA, "-"),
    "posterior": ("posterior sampling", BLACK, "-"), "q_learning": ("Q-learning", SKY, "-"),
}  # fmt: skip
LIMITS = {
    "": ("as it is", BLACK, "-"), " half_error": ("half of its error", BLACK, ":"),
    " exact_unseen": ("exact where not seen", ORANGE, "-"), " exact_as_unseen": ("exact in as many pairs", ORANGE, ":"),
    " random_error": ("random errors", SKY, "-"), " random_advantage": ("random advantages", SKY, ":"),
    " aligned_advantage": ("random, as much against the truth", SKY, "--"),
}  # fmt: skip


def main(variants: dict, offline: list[Path], online: Path, output: Path) -> None:
    """Write each figure as PNG and SVG; ``offline`` is that of the first place."""
    at, of = Offline(offline[0]), Online(online)
    first = next(name for name in at.methods if name in variants)
    colour, by_m = COLOURS[variants[first]["algo"]], {"xlabel": "transitions m"} | ticks(at.lengths)
    looks = {first: ("Transformer", colour, "-"), f"{first} pseudo_steps": ("with pseudo-steps", colour, ":")} | BESIDE
    shown = {name: look for name, look in looks.items() if name in at.methods}
    drawn = [(at.lengths, at.share(name) - at.share("smoothed"), look) for name, look in shown.items()]
    panels = [(drawn, {"title": "policies", "ylabel": "share less smoothed's"} | by_m)]
    for key, title in (("error", "errors of q"), ("advantage_error", "errors of advantages")):
        drawn = [(at.lengths, at.of(key, name), look) for name, look in shown.items()]
        panels.append((drawn, {"title": title, "ylabel": "mean squared error", "yscale": "log"} | by_m))
    save(lines(panels), output / "offline.png")
    panels = [([(at.lengths, at.share(name + kind), look) for kind, look in LIMITS.items()],
               {"title": looks[name][0]} | by_m) for name in (first, "smoothed")]  # fmt: skip
    save(lines(panels, "share of the way"), output / "limits.png")
    save(lines(of_variants(at, variants, first), "share of the way"), output / "variants.png")
    acts, x = [one for one in looks if one in of.methods and one != "theta_td"], of.arrays["steps"]
    panels = [([(x, of.of("regret", name, rule).swapaxes(1, 2), looks[name]) for name in acts],
               {"title": rule, "xlabel": "steps", "ylabel": "regret"}) for rule in of.rules]  # fmt: skip
    save(lines(panels), output / "regret.png")
    save(run(at.arrays), output / "run.png")


def ticks(values: list[float], scale: float = 1) -> dict:
    """An axis of powers with these marks."""
    return {"xscale": "log", "xticks": values, "xticklabels": [f"{one / scale:g}" for one in values]}


def of_variants(at: Offline, variants: dict, first: str) -> list[tuple]:
    """Panels on layers, tasks, policies and iterations, with a line for the least, the middle and the greatest m."""
    counts, K, last, panels = at.counts(first), at.arrays["worth"].shape[2], len(at.lengths) - 1, []
    looks = list(zip(sorted({0, last // 2, last}), ((SKY, "-"), (PURPLE, "--"), (BLACK, ":")), strict=False))

    def add(name, x, found, **words):
        drawn = [(x, np.stack([one[:, k] for one in found], 1), (f"m = {at.lengths[k]}", *look)) for k, look in looks]
        panels.append((drawn, {"xlabel": name} | words))

    def alike(key, values):
        names = {variants[name][key]: name for name in [*but_for(variants, first, key), first]}
        tasks = min(variants[name]["tasks"] for name in names.values())
        kinds = [one for one in values or sorted(names) if one in names and at.counts(names[one])[0] <= tasks]
        return kinds, [at.share(names[one], tasks=tasks) for one in kinds]

    add("layers", *(of_depth := alike("depth", ())), **ticks(of_depth[0]))
    add("million tasks", counts, [at.share(first, tasks=one) for one in counts], **ticks(counts, 1e6))
    kinds, found = alike("policies", ("soft", "both", "greedy"))
    add("policies evaluated", x := range(len(kinds)), found, xticks=x, xticklabels=kinds, xlim=(-0.5, len(kinds) - 0.5))
    add("iterations", range(1, K), [at.share(first, one) for one in range(1, K)])
    return panels


def lines(panels: list[tuple], shared: str = "") -> Figure:
    """Panels of lines (x, samples (seeds, X, N), look) and words: means, with 95% intervals over N."""
    figure, (grid,) = plt.subplots(1, len(panels), figsize=(WIDTH, 2.4), squeeze=False, sharey=bool(shared))
    grid[0].set_ylabel(shared)
    for axes, (drawn, words) in zip(grid, panels, strict=True):
        for x, samples, (label, colour, style) in drawn:
            look = {"color": colour, "ls": style, "lw": 1.2, "marker": "o" * (len(x) < 12), "ms": 2, "label": label}
            axes.plot(x, samples.mean(axis=(0, 2)), **look)
            ends = np.array([bootstrap_interval(one) for one in samples.mean(axis=0)])
            axes.fill_between(x, *ends.T, color=colour, alpha=0.15, lw=4 * (len(x) == 1))
        axes.set(**words)
        axes.xaxis.minorticks_off()
        axes.tick_params(labelsize=7)
    legend(figure)
    return figure


def run(of: dict[str, np.ndarray]) -> Figure:
    """Policies of one run on the process's graph, with q of each action as estimated and as it is."""
    q, p, states = of["run_q"], of["run_transition"], len(of["run_optimal"])
    rows, height = (1, 2.2) if states < 5 else (len(q), 0.5 * states * len(q))  # Boxes must not cover each other.
    figure, grid = plt.subplots(rows, len(q) // rows, figsize=(WIDTH, height), squeeze=False)
    where = [(np.cos(angle), np.sin(angle)) for angle in 2 * np.pi * (np.arange(states) / states + 0.125)]
    arrow = {"arrowstyle": "->", "color": COLOURS["td"], "shrinkA": 24, "shrinkB": 24}
    for k, axes in enumerate(grid.ravel()):
        best = q[k].argmax(axis=-1)
        for s, j in np.ndindex(states, states):
            if s != j and p[s, best[s], j] > 0.05:
                bent = {"connectionstyle": "arc3,rad=0.2", "lw": 2.5 * p[s, best[s], j]}
                axes.annotate("", where[j], where[s], arrowprops=arrow | bent)
        for s, place in enumerate(where):
            pairs = enumerate(zip(q[k, s], of["run_exact"][k, s], strict=True))
            text = [f"{'►' if a == best[s] else '   '} {one:.1f} ({true:.1f})" for a, (one, true) in pairs]
            colour = THETA if of["run_optimal"][s, best[s]] else COLOURS["mc"]
            box = {"boxstyle": "round", "fc": "#ffffff", "ec": colour}
            axes.text(*place, "\n".join(text), ha="center", va="center", fontsize=6, bbox=box)
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.2, 1.2), title=f"iteration {k + 1}: {of['run_share'][k]:.2f}")
        axes.set_axis_off()
    return figure
