# Evaluation on unseen tasks, baselines on the same tasks, the result tables, and a check of some runs.
BASELINES = [f"{n}-{depth}" for n, depth in sorted({(cell.states, cell.depth) for cell in CELLS})]
TABLES = "msve baselines step_sizes weights mean_weights mean_entries agreement learning truncation".split()
UNSEEN_TABLES = "unseen_msve unseen_baselines over_tasks layers".split()
# The environment of the unseen tasks that decide claims, and further ones, which have tables of their own.
EVALUATED_ON, *ELSEWHERE = evaluation_envs(config)
ELSEWHERE_TABLES = expand("elsewhere/{env}/{table}.csv", env=ELSEWHERE, table=UNSEEN_TABLES)


# One job evaluates all cells, because cells with the same number of states share the unseen tasks.
use rule step as evaluate with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=sorted(CELLS)),
        options=step("ictd.steps.evaluate", config["evaluation"], evaluation_env=EVALUATED_ON),
    output:
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=sorted(CELLS)),
    pathvars:
        job="evaluate",
    priority: 1


# One job makes all baselines, because baselines with the same number of states share contexts.
use rule step as baselines with:
    input:
        options=step("ictd.steps.baselines", config["evaluation"], evaluation_env=EVALUATED_ON),
    output:
        outputs=expand("<results>/baselines/{setting}.npz", setting=BASELINES),
    pathvars:
        job="baselines",
    priority: 1


# Additional unseen tasks, which decide the claims on the MSVE. All cells share them.
use rule step as unseen with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=sorted(CELLS)),
        baselines=expand("<results>/baselines/{setting}.npz", setting=BASELINES),
        options=step("ictd.steps.unseen", config["evaluation"], evaluation_env=EVALUATED_ON),
    output:
        expand("<results>/metrics/{table}.csv", table=UNSEEN_TABLES),
    pathvars:
        job="unseen",
    priority: 1


# Evaluation on the further environments; the wildcard gives the step its parameter `evaluation_env`.
use rule baselines as baselines_elsewhere with:
    input:
        options=step("ictd.steps.baselines", config["evaluation"]),
    output:
        outputs=expand(
            "<results>/elsewhere/{evaluation_env}/baselines/{setting}.npz",
            setting=BASELINES,
            allow_missing=True,
        ),
    pathvars:
        job="baselines/{evaluation_env}",


use rule unseen as unseen_elsewhere with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=sorted(CELLS)),
        baselines=expand(
            "<results>/elsewhere/{evaluation_env}/baselines/{setting}.npz",
            setting=BASELINES,
            allow_missing=True,
        ),
        options=step("ictd.steps.unseen", config["evaluation"]),
    output:
        expand("<results>/elsewhere/{evaluation_env}/{table}.csv", table=UNSEEN_TABLES, allow_missing=True),
    pathvars:
        job="unseen/{evaluation_env}",


use rule step as metrics with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=sorted(CELLS)),
        evaluations=expand("<results>/evaluation/{cell}.npz", cell=sorted(CELLS)),
        baselines=expand("<results>/baselines/{setting}.npz", setting=BASELINES),
        options=step("ictd.steps.metrics"),
    output:
        expand("<results>/metrics/{table}.csv", table=TABLES),
    pathvars:
        job="metrics",
    priority: 1
    localrule: True


# The audit trains each cell on its first tasks with the other engine, and evaluates one run on whole prompts. It is a
# single job, because importing torch takes longer than training a cell on these tasks.
use rule step as audit with:
    input:
        task_sets=expand(f"<results>/tasks/{{simulation}}/{SEED_RANGES[0]}.npz", simulation=SIMULATIONS),
        returns=expand(
            f"<results>/returns/{{simulation}}/{SEED_RANGES[0]}.npz",
            simulation=SIMULATIONS if any(ALGORITHMS[algo].returns for algo in config["algos"]) else [],
        ),
        trained=[f"<results>/runs/{cell}/{SEED_RANGES[0]}.npz" for cell in sorted(CELLS)],
        options=step(
            "ictd.steps.audit",
            config["audit"],
            evaluation_env=EVALUATED_ON,
            unseen_tasks=config["evaluation"]["tasks"],
            context_lengths=config["evaluation"]["context_lengths"],
        ),
    output:
        "<results>/metrics/audit.csv",
    pathvars:
        job="audit",
    # Before the tables: it takes several seconds, and would otherwise run alone at the end.
    priority: 2
    conda:
        f"{ENVS}/pretrain.yaml"
