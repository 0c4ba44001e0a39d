RUNS = f"<results>/runs/{CELL}/{{seeds}}.npz"


# Multi-task TD and multi-task MC, for a range of seeds: of one cell, or where cores are few of a setting by all
# algorithms.
use rule step as pretrain with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        unrolls="<results>/unrolls/{env}-{states}/{seeds}.npz",
    output:
        # Without a name: a job is done again where what it names changes, as with another algorithm.
        of_job(RUNS),
    pathvars:
        job=f"pretrain/{OF_JOB}/{{seeds}}",
    # Where each has its own jobs, one algorithm after the other, before what other settings wait for: fewer jobs side by
    # side compile one kernel.
    priority: lambda wildcards: awaited(wildcards) + 1000 * (wildcards.get("algo") == config["algos"][0])
    conda:
        f"{ENVS}/pretrain.yaml"
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        **step("pretrain", diverged=RESULTS / "diverged"),


# The first tasks of each cell again, by the engine that the run did not use, and a run's evaluation on whole prompts; in
# one job, as torch's import takes longer than the training of a cell.
use rule step as audit with:
    input:
        task_sets=[f"<results>/tasks/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        unrolls=[f"<results>/unrolls/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        trained=[f"<results>/runs/{cell}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
    output:
        "<results>/audit.json",
    pathvars:
        job="audit",
    conda:
        f"{ENVS}/pretrain.yaml"
    params:
        **step(
            "audit",
            unseen_tasks=config["evaluation"]["tasks"],
            context_lengths=config["evaluation"]["context_lengths"],
            env_options=UNSEEN_OPTIONS,
        ),
