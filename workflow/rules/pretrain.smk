# Multi-task TD or multi-task MC, for a range of seeds of one cell.
use rule step as pretrain with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        returns=returns_of,
        options=step(
            "ictd.steps.pretrain",
            without=() if config["engine"] == "torch" else ("ictd.torch_twin",),
            diverged=RESULTS / "diverged",
        ),
    output:
        f"<results>/runs/{CELL}/{{seeds}}.npz",
    pathvars:
        job=f"pretrain/{CELL}/{{seeds}}",
    priority: more_states_first
    conda:
        f"{ENVS}/pretrain.yaml"
    resources:
        mem_mb=memory,
        runtime=240,


# The runs of all seeds of a cell in one file.
use rule step as weights with:
    input:
        runs=expand(f"<results>/runs/{CELL}/{{seeds}}.npz", seeds=SEED_RANGES, allow_missing=True),
        options=step("ictd.steps.weights"),
    output:
        f"<results>/weights/{CELL}.npz",
    pathvars:
        job=f"weights/{CELL}",
    priority: 2
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
