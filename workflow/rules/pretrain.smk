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
