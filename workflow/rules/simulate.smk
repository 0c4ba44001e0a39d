# Task sets and the statistics of their unrolled batches.
use rule step as tasks with:
    input:
        options=step("ictd.steps.tasks", tasks=config["tasks"]),
    output:
        "<results>/tasks/{env}-{states}/{seeds}.npz",
    pathvars:
        job="tasks/{env}-{states}/{seeds}",
    priority: before_unrolls
    conda:
        f"{ENVS}/simulate.yaml"


use rule step as unrolls with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        options=step("ictd.steps.unrolls"),
    output:
        "<results>/unrolls/{env}-{states}/{seeds}.npz",
    pathvars:
        job="unrolls/{env}-{states}/{seeds}",
    priority: more_states_first
    conda:
        f"{ENVS}/simulate.yaml"
