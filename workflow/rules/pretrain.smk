# Multi-task TD and multi-task MC, for a range of seeds of one setting.  One job runs both algorithms, because they share
# tasks, and each takes less time than the start of Python.
use rule step as pretrain with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        unrolls="<results>/unrolls/{env}-{states}/{seeds}.npz",
    output:
        outputs=expand(
            f"<results>/runs/{CELL}/{{seeds}}.npz", algo=sorted(config["algos"]), allow_missing=True
        ),
    pathvars:
        job=f"pretrain/{SETTING}/{{seeds}}",
    priority: more_states_first
    conda:
        f"{ENVS}/pretrain.yaml"
    resources:
        mem_mb=memory,
        runtime=240,
    params:
        **step("ictd.steps.pretrain", diverged=RESULTS / "diverged"),


# The first tasks of each cell again, by the engine that the run did not use, and a run's evaluation on whole prompts; in
# one job, as torch's import takes longer than the training of a cell.
use rule step as audit with:
    input:
        task_sets=[f"<results>/tasks/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        unrolls=[f"<results>/unrolls/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        trained=[f"<results>/runs/{cell}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
    output:
        "<results>/metrics/audit.csv",
    pathvars:
        job="audit",
    conda:
        f"{ENVS}/pretrain.yaml"
    params:
        **step(
            "ictd.steps.audit",
            config["audit"],
            unseen_tasks=config["evaluation"]["tasks"],
            context_lengths=config["evaluation"]["context_lengths"],
            env_options=UNSEEN_OPTIONS,
        ),
