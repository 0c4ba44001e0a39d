# The paper's figures, one job for each kind, and the learning curves.
MSVE_FIGURES = shown_cells(
    {"figure_01": "main", "figure_05": "depths", "figure_07": "states", "figure_10": "envs"}
)
WEIGHT_FIGURES = shown_cells(
    {"figure_02": "main", "figure_04": "depths", "figure_06": "states", "figure_09": "envs"}
)
# Environment, its options, and layout.
DIAGRAMS = {
    name: [env, env_options(config, env), layout]
    for name, env, layout in (("figure_03", "boyan", "line"), ("figure_08", "loop", "circle"))
}
EXPERIMENT_FIGURES = [*sorted([*MSVE_FIGURES, *WEIGHT_FIGURES, *DIAGRAMS]), "learning"]


use rule step as msve_curves with:
    input:
        tables=expand("<results>/metrics/{table}.csv", table=["msve", "baselines", "weights"]),
    output:
        [figure(name) for name in MSVE_FIGURES],
    pathvars:
        job="msve_curves",
    localrule: True
    params:
        **step("ictd.report.figures.msve_curves", figures=MSVE_FIGURES, folder=RESULTS / "figures"),


use rule step as weight_maps with:
    input:
        tables=expand("<results>/metrics/{table}.csv", table=["mean_entries", "weights"]),
    output:
        [figure(name) for name in WEIGHT_FIGURES],
    pathvars:
        job="weight_maps",
    localrule: True
    params:
        **step("ictd.report.figures.weight_maps", figures=WEIGHT_FIGURES, folder=RESULTS / "figures"),


use rule step as environment_diagrams with:
    output:
        [figure(name) for name in DIAGRAMS],
    pathvars:
        job="environment_diagrams",
    localrule: True
    params:
        **step(
            "ictd.report.figures.environment_diagrams",
            diagrams=DIAGRAMS,
            states=6,
            folder=RESULTS / "figures",
        ),


use rule step as learning_curves with:
    input:
        tables=expand("<results>/metrics/{table}.csv", table=["learning", "weights"]),
    output:
        figure("learning"),
    pathvars:
        job="learning_curves",
    localrule: True
    params:
        **step("ictd.report.figures.learning_curves"),
