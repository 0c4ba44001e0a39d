"""The figures of the report.

Each figure is a function with the decorator ``figure``.  The docstring of the function is the figure's title and its
caption, and the order of the functions is that of the figures in Snakemake's report.  The rules read the docstrings and
the arguments of the decorators without importing this module (``ictd.pipeline.rules.registered``).
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ictd.pipeline.grid import Cell, cells, main_setting
from ictd.report.figures import theory
from ictd.report.figures.environment_diagrams import environment_diagram
from ictd.report.figures.learning_curves import learning_curves
from ictd.report.figures.msve_curves import msve_curves
from ictd.report.figures.pretrained import pretrained as draw_pretrained
from ictd.report.figures.style import panels_of, save
from ictd.report.figures.weight_maps import weight_maps
from ictd.report.registry import title_and_caption
from ictd.report.tables import load_tables
from ictd.storage import save_text


class Figure(NamedTuple):
    """A figure of the report.

    Parameters
    ----------
    title, caption : str
    draw : function
        Takes tables by their names, and the settings of the run, and returns a Matplotlib figure.
    job : str, the rule that draws the figure
    tables : tuple of str, the tables that the figure shows, such as "metrics/msve"
    vary : str
        The figure shows ``ictd.pipeline.grid.cells`` that vary "depths", "states" or "envs", or those of the "main"
        setting.  Without such cells there is no figure.
    """

    title: str
    caption: str
    draw: Callable
    job: str
    tables: tuple[str, ...]
    vary: str


FIGURES: dict[str, Figure] = {}


def figure(job: str, *tables: str, vary: str = "main") -> Callable[[Callable], Callable]:
    """Register a function that draws a figure, under the name of the function.

    A job draws several figures, because the import of Matplotlib takes as long as drawing one.
    """

    def register(draw: Callable) -> Callable:
        FIGURES[draw.__name__] = Figure(*title_and_caption(draw), draw, job, tables, vary)
        return draw

    return register


def main(figures: list[str], run: dict, tables: list[Path], folder: Path) -> None:
    """Write some of FIGURES as PNG and SVG, and their captions as texts.

    ``run`` has the grid, the discount, and the options of environments.
    """
    loaded = load_tables(tables)
    for name in figures:
        of_figure = FIGURES[name]
        shown = {Path(table).name: loaded[Path(table).name] for table in of_figure.tables}
        save(of_figure.draw(shown, run | {"vary": of_figure.vary}), folder / f"{name}.png")
        save_text(folder / f"{name}.rst", f"{of_figure.caption}\n")


def _panels(run):
    return panels_of(cells(run, run["vary"]), run["vary"])


def _msve_curves(tables, run):
    return msve_curves(_panels(run), **tables)


def _weight_maps(tables, run):
    return weight_maps(_panels(run), **tables)


def _environment(run, env, layout):
    return environment_diagram(env, run["env_options"].get(env, {}), layout, run["states"][0])


@figure("curves", "metrics/unseen_msve", "metrics/unseen_baselines", "metrics/over_tasks", "metrics/weights")
def figure_01(tables, run):
    """Figure 1: MSVE.

    Figure 1. MSVE against context length after pretraining in the main setting, on the unseen tasks that decide the
    claims. Solid lines are geometric means over trials of the mean over tasks; bands are 95% intervals of the ratio to
    predicting zero. A dot marks the longest context: the MSVE is lower than that of predicting zero if dot and band are
    below the solid grey line. Dotted lines are medians over tasks, which may be on the other side of the dotted grey
    line. The baselines use the same contexts: the Transformer with the paper's parameters and the step size that is
    best on other tasks, LSTD, predicting zero, and one constant for all states, the mean observed reward over
    1 - gamma. The contexts of a task are the first steps of one trajectory. The paper has ten tasks in each trial;
    metrics/msve.csv has the errors on as many.
    """
    return _msve_curves(tables, run)


@figure("diagrams", "metrics/mean_entries", "metrics/mean_weights", "metrics/weights")
def figure_02(tables, run):
    """Figure 2: mean P and Q.

    Figure 2. The parameters of in-context TD, and the mean parameters over trials after pretraining in the main
    setting. Each map shows Q. The strip below shows the last row of P, [u, 1]; the other rows of P are zero. Entries
    are scaled to [-1, 1] by the largest absolute entry of each matrix. Lines separate the blocks of size n. The maps
    show A as trained. The verdicts are on the identifiable A, without directions that change no output, which lie
    mostly in the lower half. The numbers below a map are the squared cosine of the mean identifiable A and in-context
    TD, with its 95% interval, and the number of trials in which it is above one half. The pattern emerges if the
    interval is above one half.
    """
    return _weight_maps(tables, run)


@figure("diagrams")
def figure_03(tables, run):
    """Figure 3: Boyan's chain.

    Figure 3. Boyan's chain with the main number of states, drawn from a sampled task. Arrows are transitions of
    positive probability.
    """
    return _environment(run, "boyan", "line")


@figure("diagrams", "metrics/mean_entries", "metrics/mean_weights", "metrics/weights", vary="depths")
def figure_04(tables, run):
    """Figure 4: mean P and Q by depth.

    Figure 4. In-context TD and mean parameters, as in Figure 2, for other numbers of layers L.
    """
    return _weight_maps(tables, run)


@figure(
    "curves", "metrics/unseen_msve", "metrics/unseen_baselines", "metrics/over_tasks", "metrics/weights", vary="depths"
)
def figure_05(tables, run):
    """Figure 5: MSVE by depth.

    Figure 5. MSVE against context length, as in Figure 1, for other numbers of layers L.
    """
    return _msve_curves(tables, run)


@figure("diagrams", "metrics/mean_entries", "metrics/mean_weights", "metrics/weights", vary="states")
def figure_06(tables, run):
    """Figure 6: mean P and Q by number of states.

    Figure 6. In-context TD and mean parameters, as in Figure 2, for other numbers of states n.
    """
    return _weight_maps(tables, run)


@figure(
    "curves", "metrics/unseen_msve", "metrics/unseen_baselines", "metrics/over_tasks", "metrics/weights", vary="states"
)
def figure_07(tables, run):
    """Figure 7: MSVE by number of states.

    Figure 7. MSVE against context length, as in Figure 1, for other numbers of states n.
    """
    return _msve_curves(tables, run)


@figure("diagrams")
def figure_08(tables, run):
    """Figure 8: Loop.

    Figure 8. Loop with the main number of states, drawn from a sampled task. Arrows are transitions of positive
    probability.
    """
    return _environment(run, "loop", "circle")


@figure("diagrams", "metrics/mean_entries", "metrics/mean_weights", "metrics/weights", vary="envs")
def figure_09(tables, run):
    """Figure 9: mean P and Q by environment.

    Figure 9. In-context TD and mean parameters, as in Figure 2, after pretraining on environments other than the main
    one.
    """
    return _weight_maps(tables, run)


@figure(
    "curves", "metrics/unseen_msve", "metrics/unseen_baselines", "metrics/over_tasks", "metrics/weights", vary="envs"
)
def figure_10(tables, run):
    """Figure 10: MSVE by environment.

    Figure 10. MSVE against context length, as in Figure 1 and on the same tasks, after pretraining on environments
    other than the main one.
    """
    return _msve_curves(tables, run)


@figure("theory_figures", "theory/statements")
def theorem_1(tables, run):
    """Theorem 1 and Lemma 4.

    Theorem 1 and Lemma 4. Error of in-context TD with L layers on enumerated prompts, divided by its bound: both hold
    if no curve is above the dotted line. The error is the largest one over query states, and both are averaged over
    tasks. Curves end at the depth where the bound falls below 1e-12 of the largest value, because rounding errors count
    from there on; the table of statements has the check at larger depths, in decimal arithmetic.
    """
    return theory.theorem_1(tables["statements"], run["discount"])


@figure("theory_figures", "theory/statements")
def lemmas(tables, run):
    """Lemmas 1 to 4.

    Lemmas 1 to 4. Each bound divided by what it bounds, the smallest ratio over tasks: a lemma holds if its curve is
    not below the dotted line, and a ratio of one means that the bound cannot be improved. Curves end where the bounded
    side comes near the rounding error. In Lemma 2 the row Y of the embedding is not r - w, as the proof says. Y is the
    row of TD errors of the context's states, which vanish with depth. So the gradient of Lemma 3 stays bounded, and the
    resulting bound (ours) does not grow with L. Norms of gradients are computed at each layer up to 30, and then at
    every tenth layer.
    """
    return theory.lemmas(tables["statements"], run["envs"][0], run["states"][0])


@figure("theory_figures", "theory/neu", "theory/statements")
def theorem_2(tables, run):
    """Theorem 2.

    Theorem 2. Left: norm of the expected update of multi-task TD, at in-context TD with L layers. Layers share their
    parameters, or have separate parameters (circles). The two bounds are the paper's bound and ours, which follows from
    a bounded gradient. The expected TD errors are computed by the formula in the proof of Lemma 1, which avoids
    rounding. Right: why the norm falls for large L and, if the discount is large, rises first. While L is below about 1
    / (1 - discount), the gradient's norm grows faster with L than the expected TD error shrinks. For larger L the
    gradient's norm tends to a constant. The band is one standard error.
    """
    return theory.expected_update(**tables, algo="td", env=run["envs"][0], states=run["states"][0])


@figure("theory_figures", "theory/neu", "theory/statements")
def corollary_1(tables, run):
    """Corollary 1.

    Corollary 1. The same as for Theorem 2, but for multi-task MC. The expected error is the difference between
    estimates and true values.
    """
    return theory.expected_update(**tables, algo="mc", env=run["envs"][0], states=run["states"][0])


@figure("theory_figures", "theory/family", "theory/family_updates")
def family(tables, run):
    """Family of solutions.

    Beyond the theory: in-context TD is A = K [-I, I] with K = [G; H], G = I above H = 0. All K in a neighbourhood of
    this K give the same limit. All prompts are enumerated, and attention is not divided by their length. Left: the
    largest error over tasks and query states. Five random weights with other G and H, near in-context TD, are shown
    with their common bound. The same weights plus N [I, I], with a random matrix N, have another limit. The residual
    gradient with its best step size and deflated TD are algorithms with weights of this family, too. Right: norm of the
    expected update at the five weights, J of TD and J' of MC. It vanishes with L.
    """
    return theory.family(*tables.values(), env=run["envs"][0], states=run["states"][0])


@figure("pretrained_figure", "theory/pretrained", "theory/repeated")
def pretrained(tables, run):
    """Pretrained weights.

    Beyond the theory: growth of the norm of the expected update, J for multi-task TD and J' for multi-task MC, from its
    value at the pretrained weights with as many layers as in training. Means over trials of the logarithm with base 10.
    Top: along the straight line from the pretrained weights to in-context TD with the same step size. Bottom: at the
    pretrained weights, with the layer repeated more or less often than in training (circles). Labels say what differs
    from the main setting, the thick line.
    """
    return draw_pretrained(*tables.values(), Cell("", **main_setting(run)))


@figure("curves", "metrics/learning", "metrics/weights")
def learning(tables, run):
    """Learning curves.

    Learning curves (not in the paper), medians over trials. Top: MSVE on enumerated prompts of new tasks, mean over the
    tasks since the previous snapshot, each just before its update. Bottom: squared cosine (zero if the cosine is
    negative) between the identifiable A, without directions that change no output, and in-context TD; the pattern
    emerges above one half. Labels say what differs from the main setting, the thick line.
    """
    return learning_curves(**tables, main=Cell("", **main_setting(run)))
