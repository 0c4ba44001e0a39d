# Multi-task TD and multi-task MC, for a range of seeds of one setting. One job runs both algorithms, because they share
# tasks and each of them takes less time than starting Python.
use rule step as pretrain with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        unrolls="<results>/unrolls/{env}-{states}/{seeds}.npz",
        options=step("ictd.steps.pretrain", diverged=RESULTS / "diverged"),
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


# The audit trains each cell on its first tasks with the other engine, and evaluates one run on whole prompts. It is a
# single job, because importing torch takes longer than training a cell on these tasks.
use rule step as audit with:
    input:
        task_sets=[f"<results>/tasks/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        unrolls=[f"<results>/unrolls/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        trained=[f"<results>/runs/{cell}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        options=step(
            "ictd.steps.audit",
            config["audit"],
            unseen_tasks=config["evaluation"]["tasks"],
            context_lengths=config["evaluation"]["context_lengths"],
        ),
    output:
        "<results>/metrics/audit.csv",
    pathvars:
        job="audit",
    conda:
        f"{ENVS}/pretrain.yaml"
