# The paper's figures and the learning curves.
MSVE_FIGURES = shown_cells(
    {"figure_01": "main", "figure_05": "depths", "figure_07": "states", "figure_10": "envs"}
)
WEIGHT_FIGURES = shown_cells(
    {"figure_02": "main", "figure_04": "depths", "figure_06": "states", "figure_09": "envs"}
)
# Environment, its options, and layout.
ENVIRONMENT_FIGURES = {
    name: [env, config["readings"]["env_options"].get(env, {}), layout]
    for name, env, layout in (("figure_03", "boyan", "line"), ("figure_08", "loop", "circle"))
}
EXPERIMENT_FIGURES = [*sorted([*MSVE_FIGURES, *WEIGHT_FIGURES, *ENVIRONMENT_FIGURES]), "learning"]


use rule step as curves with:
    input:
        tables=expand(
            "<results>/metrics/{table}.csv",
            table=["msve", "baselines", "weights", "learning", "mean_entries"],
        ),
        options=step(
            "ictd.report.figures.curves",
            figures=MSVE_FIGURES,
            overview_cells=cells(config, "main"),
            folder=RESULTS / "figures",
        ),
    output:
        [figure(name) for name in [*MSVE_FIGURES, "learning", "overview"]],
    pathvars:
        job="curves",
    localrule: True
