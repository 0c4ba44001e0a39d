# The paper's figures, a rule each, and the learning curves.
baselines_of = lambda vary: [
    f"<results>/baselines/{setting}.npz"
    for setting in dict.fromkeys(f"{cell.states}-{cell.depth}" for cell in cells(config, vary))
]
example = lambda env, layout: step(
    "report.figures.environment_diagrams",
    env=env,
    states=6,
    env_options=env_options(config, env),
    layout=layout,
)


use rule gather as figure_1 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "main")),
        baselines=baselines_of("main"),
    output:
        figure("figure_01", "01: MSVE"),
    pathvars:
        job="figure_1",
    params:
        **step("report.figures.msve_curves", vary="main"),


use rule gather as figure_2 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "main")),
    output:
        figure("figure_02", "02: mean P and Q"),
    pathvars:
        job="figure_2",
    params:
        **step("report.figures.weight_maps", vary="main"),


use rule gather as figure_3 with:
    output:
        figure("figure_03", "03: Boyan's chain"),
    pathvars:
        job="figure_3",
    params:
        **example("boyan", layout="line"),


use rule gather as figure_4 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "depths")),
    output:
        figure("figure_04", "04: mean P and Q by depth"),
    pathvars:
        job="figure_4",
    params:
        **step("report.figures.weight_maps", vary="depths"),


use rule gather as figure_5 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "depths")),
        baselines=baselines_of("depths"),
    output:
        figure("figure_05", "05: MSVE by depth"),
    pathvars:
        job="figure_5",
    params:
        **step("report.figures.msve_curves", vary="depths"),


use rule gather as figure_6 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "states")),
    output:
        figure("figure_06", "06: mean P and Q by number of states"),
    pathvars:
        job="figure_6",
    params:
        **step("report.figures.weight_maps", vary="states"),


use rule gather as figure_7 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "states")),
        baselines=baselines_of("states"),
    output:
        figure("figure_07", "07: MSVE by number of states"),
    pathvars:
        job="figure_7",
    params:
        **step("report.figures.msve_curves", vary="states"),


use rule gather as figure_8 with:
    output:
        figure("figure_08", "08: Loop"),
    pathvars:
        job="figure_8",
    params:
        **example("loop", layout="circle"),


use rule gather as figure_9 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "envs")),
    output:
        figure("figure_09", "09: mean P and Q by environment"),
    pathvars:
        job="figure_9",
    params:
        **step("report.figures.weight_maps", vary="envs"),


use rule gather as figure_10 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "envs")),
        baselines=baselines_of("envs"),
    output:
        figure("figure_10", "10: MSVE by environment"),
    pathvars:
        job="figure_10",
    params:
        **step("report.figures.msve_curves", vary="envs"),


use rule gather as figure_learning with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=CELLS),
    output:
        figure("learning", "learning curves"),
    pathvars:
        job="figure_learning",
    params:
        **step("report.figures.learning_curves"),


# Figures of a study that the configuration does not vary are left out.
SHOWN = ["figure_01", "figure_02", "figure_03"]
SHOWN += ["figure_04", "figure_05"] if cells(config, "depths") else []
SHOWN += ["figure_06", "figure_07"] if cells(config, "states") else []
SHOWN += ["figure_08"]
SHOWN += ["figure_09", "figure_10"] if cells(config, "envs") else []
SHOWN += ["learning"]
FIGURES = expand("<results>/figures/{name}.png", name=SHOWN)
