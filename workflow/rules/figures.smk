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


use rule step as figure_1 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "main")),
        baselines=baselines_of("main"),
    output:
        output=png("figure_01", "01: MSVE"),
        svg="<results>/figures/figure_01.svg",
    pathvars:
        job="figure_1",
    localrule: True
    params:
        **step("report.figures.msve_curves", vary="main"),


use rule step as figure_2 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "main")),
    output:
        output=png("figure_02", "02: mean P and Q"),
        svg="<results>/figures/figure_02.svg",
    pathvars:
        job="figure_2",
    localrule: True
    params:
        **step("report.figures.weight_maps", vary="main"),


use rule step as figure_3 with:
    output:
        output=png("figure_03", "03: Boyan's chain"),
        svg="<results>/figures/figure_03.svg",
    pathvars:
        job="figure_3",
    localrule: True
    params:
        **example("boyan", layout="line"),


use rule step as figure_4 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "depths")),
    output:
        output=png("figure_04", "04: mean P and Q by depth"),
        svg="<results>/figures/figure_04.svg",
    pathvars:
        job="figure_4",
    localrule: True
    params:
        **step("report.figures.weight_maps", vary="depths"),


use rule step as figure_5 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "depths")),
        baselines=baselines_of("depths"),
    output:
        output=png("figure_05", "05: MSVE by depth"),
        svg="<results>/figures/figure_05.svg",
    pathvars:
        job="figure_5",
    localrule: True
    params:
        **step("report.figures.msve_curves", vary="depths"),


use rule step as figure_6 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "states")),
    output:
        output=png("figure_06", "06: mean P and Q by number of states"),
        svg="<results>/figures/figure_06.svg",
    pathvars:
        job="figure_6",
    localrule: True
    params:
        **step("report.figures.weight_maps", vary="states"),


use rule step as figure_7 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "states")),
        baselines=baselines_of("states"),
    output:
        output=png("figure_07", "07: MSVE by number of states"),
        svg="<results>/figures/figure_07.svg",
    pathvars:
        job="figure_7",
    localrule: True
    params:
        **step("report.figures.msve_curves", vary="states"),


use rule step as figure_8 with:
    output:
        output=png("figure_08", "08: Loop"),
        svg="<results>/figures/figure_08.svg",
    pathvars:
        job="figure_8",
    localrule: True
    params:
        **example("loop", layout="circle"),


use rule step as figure_9 with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=cells(config, "envs")),
    output:
        output=png("figure_09", "09: mean P and Q by environment"),
        svg="<results>/figures/figure_09.svg",
    pathvars:
        job="figure_9",
    localrule: True
    params:
        **step("report.figures.weight_maps", vary="envs"),


use rule step as figure_10 with:
    input:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=cells(config, "envs")),
        baselines=baselines_of("envs"),
    output:
        output=png("figure_10", "10: MSVE by environment"),
        svg="<results>/figures/figure_10.svg",
    pathvars:
        job="figure_10",
    localrule: True
    params:
        **step("report.figures.msve_curves", vary="envs"),


use rule step as figure_learning with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=CELLS),
    output:
        output=png("learning", "learning curves"),
        svg="<results>/figures/learning.svg",
    pathvars:
        job="figure_learning",
    localrule: True
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
