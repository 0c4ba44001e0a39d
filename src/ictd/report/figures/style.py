"""One style for all figures: colours, sizes, and how a figure is saved.

Backgrounds are transparent, and all colours are visible on white and on black pages.  A colour of ``COLOURS``
means its method in all figures, ``INK`` is for text, bounds and predicting zero, and ``LINES`` for the rest.
"""

import textwrap
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from ictd.extras import missing_extra
from ictd.pipeline.grid import Cell
from ictd.report.names import LOOKS, OTHERS, WORDS
from ictd.storage import replacing

try:
    import matplotlib
except ModuleNotFoundError as error:
    raise missing_extra("report", error.name) from None

import matplotlib.pyplot as plt
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

COLOURS = {name: look.colour for name, look in LOOKS.items()}
INK = COLOURS["zero"]
LINES = INK, *OTHERS
NAMES = {name: look.label.replace("theta^TD", r"$\theta^{\mathrm{TD}}$") for name, look in LOOKS.items()}
LARGEST = 1e100  # Larger numbers, of runs that diverge, are not drawn.
WIDTH = 4.5  # inches; on a phone, letters are then ten pixels high
PNG_DPI = 240
LABEL_HEIGHT = 0.125  # inches, distance of the labels at the ends of lines
LEADER = 12  # points, from the end of a line to its label

# Ignore the user's settings, and fonts of the machine, which may be other versions of Matplotlib's.
matplotlib.rcdefaults()
matplotlib.use("Agg")
fonts = font_manager.fontManager
fonts.ttflist = [font for font in fonts.ttflist if Path(font.fname).is_relative_to(matplotlib.get_data_path())]
plt.rcParams.update(
    {
        "font.size": 9,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        "axes.titlesize": 9,
        # Without a fixed height each drawing looks for ticks and labels that a title would cover; none are at the top.
        "axes.titley": 1,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.h_pad": 0.08,
        "svg.hashsalt": "ictd",
    }
)


def env_name(env: str) -> str:
    """Name of an environment in titles, in lines of 20 letters."""
    return textwrap.fill(WORDS.get(env, env.replace("_", " ").capitalize()), 20)


def save(figure: Figure, path: Path) -> None:
    """Save a figure as ``path`` with the endings .png and .svg; the same figure gives the same bytes.

    The layout is computed once, for the PNG, because it takes as long as drawing; ``savefig`` would compute it
    for each format.
    """
    figure.set_dpi(PNG_DPI)
    with replacing(path.with_suffix(".png")) as temporary:
        FigureCanvasAgg(figure).print_png(temporary, metadata={"Software": None})
    figure.set_layout_engine("none")
    with replacing(path.with_suffix(".svg")) as temporary:
        FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def setting_title(cell: Cell, vary: str) -> str:
    """Title of a panel in a figure that varies "depths", "states" or "envs", or shows the "main" setting."""
    titles = {
        "main": f"{env_name(cell.env)}, $n = {cell.states}$, $L = {cell.depth}$",
        "depths": f"$L = {cell.depth}$",
        "states": f"$n = {cell.states}$",
        "envs": textwrap.fill(f"trained on {env_name(cell.env)}", 20),
    }
    return titles[vary]


def panels_of(cells: Iterable[Cell], vary: str) -> dict[str, list[Cell]]:
    """Cells by the titles of their panels (``setting_title``)."""
    panels = {}
    for cell in cells:
        panels.setdefault(setting_title(cell, vary), []).append(cell)
    return panels


def diverged_note(diverged: Collection[bool]) -> str:
    """The number of trials that a panel leaves out, from one truth value a trial; empty if there are none."""
    number = np.count_nonzero(diverged)
    return f"{number} of {len(diverged)} diverged" if number else ""


def label_ends(axes, ends: list[tuple[str, float, str]]) -> None:
    """Write labels beside the right edge of a panel, near the ends of their lines and without overlap.

    Thin lines connect the labels with the ends.  Labels stay between the lower and the upper edge if there is room.

    Parameters
    ----------
    axes : matplotlib.axes.Axes, with its scale and limits already set
    ends : list of (label, value, colour)
        The value that a line ends with, and the colour of the line.
    """
    scaled = axes.yaxis.get_transform().transform
    low, high = scaled(np.array(axes.get_ylim()))
    values = scaled(np.array([value for _, value, _ in ends]))
    order = np.argsort(values)
    wanted = np.clip((values[order] - low) / (high - low), 0, 1)
    # Labels moved upward only and downward only keep their distances, and so does the mean of both.
    steps = LABEL_HEIGHT / (axes.bbox.height / axes.figure.dpi) * np.arange(len(ends))
    lowest = np.clip(wanted - steps, 0, max(0, 1 - steps.max(initial=0)))
    upward = np.maximum.accumulate(lowest) + steps
    downward = np.minimum.accumulate(lowest[::-1])[::-1] + steps
    beside = offset_copy(axes.transAxes, axes.figure, x=LEADER, units="points")
    for end, height, i in zip(wanted, (upward + downward) / 2, order, strict=True):
        label, _, colour = ends[i]
        axes.annotate(
            label, (1, end), (1, height), "axes fraction", beside, color=colour, va="center", fontsize=8,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 1, "shrinkB": 1, "relpos": (0, 0.5)},
        )  # fmt: skip


def legend(figure: Figure, ncols: int = 3) -> None:
    """Add a legend of all panels below the figure, each label once, in at most ``ncols`` columns."""
    pairs = [axes.get_legend_handles_labels() for axes in figure.axes]
    entries = {label: handle for handles, labels in pairs for handle, label in zip(handles, labels, strict=True)}
    for columns in range(ncols if entries else 0, 0, -1):
        look = {"fontsize": 8, "handlelength": 1.8, "handletextpad": 0.6, "columnspacing": 1.2}
        made = figure.legend(entries.values(), entries, loc="outside lower center", ncols=columns, **look)
        size = made.get_window_extent()
        if size.width < figure.bbox.width or columns == 1:
            figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)
            break
        made.remove()
