# Task sets and the statistics of their unrolled batches.
# Without the digests of its step: what it compiles is no result.
use rule step as kernels with:
    output:
        touch("<results>/kernels/{module}-{digest}"),
    pathvars:
        job="kernels/{module}-{digest}",
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        step="kernels",
        values="--module {module}",
        taken="",
        files="",


use rule step as tasks with:
    output:
        "<results>/tasks/{env}-{states}/{seeds}.npz",
    pathvars:
        job="tasks/{env}-{states}/{seeds}",
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        **step("tasks", tasks=config["tasks"], env_options=own_options),


use rule step as unrolls with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        kernels=kernels("ictd.trajectories"),
    output:
        "<results>/unrolls/{env}-{states}/{seeds}.npz",
    pathvars:
        job="unrolls/{env}-{states}/{seeds}",
    conda:
        f"{ENVS}/simulate.yaml"
    params:
        **step("unrolls"),
