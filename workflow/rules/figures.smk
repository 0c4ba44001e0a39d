# The paper's figures, a job a kind, and the learning curves.
# Of each figure, what varies and the cells that it shows; those of which the configuration has none are left out.
shown_cells = lambda figures: {
    name: [vary, *map(str, found)] for name, vary in figures.items() if (found := cells(config, vary))
}
CURVES = shown_cells({"figure_01": "main", "figure_05": "depths", "figure_07": "states", "figure_10": "envs"})
MAPS = shown_cells({"figure_02": "main", "figure_04": "depths", "figure_06": "states", "figure_09": "envs"})
# Environment, its options, and layout.
DIAGRAMS = {
    name: [env, env_options(config, env), layout]
    for name, env, layout in (("figure_03", "boyan", "line"), ("figure_08", "loop", "circle"))
}
SHOWN = [*sorted([*CURVES, *MAPS, *DIAGRAMS]), "learning"]


use rule gather as msve_curves with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=GRID),
        baselines=expand("<results>/baselines/{setting}.npz", setting=BASELINES),
    output:
        [figure(name) for name in CURVES],
    pathvars:
        job="msve_curves",
    params:
        **step("report.figures.msve_curves", figures=CURVES, folder=RESULTS / "figures"),


use rule gather as weight_maps with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=GRID),
    output:
        [figure(name) for name in MAPS],
    pathvars:
        job="weight_maps",
    params:
        **step("report.figures.weight_maps", figures=MAPS, folder=RESULTS / "figures"),


use rule gather as environment_diagrams with:
    output:
        [figure(name) for name in DIAGRAMS],
    pathvars:
        job="environment_diagrams",
    params:
        **step("report.figures.environment_diagrams", diagrams=DIAGRAMS, states=6, folder=RESULTS / "figures"),


use rule gather as learning_curves with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=CELLS),
    output:
        figure("learning"),
    pathvars:
        job="learning_curves",
    params:
        **step("report.figures.learning_curves"),
