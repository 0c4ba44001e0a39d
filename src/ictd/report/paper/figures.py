"""The figures of the paper's part; the docstring of each is its title and its caption."""

from ictd.pipeline.grid import cells
from ictd.report.figures import theory
from ictd.report.figures.environment_diagrams import environment_diagram
from ictd.report.figures.msve_curves import msve_curves
from ictd.report.figures.style import env_name, panels_of
from ictd.report.figures.weight_maps import weight_maps
from ictd.report.part import figure


def panels_in(results, vary):
    """The cells that vary "depths", "states" or "envs", or those of the "main" setting, by the titles of panels."""
    return panels_of(cells(results.settings, vary), vary)


def msve_in(results, vary):
    """The MSVE of these cells; None without cells."""
    panels = panels_in(results, vary)
    shown = {title: (of_panel, results.metrics) for title, of_panel in panels.items()}
    place = f" on {env_name(results.evaluated_on[0])}"
    return msve_curves(shown, results.metrics["weights"], place) if panels else None


def weights_in(results, vary):
    """The mean weights of these cells; None without cells."""
    panels = panels_in(results, vary)
    tables = (results.metrics[name] for name in ("mean_entries", "mean_weights", "weights"))
    return weight_maps(panels, *tables) if panels else None


def diagram_of(results, env, layout):
    """A diagram of an environment with the main number of states."""
    _, states, _ = results.main
    options = results.settings["readings"]["env_options"].get(env, {})
    return environment_diagram(env, options, layout, states)


def update_of(results, algo):
    """The expected update at theta^TD in the main setting."""
    env, states, _ = results.main
    return theory.expected_update(results.theory["neu"], results.theory["statements"], algo, env, states)


@figure
def figure_01(results):
    """Figure 1.

    MSVE against context length after pretraining in the main setting, on the unseen tasks that decide the
    claims. Solid lines are geometric means over trials of the mean over tasks; bands are 95% intervals of the ratio to
    predicting zero. A dot marks the longest context: the MSVE is lower than that of predicting zero if dot and band are
    below the solid grey line. Dotted lines are medians over tasks, which may be on the other side of the dotted grey
    line. The baselines use the same contexts: the Transformer with the paper's parameters and the step size that is
    best on other tasks, LSTD, predicting zero, and one constant for all states, the mean observed reward over
    1 - gamma. The contexts of a task are the first steps of one trajectory. The paper has ten tasks in each trial;
    metrics/msve.csv has the errors on as many.
    """
    return msve_in(results, "main")


@figure
def figure_02(results):
    """Figure 2.

    In-context TD, and mean parameters in the main setting. Below a map: its squared cosine to in-context TD without
    directions that change no output (mostly in the lower half), the 95% interval, and the trials with one above one
    half. The pattern emerges if the interval is above one half. Each map shows Q with A as trained. The strip below
    shows the last row of P, [u, 1]; the other rows of P are zero. Entries are scaled to [-1, 1] by the largest absolute
    entry of each matrix. Lines separate the blocks of size n.
    """
    return weights_in(results, "main")


@figure
def figure_03(results):
    """Figure 3.

    Boyan's chain with the main number of states, drawn from a sampled task. Arrows are transitions of
    positive probability.
    """
    return diagram_of(results, "boyan", "line")


@figure
def figure_04(results):
    """Figure 4.

    In-context TD and mean parameters, as in Figure 2, for other numbers of layers L.
    """
    return weights_in(results, "depths")


@figure
def figure_05(results):
    """Figure 5.

    MSVE against context length, as in Figure 1, for other numbers of layers L.
    """
    return msve_in(results, "depths")


@figure
def figure_06(results):
    """Figure 6.

    In-context TD and mean parameters, as in Figure 2, for other numbers of states n.
    """
    return weights_in(results, "states")


@figure
def figure_07(results):
    """Figure 7.

    MSVE against context length, as in Figure 1, for other numbers of states n.
    """
    return msve_in(results, "states")


@figure
def figure_08(results):
    """Figure 8.

    Loop with the main number of states, drawn from a sampled task. Arrows are transitions of positive
    probability.
    """
    return diagram_of(results, "loop", "circle")


@figure
def figure_09(results):
    """Figure 9.

    In-context TD and mean parameters, as in Figure 2, after pretraining on environments other than the main
    one.
    """
    return weights_in(results, "envs")


@figure
def figure_10(results):
    """Figure 10.

    MSVE against context length, as in Figure 1 and on the same tasks, after pretraining on environments
    other than the main one.
    """
    return msve_in(results, "envs")


@figure
def theorem_1(results):
    """Theorem 1 and Lemma 4.

    Error of in-context TD with L layers on enumerated prompts, divided by its bound: both hold
    if no curve is above the dotted line. The error is the largest one over query states, and both are averaged over
    tasks. Curves end at the depth where the bound falls below 1e-12 of the largest value, because rounding errors count
    from there on.
    """
    return theory.theorem_1(results.theory["statements"], results.discount)


@figure
def lemmas(results):
    """Lemmas 1 to 4.

    Each bound divided by what it bounds, the smallest ratio over tasks: a lemma holds if its curve is
    not below the dotted line, and a ratio of one means that the bound cannot be improved. Curves end where the bounded
    side comes near the rounding error. In Lemma 2 the row Y of the embedding is not r - w, as the proof says. Y is the
    row of TD errors of the context's states, which vanish with depth. So the gradient of Lemma 3 stays bounded, and the
    resulting bound (ours) does not grow with L. Norms of gradients are computed at each layer up to 30, and then at
    every tenth layer.
    """
    env, states, _ = results.main
    return theory.lemmas(results.theory["statements"], env, states)


@figure
def theorem_2(results):
    """Theorem 2.

    Left: norm of the expected update of multi-task TD, at in-context TD with L layers. Layers share their
    parameters, or have separate parameters (circles). The two bounds are the paper's bound and ours, which follows from
    a bounded gradient. The expected TD errors are computed by the formula in the proof of Lemma 1, which avoids
    rounding. Right: why the norm falls for large L and, if the discount is large, rises first. While L is below about 1
    / (1 - discount), the gradient's norm grows faster with L than the expected TD error shrinks. For larger L the
    gradient's norm tends to a constant. The band is one standard error.
    """
    return update_of(results, "td")


@figure
def corollary_1(results):
    """Corollary 1.

    The same as for Theorem 2, but for multi-task MC. The expected error is the difference between
    estimates and true values.
    """
    return update_of(results, "mc")


@figure
def family(results):
    """Beyond the theory, a family of solutions.

    In-context TD is A = K [-I, I] with K = [G; H], G = I above H = 0. All K in a neighbourhood of
    this K give the same limit. All prompts are enumerated, and attention is not divided by their length. Left: the
    largest error over tasks and query states. Five random weights with other G and H, near in-context TD, are shown
    with their common bound. The same weights plus N [I, I], with a random matrix N, have another limit. The residual
    gradient with its best step size and deflated TD are algorithms with weights of this family, too. Right: norm of the
    expected update at the five weights, J of TD and J' of MC. It vanishes with L.
    """
    env, states, _ = results.main
    return theory.family(results.theory["family"], results.theory["family_updates"], env, states)


@figure
def elsewhere(results):
    """Other environments of evaluation (not in the paper).

    MSVE against context length, as in Figure 1, on unseen tasks of the other environments of evaluation.
    """
    main = cells(results.settings, "main")
    panels = {f"on {env_name(place)}": (main, tables) for place, tables in results.elsewhere.items()}
    return msve_curves(panels, results.metrics["weights"]) if panels else None
