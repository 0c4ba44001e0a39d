"""Draw control in context: baselines, formats of the prompt, control experiments, variants, regret, and one run."""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from ictd.statistics import bootstrap_intervals
from studies.control.grid import FORMATS, equal_except
from studies.control.measured import Offline, Online

BLACK, ORANGE, SKY, PURPLE, *_ = LINES
GREEN = COLOURS["theta_td"]
# Label, colour and line style of methods without pretraining.
OTHERS = {
    "smoothed": ("smoothed model", ORANGE, "-"),
    "lspi": ("LSPI", COLOURS["lstd"], "-"),
    "theta_td": (NAMES["theta_td"], GREEN, "-"),
    "rewards": ("observed rewards", COLOURS["zero"], "--"),
    "posterior": ("posterior sampling", BLACK, "-"),
    "q_learning": ("Q-learning", SKY, "-"),
}
# Label, colour and line style of a method and of its control experiments, by the suffix of their names.
CONTROLS = {
    "": ("no change", BLACK, "-"),
    " half_error": ("half of its error", BLACK, ":"),
    " exact_unseen": ("exact where not seen", ORANGE, "-"),
    " exact_as_unseen": ("exact in as many pairs", ORANGE, ":"),
    " random_advantage": ("random advantages", SKY, ":"),
    " aligned_advantage": ("random, aligned", SKY, "--"),
}
# Label and colour of the prompts of pretraining; suffix of the label and line style of the evaluation prompts.
PROMPTS = {
    "sampled": ("on transitions", COLOURS["td"]),
    "grouped": ("on grouped prompts", PURPLE),
    "enumerated": ("on enumerated prompts", BLACK),
}
SHOWN = {"": ("", "-"), " grouped": (", shown grouped", ":")}
# Colour and line style of the numbers of transitions in the figure of variants.
LENGTHS = ((SKY, "-"), (PURPLE, "--"), (BLACK, ":"))
# Order of the policies of pretraining.
POLICIES = ("soft", "both", "greedy")
# Transitions with a smaller probability are not drawn.
LEAST_DRAWN = 0.05


class Line(NamedTuple):
    """A line of means over samples (seeds, X, N) against x (X,), with a label, a colour and a style."""

    x: list
    samples: np.ndarray
    look: tuple[str, str, str]


class Panel(NamedTuple):
    """Lines, and arguments of ``Axes.set``."""

    lines: list[Line]
    words: dict


def main(variants: dict, offline: list[Path], online: Path, output: Path) -> None:
    """Write each figure as PNG and SVG; ``offline`` is the file of the first place."""
    home, acting = Offline(offline[0]), Online(online)
    first = home.first(variants)
    colour = COLOURS[variants[first]["algo"]]
    looks = {
        first: ("Transformer", colour, "-"),
        f"{first} grouped": ("shown grouped", colour, "-."),
        f"{first} grouped pseudo_counts": ("grouped, pseudo-counts", colour, ":"),
    }
    looks |= OTHERS
    save(lines(offline_panels(home, variants, first, looks)), output / "offline.png")
    titles = {name: looks[name][0] for name in (first, "smoothed")}
    save(lines(control_panels(home, titles), "share of the way"), output / "limits.png")
    save(lines(variant_panels(home, variants, first), "share of the way"), output / "variants.png")
    save(lines(regret_panels(acting, looks)), output / "regret.png")
    save(run(home.arrays), output / "run.png")


def ticks(values: list[float], scale: float = 1) -> dict:
    """Arguments of ``Axes.set`` for a logarithmic axis with ticks at some values."""
    return {"xscale": "log", "xticks": values, "xticklabels": [f"{value / scale:g}" for value in values]}


def offline_panels(home: Offline, variants: dict, first: str, looks: dict) -> list[Panel]:
    """Policies of methods, policies by the formats of prompts, and errors, by the number of transitions."""
    by_m = {"xlabel": "transitions m"} | ticks(home.lengths)
    looks = {name: looks[name] for name in (first, *OTHERS) if name in home.methods}
    smoothed = home.share("smoothed")
    shares = [Line(home.lengths, home.share(name) - smoothed, look) for name, look in looks.items()]
    once = "Transformer, 1 iteration", looks[first][1], ":"
    shares.append(Line(home.lengths, home.share(first, 1) - smoothed, once))
    formats = [Line(home.lengths, share - smoothed, look) for look, share in format_shares(home, variants, first)]
    errors = [Line(home.lengths, home.rows("error", name), look) for name, look in looks.items()]
    return [
        Panel(shares, {"title": "policies", "ylabel": "share less smoothed's"} | by_m),
        Panel(formats, {"title": "prompts", "ylabel": "share less smoothed's"} | by_m),
        Panel(errors, {"title": "errors of q", "ylabel": "mean squared error", "yscale": "log"} | by_m),
    ]


def format_shares(home: Offline, variants: dict, first: str) -> list[tuple[tuple, np.ndarray]]:
    """Styles and shares (seeds, lengths, N), by the prompts of pretraining and the format of the evaluation prompts.

    Of several variants with the same prompts, only the variant with the most tasks is used.  All shares are taken after
    the number of tasks of the variant with the fewest tasks.
    """
    names = sorted(equal_except(variants, first, "prompts"), key=lambda name: variants[name]["tasks"])
    names = {variants[name]["prompts"]: name for name in names if f"{name} grouped" in home.methods}
    tasks = min(variants[name]["tasks"] for name in names.values())
    shares = []
    for (prompts, name), format in product(names.items(), FORMATS):
        if home.task_counts(name)[0] <= tasks:
            (label, colour), (added, style) = PROMPTS[prompts], SHOWN[format]
            shares.append(((label + added, colour, style), home.share(name + format, tasks=tasks)))
    return shares


def control_panels(home: Offline, titles: dict[str, str]) -> list[Panel]:
    """Control experiments with some methods, by the number of transitions."""
    by_m = {"xlabel": "transitions m"} | ticks(home.lengths)
    panels = []
    for name, title in titles.items():
        shares = [Line(home.lengths, home.share(name + kind), look) for kind, look in CONTROLS.items()]
        panels.append(Panel(shares, {"title": title} | by_m))
    return panels


def regret_panels(acting: Online, looks: dict) -> list[Panel]:
    """Regret by the number of steps, for each rule."""
    steps = acting.arrays["steps"]
    names = [name for name in looks if name in acting.methods and name != "theta_td"]
    panels = []
    for rule in acting.rules:
        regrets = [Line(steps, acting.rows("regret", name, rule).swapaxes(1, 2), looks[name]) for name in names]
        panels.append(Panel(regrets, {"title": rule, "xlabel": "steps", "ylabel": "regret"}))
    return panels


def variant_panels(home: Offline, variants: dict, first: str) -> list[Panel]:
    """Layers, tasks, policies and iterations, with a line for the smallest, the middle and the largest m."""
    task_counts = home.task_counts(first)
    iterations = range(1, home.arrays["mean_value"].shape[2])
    by_tasks = [home.share(first, tasks=tasks) for tasks in task_counts]
    by_iteration = [home.share(first, iteration) for iteration in iterations]
    depths, by_depth = home.shares_by("depth", variants)
    kinds, by_kind = home.shares_by("policies", variants)
    order = [kinds.index(kind) for kind in POLICIES if kind in kinds]
    kinds, by_kind = [kinds[i] for i in order], [by_kind[i] for i in order]
    places = range(len(kinds))
    policy_axis = {"xticks": places, "xticklabels": kinds, "xlim": (-0.5, len(kinds) - 0.5)}
    return [
        length_panel(home, depths, by_depth, {"xlabel": "layers"} | ticks(depths)),
        length_panel(home, task_counts, by_tasks, {"xlabel": "million tasks"} | ticks(task_counts, 1e6)),
        length_panel(home, places, by_kind, {"xlabel": "policies evaluated"} | policy_axis),
        length_panel(home, iterations, by_iteration, {"xlabel": "iterations"}),
    ]


def length_panel(home: Offline, x: list, shares: list[np.ndarray], words: dict) -> Panel:
    """A panel of shares (seeds, lengths, N) for each x, with a line for the smallest, the middle and the largest m."""
    last = len(home.lengths) - 1
    panel = Panel([], words)
    for k, look in zip(sorted({0, last // 2, last}), LENGTHS, strict=False):
        samples = np.stack([share[:, k] for share in shares], axis=1)
        panel.lines.append(Line(x, samples, (f"m = {home.lengths[k]}", *look)))
    return panel


def lines(panels: list[Panel], shared_label: str = "") -> Figure:
    """Draw panels of means, with 95% intervals over processes; with a shared label they share the vertical axis."""
    figure, (grid,) = plt.subplots(1, len(panels), figsize=(WIDTH, 2.4), squeeze=False, sharey=bool(shared_label))
    grid[0].set_ylabel(shared_label)
    for axes, panel in zip(grid, panels, strict=True):
        for x, samples, (label, colour, style) in panel.lines:
            marker = "o" if len(x) < 12 else ""
            mean = samples.mean(axis=(0, 2))
            axes.plot(x, mean, color=colour, ls=style, lw=1.2, marker=marker, ms=2, label=label)
            low, high = bootstrap_intervals(samples.mean(axis=0).T).T
            axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=4 if len(x) == 1 else 0)
        axes.set(**panel.words)
        axes.xaxis.minorticks_off()
        axes.tick_params(labelsize=7)
    legend(figure)
    return figure


def run(arrays: dict[str, np.ndarray]) -> Figure:
    """Draw the policies of one run on the graph of the process, with the estimated and the true q of each action."""
    q, states = arrays["run_q"], len(arrays["run_optimal"])
    # With more states the panels are below each other, so that boxes do not overlap.
    rows, height = (1, 2.2) if states < 5 else (len(q), 0.5 * states * len(q))
    figure, grid = plt.subplots(rows, len(q) // rows, figsize=(WIDTH, height), squeeze=False)
    angles = 2 * np.pi * (np.arange(states) / states + 0.125)
    positions = np.column_stack([np.cos(angles), np.sin(angles)])
    for k, axes in enumerate(grid.ravel()):
        action = q[k].argmax(axis=-1)
        _draw_transitions(axes, positions, arrays["run_transition"][np.arange(states), action])
        _draw_states(axes, positions, q[k], arrays["run_exact"][k], arrays["run_optimal"])
        share = arrays["run_share"][k]
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.2, 1.2), title=f"iteration {k + 1}: {share:.2f}")
        axes.set_axis_off()
    return figure


def _draw_transitions(axes: Axes, positions: np.ndarray, transition: np.ndarray) -> None:
    """Arrows between states, with widths in proportion to the transition probabilities (S, S)."""
    arrow = {"arrowstyle": "->", "color": COLOURS["td"], "shrinkA": 24, "shrinkB": 24}
    arrow |= {"connectionstyle": "arc3,rad=0.2"}
    for s, j in np.ndindex(transition.shape):
        if s != j and transition[s, j] > LEAST_DRAWN:
            width = {"lw": 2.5 * transition[s, j]}
            axes.annotate("", positions[j], positions[s], arrowprops=arrow | width)


def _draw_states(axes: Axes, positions: np.ndarray, q: np.ndarray, exact: np.ndarray, optimal: np.ndarray) -> None:
    """Boxes with the estimated and the true q (S, A) of each action, and a mark at the greedy action."""
    for s, position in enumerate(positions):
        greedy = q[s].argmax()
        texts = [
            f"{'►' if action == greedy else '   '} {estimated:.1f} ({true:.1f})"
            for action, (estimated, true) in enumerate(zip(q[s], exact[s], strict=True))
        ]
        colour = GREEN if optimal[s, greedy] else COLOURS["mc"]
        box = {"boxstyle": "round", "fc": "#ffffff", "ec": colour}
        axes.text(*position, "\n".join(texts), ha="center", va="center", fontsize=6, bbox=box)
