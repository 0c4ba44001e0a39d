# Task sets and the statistics of their unrolled batches.
use rule step as tasks with:
    output:
        "<results>/tasks/{env}-{states}/{seeds}.npz",
    pathvars:
        job="tasks/{env}-{states}/{seeds}",
    priority: before_unrolls
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        **step("ictd.steps.tasks", tasks=config["tasks"]),


use rule step as unrolls with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
    output:
        "<results>/unrolls/{env}-{states}/{seeds}.npz",
    pathvars:
        job="unrolls/{env}-{states}/{seeds}",
    priority: more_states_first
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        **step("ictd.steps.unrolls"),
