# Tasks with the steps of their batches, and the returns, which only multi-task MC needs.
use rule step as tasks with:
    input:
        options=step("ictd.steps.tasks", tasks=config["tasks"]),
    output:
        "<results>/tasks/{env}-{states}/{seeds}.npz",
    pathvars:
        job="tasks/{env}-{states}/{seeds}",
    priority: before_returns


use rule step as returns with:
    input:
        tasks="<results>/tasks/{env}-{states}/{seeds}.npz",
        options=step("ictd.steps.returns"),
    output:
        "<results>/returns/{env}-{states}/{seeds}.npz",
    pathvars:
        job="returns/{env}-{states}/{seeds}",
    priority: more_states_first
