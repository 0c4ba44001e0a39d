"""Diagrams of the environments (Figures 3 and 8): an arrow for each transition of non-zero probability."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from ictd.mrp import sample_tasks
from ictd.report.figures.style import INK, WIDTH
from ictd.rng import generator

RADIUS = 0.3


def environment_diagram(env: str, options: dict, layout: str, states: int) -> Figure:
    """Draw an example of an environment; ``layout`` is "line" or "circle"."""
    tasks = sample_tasks(env, states, 1, generator(0, env, states, "diagram"), **options)
    draw = {"line": line_diagram, "circle": circle_diagram}[layout]
    return draw(tasks.transition[0])


def line_diagram(transition: np.ndarray) -> Figure:
    """States in a row, for p (n, n): steps ahead above it, steps back below it, the further the lower."""
    last = 1.6 * (len(transition) - 1)
    positions = np.stack([np.linspace(0, last, len(transition)), np.zeros(len(transition))], axis=1)
    # An arrow of length d that is bent by b reaches b d / 2 to the side; those to the next state are straight.
    limits = (-0.5, last + 0.9), (-0.21 * last - 0.2, 0.21 * 3.2 + 0.2)
    return _draw(transition, positions, lambda i, j: 0.0 if j == i + 1 else -0.42, limits, WIDTH)


def circle_diagram(transition: np.ndarray) -> Figure:
    """States on a circle, clockwise from the top, for p (n, n)."""
    states = len(transition)
    angle = np.pi / 2 - 2 * np.pi * np.arange(states) / states
    radius = max(1.6, 0.35 * states)
    positions = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    edge = radius + 1.3 * RADIUS
    # A pair of opposite arrows is bent apart.
    limits = (-edge, edge), (-edge, edge)
    return _draw(transition, positions, lambda i, j: 0.12 if transition[j, i] > 0 else 0.0, limits, 0.5 * WIDTH)


def _draw(transition: np.ndarray, positions: np.ndarray, bend, limits, width: float) -> Figure:
    """Circles at positions (n, 2) and arrows between them; ``bend(i, j)`` curves the arrow from i to j."""
    (left, right), (bottom, top) = limits
    figure, axes = plt.subplots(figsize=(width, width * (top - bottom) / (right - left)))
    circles = [Circle(position, RADIUS, facecolor="none", edgecolor=INK) for position in positions]
    style = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 0.8, "color": INK, "shrinkA": 0, "shrinkB": 0}
    for i, j in zip(*np.nonzero(transition), strict=True):
        if i == j:
            # A self-loop leaves its circle on the right, below the middle, and comes back above it.
            ends = positions[i] + RADIUS * np.array([[0.8, -0.6], [0.8, 0.6]])
            axes.add_patch(FancyArrowPatch(*ends, connectionstyle="arc3,rad=1.6", **style))
        else:
            curve = f"arc3,rad={bend(i, j)}"
            ends = {"patchA": circles[i], "patchB": circles[j]}
            axes.add_patch(FancyArrowPatch(positions[i], positions[j], connectionstyle=curve, **ends, **style))
    for state, (circle, position) in enumerate(zip(circles, positions, strict=True)):
        axes.add_patch(circle)
        axes.text(*position, f"$s_{{{state + 1}}}$", ha="center", va="center")
    axes.set(aspect="equal", xlim=limits[0], ylim=limits[1])
    axes.axis("off")
    return figure
