"""What a configuration needs, beside what steps take and what Snakemake plans."""

import copy
import importlib
import re
import tracemalloc

import numpy as np
import pytest
from projects import ROOT, SMOKE_OF_ALL, STUDIES, copy_project, in_megabytes, plans
from snakemake.utils import update_config
from tolerances import NEEDED

import ictd
from ictd.pipeline.needs import BASE, checked_needs, paper_needs
from ictd.pipeline.steps import find_step
from ictd.pipeline.yaml_files import load_yaml

CONFIG = load_yaml(ROOT / "config.yaml")
SCHEMA = load_yaml(ROOT / "workflow/schemas/config.schema.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 10**15}, "tasks is 1000000000000000, with which a job of rule tasks needs about 6.*e.10 GB"),
        ({"seeds": 10**9}, "seeds is 1000000000, with which a job of rule tasks needs about"),
        ({"seeds": 10**9, "seeds_per_job": 1}, r"seeds is 1000000000, which makes about 2\.2e\+10 jobs; give less"),
        ({"depths": [30, 10**12]}, r"depths is \[30, 1000000000000\], with which a job of rule"),
        ({"depths": list(range(1, 4000)), "seeds_per_job": 1}, r"depths is \[1, 2, .* \.\.\. .*, 3999\], which makes"),
        ({"states": [256]}, r"states is \[256\], with which a job of rule tasks"),
        ({"rollout_steps": 10**12}, "rollout_steps is 1000000000000, with which a job of rule unrolls"),
        ({"snapshots": 10**12}, "snapshots is 1000000000000, with which a job of rule pretrain"),
        ({"theory": {"depth": 10**10}}, "theory.depth is 10000000000, with which a job of rule theory_values"),
        ({"theory": {"states": [3, 10**6]}}, r"theory.states is \[3, 1000000\], with which a job of rule"),
        ({"evaluation": {"tuning_tasks": 10**9}}, "evaluation.tuning_tasks is 1000000000, with which a job"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_key(change, message):
    config = copy.deepcopy(CONFIG)
    update_config(config, change)
    with pytest.raises(ValueError, match=f"^Config: {message}"):
        checked_needs(paper_needs, config, SCHEMA["properties"], 2, 24e9)


def test_clusters_may_have_more_memory_than_this_machine_but_no_more_than_can_be_addressed():
    for config in (CONFIG | {"tasks": 10**9}, CONFIG | {"seeds": 10**4}):
        checked_needs(paper_needs, config, SCHEMA["properties"], None)
    with pytest.raises(ValueError, match=r"give less, as there are 1\.4e\+05 GB"):
        checked_needs(paper_needs, CONFIG | {"tasks": 10**12}, SCHEMA["properties"], None)


def test_memory_is_about_what_steps_take(tmp_path):
    config = CONFIG | {
        "states": [10], "depths": [10], "envs": ["loop"], "tasks": 2000, "seeds": 5, "seeds_per_job": 5,
        "rollout_steps": 20, "snapshots": 100,
        "theory": {"tasks": 200, "pretrained_tasks": 100, "states": [10], "depth": 300, "update_depth": 50},
    }  # fmt: skip
    needs = paper_needs(config, 1).memory
    one = config | config["readings"] | {"env": "loop", "states": 10, "depth": 10, "env_options": {}}
    one |= {"seeds": "0-4", "on_divergence": "record", "diverged": tmp_path}
    files = {"tasks": tmp_path / "tasks.npz", "unrolls": tmp_path / "unrolls.npz"}
    drawn = ictd.sample_tasks("loop", 10, 2, np.random.default_rng(0))
    batches = ictd.unroll(drawn, config["batch_size"], 0.9, 2, np.random.default_rng(0))
    ictd.pretrain(drawn, batches, "td", 2, 0.9, 0.1, np.zeros(20), np.zeros((20, 20)))
    for name, given in (
        ("tasks", one),
        ("unrolls", one | files),
        ("pretrain", one | files),
        ("theory.values", one | config["theory"]),
        ("theory.descent", one | config["theory"] | {"states": 10}),
    ):
        step, given = find_step(name), given | {"output": tmp_path / f"{name}.npz"}
        given["outputs"] = [tmp_path / f"{algo}-loop-10-10/0-4.npz" for algo in ("td", "mc")]
        main = importlib.import_module(step.module).main
        tracemalloc.start()
        main(**{parameter: given[parameter] for parameter in step.parameters()})
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        least, greatest = NEEDED
        assert least < most / (needs[name.replace(".", "_")] - BASE) < greatest, name


def test_a_run_says_what_it_needs_and_asks_for_it(tmp_path):
    folder = copy_project(tmp_path)
    (folder / "twice.yaml").write_text("seeds: 3\nseeds: 4\n")
    smoke, rules = ["--configfile", *SMOKE_OF_ALL], ["--quiet", "rules"]
    large = [*smoke, "--quiet", "host", "--config", "tasks=1e6"]
    runs = [[*smoke, *rules], large, ["--configfile", "twice.yaml", *rules], ["--config", "tasks=1e15", *rules]]
    (code, said), (_, of_large), *refused = plans([(folder, one) for one in runs])
    assert code == 0
    studies = "".join(rf"; {name} \d+ jobs .*" for name in STUDIES)
    (line,) = re.findall(rf"^Needed, about: the paper (\d+) jobs .*{studies}\.$", said, re.MULTILINE)
    assert line == re.search(r"^total +(\d+)$", said, re.MULTILINE)[1]
    asked = re.findall(r"^rule tasks:\n(?:    .*\n)*    resources: .*mem_mb=(\d+)", of_large, re.MULTILINE)
    assert asked and all(2500 < int(size) < 3000 for size in asked)
    assert "twice.yaml, line 2: key 'seeds' is there twice." in refused[0][0]
    assert "Config: tasks is 1000000000000000, with which a job of rule tasks" in refused[1][0]
    assert not any("Traceback" in found[1] for found in refused)


# Jobs, MB of results, and MB of memory beside Python's, so that no estimate changes unseen.
AT_FULL_SIZE = 63, 819.1, {
    "tasks": 1210, "unrolls": 646.4, "pretrain": 546.5, "audit": 505.3, "evaluate": 13.74, "baselines": 53.54,
    "theory_descent": 534, "theory_pretrained": 152.5, "theory_family": 362.4, "theory_agreement": 13.86,
    "theory_precision": 0.5258, "theory_values": 264,
}  # fmt: skip
DEEP_AND_LONG = 43, 157.2, {
    "tasks": 13.82, "unrolls": 15.65, "pretrain": 45.19, "audit": 15.73, "evaluate": 49.54, "baselines": 22.16,
    "theory_descent": 203.1, "theory_pretrained": 143.2, "theory_family": 116.2, "theory_agreement": 18,
    "theory_precision": 0.2839, "theory_values": 264,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "cores", "expected"),
    [
        ({}, 2, AT_FULL_SIZE),
        (
            {"states": [4], "depths": [2, 500], "tasks": 3000, "snapshots": 3000, "batch_size": 300, "seeds": 7},
            None,
            DEEP_AND_LONG,
        ),
    ],
)
def test_estimates_are_what_they_were(change, cores, expected):
    assert in_megabytes(paper_needs(CONFIG | change, cores)) == expected
