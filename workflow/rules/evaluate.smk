# Evaluation on unseen tasks, the baselines beside it, and the result tables.
BASELINES = ["{}-{}".format(*pair) for pair in sorted({(cell.states, cell.depth) for cell in CELLS})]
TABLES = "msve baselines weights mean_weights agreement learning truncation audit".split()


use rule step as evaluate with:
    input:
        runs=of_algos(RUNS, seeds=GROUPS),
    output:
        weights=of_algos(f"<results>/weights/{CELL}.npz"),
        evaluations=of_algos(f"<results>/evaluation/{CELL}.npz"),
    pathvars:
        job=f"evaluate/{SETTING}",
    # Before what nothing but tables waits for: the theory at pretrained weights waits for it.
    priority: 2
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        **step("evaluate", env_options=UNSEEN_OPTIONS),


use rule step as baselines with:
    output:
        # Together, as those of one number of states have the same contexts.
        tuned=expand("<results>/baselines/{setting}.json", setting=BASELINES),
        baselines=expand("<results>/baselines/{setting}.npz", setting=BASELINES),
    pathvars:
        job="baselines",
    priority: 1
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        **step("baselines", env_options=UNSEEN_OPTIONS),


use rule gather as metrics with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=sorted(CELLS)),
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=sorted(CELLS)),
        baselines=expand("<results>/baselines/{setting}.npz", setting=BASELINES),
        audit="<results>/audit.json",
    output:
        expand("<results>/metrics/{table}.csv", table=TABLES),
    pathvars:
        job="metrics",
    priority: 1
    params:
        **step("report.result_tables"),
