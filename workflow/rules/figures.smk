# The paper's figures, a rule a kind, and the learning curves. Each kind has its figures, with the cells that they show.
CURVES = {"figure_01": "main", "figure_05": "depths", "figure_07": "states", "figure_10": "envs"}
MAPS = {"figure_02": "main", "figure_04": "depths", "figure_06": "states", "figure_09": "envs"}
# Environment and layout.
DIAGRAMS = {"figure_03": ("boyan", "line"), "figure_08": ("loop", "circle")}
# Figures of cells that the configuration does not have are left out.
SHOWN = [name for kind in (CURVES, MAPS) for name, vary in kind.items() if cells(config, vary)]
SHOWN = [*sorted([*DIAGRAMS, *SHOWN]), "learning"]
of_cells = lambda kind, vary: expand(f"<results>/{kind}/{{cell}}.npz", cell=cells(config, vary))
of_baselines = lambda vary: [
    f"<results>/baselines/{setting}.npz"
    for setting in dict.fromkeys(f"{cell.states}-{cell.depth}" for cell in cells(config, vary))
]
# Read when Snakemake's report is made; as a function of input, it is no reason to draw again.
caption = lambda wildcards, input: (CAPTIONS / f"{wildcards.figure}.rst").read_text(encoding="utf-8")


use rule gather as msve_curves with:
    input:
        evaluations=lambda wildcards: of_cells("evaluation", CURVES[wildcards.figure]),
        baselines=lambda wildcards: of_baselines(CURVES[wildcards.figure]),
    output:
        figure("{figure}"),
    pathvars:
        job="msve_curves/{figure}",
    wildcard_constraints:
        figure="|".join(CURVES),
    params:
        **step("report.figures.msve_curves", vary=lambda wildcards: CURVES[wildcards.figure]),
        caption=caption,


use rule gather as weight_maps with:
    input:
        weights=lambda wildcards: of_cells("weights", MAPS[wildcards.figure]),
    output:
        figure("{figure}"),
    pathvars:
        job="weight_maps/{figure}",
    wildcard_constraints:
        figure="|".join(MAPS),
    params:
        **step("report.figures.weight_maps", vary=lambda wildcards: MAPS[wildcards.figure]),
        caption=caption,


use rule gather as environment_diagrams with:
    output:
        figure("{figure}"),
    pathvars:
        job="environment_diagrams/{figure}",
    wildcard_constraints:
        figure="|".join(DIAGRAMS),
    params:
        **step(
            "report.figures.environment_diagrams",
            env=lambda wildcards: DIAGRAMS[wildcards.figure][0],
            layout=lambda wildcards: DIAGRAMS[wildcards.figure][1],
            states=6,
            env_options=lambda wildcards: env_options(config, DIAGRAMS[wildcards.figure][0]),
        ),
        caption=caption,


use rule gather as learning_curves with:
    input:
        weights=of_cells("weights", None),
    output:
        figure("learning"),
    pathvars:
        job="learning_curves",
    params:
        **step("report.figures.learning_curves"),
