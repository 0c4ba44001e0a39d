"""An edit reruns the rules that it touches and what stands downstream of them, and nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import copy_project, snakemake

from ictd.pipeline.provenance import code_digests

ROOT = Path(__file__).parents[1]
SMOKE = "tests/smoke.yaml"

# Their rules are no part of what `all` makes, and a module that only they use has no rule here.
STUDIES = {ROOT / f"workflow/rules/{name}.smk" for name in ("anatomy", "beyond", "attention")}

CURVES = {"figure_1", "figure_5", "figure_7", "figure_10"}
MAPS = {"figure_2", "figure_4", "figure_6", "figure_9"}
DIAGRAMS = {"figure_3", "figure_8"}
FIGURES = {*CURVES, *MAPS, *DIAGRAMS, "figure_learning"}
UNSEEN = {"evaluate", "tune", "baselines"}
PRETRAINING = {"pretrain", "audit"}
# The theory's checks: those that sample tasks, and all.
SAMPLED = {"theory_values", "theory_descent", "theory_pretrained", "theory_agreement", "theory_precision"}
OF_GRID = {"theory_agreement", "theory_tables"}
THEORY = {*SAMPLED, "theory_tables", "theory_figures"}
EVERY = {
    "tasks", "unrolls", *PRETRAINING, *UNSEEN, "metrics", "claims", "manifest", "summaries", "compute", "notebook",
    "page", *FIGURES, *THEORY,
}  # fmt: skip

# The rules whose steps import a module, by themselves or through others; kernels where it is part of compiled code.
MODULES = {
    "__init__": EVERY | {"kernels"},
    "ablation": set(),
    "agents": set(),
    "attention": set(),
    "autograd": PRETRAINING,
    "batched": set(),
    "bayes": set(),
    "blocks": set(),
    "claims": {"claims", "summaries"},
    "config": set(),
    "contexts": set(),
    "decomposition": set(),
    "emergence": set(),
    "environments": {"tasks", "metrics", *UNSEEN, *DIAGRAMS, *SAMPLED},
    "estimators": UNSEEN,
    "evaluation": {"evaluate", "baselines"},
    "failures": set(),
    "figures/__init__": FIGURES | {"theory_figures"},
    "figures/agents": set(),
    "figures/curves": CURVES | {"figure_learning"},
    "figures/diagrams": DIAGRAMS,
    "figures/emergence": set(),
    "figures/heatmaps": MAPS,
    "figures/style": FIGURES | {"theory_figures"},
    "figures/theory": {"theory_figures"},
    "frames": {"metrics", "claims", "summaries", "compute", "theory_tables", "theory_figures"},
    "fused": PRETRAINING | {"theory_agreement", "kernels"},
    "gram": set(),
    "grid": {"metrics", *PRETRAINING, *FIGURES, "theory_tables", "theory_figures"} | {"claims", "summaries", "compute"},
    "html": {"summaries", "compute", "page"},
    "measures": {"metrics", "figure_learning", "theory_pretrained"},
    "mrp": {"tasks", "unrolls", *PRETRAINING, *UNSEEN, "metrics", *DIAGRAMS, *SAMPLED, "kernels"},
    "pretraining": PRETRAINING,
    "prompts": {*PRETRAINING, "evaluate", "baselines", *SAMPLED},
    "provenance": set(),
    "readings": set(),
    "runs": PRETRAINING,
    "sampling": {"unrolls", *PRETRAINING, *UNSEEN, "theory_agreement", "kernels"},
    "statistics": {"claims", "summaries", *CURVES, "figure_learning"},
    "steps/__init__": EVERY,
    "steps/ablate": set(),
    "steps/ablation_tables": set(),
    "steps/agent": set(),
    "steps/agent_claims": set(),
    "steps/agent_pages": set(),
    "steps/agent_values": set(),
    "steps/attention": set(),
    "steps/attention_values": set(),
    "steps/audit": {"audit"},
    "steps/baselines": {"baselines"},
    "steps/beyond_tables": set(),
    "steps/claims": {"claims"},
    "steps/compute": {"compute"},
    "steps/course": set(),
    "steps/emergence_claims": set(),
    "steps/emergence_pages": set(),
    "steps/evaluate": {"evaluate"},
    "steps/join_tables": set(),
    "steps/kernels": set(),
    "steps/manifest": {"manifest"},
    "steps/metrics": {"metrics"},
    "steps/notebook": {"notebook"},
    "steps/page": {"page"},
    "steps/phase": set(),
    "steps/plot_agents": set(),
    "steps/plot_curves": CURVES,
    "steps/plot_emergence": set(),
    "steps/plot_environment": DIAGRAMS,
    "steps/plot_learning": {"figure_learning"},
    "steps/plot_theory": {"theory_figures"},
    "steps/plot_weights": MAPS,
    "steps/pretrain": {"pretrain"},
    "steps/reading": set(),
    "steps/reading_tables": set(),
    "steps/reference": set(),
    "steps/summaries": {"summaries"},
    "steps/tasks": {"tasks"},
    "steps/theory_agreement": {"theory_agreement"},
    "steps/theory_descent": {"theory_descent"},
    "steps/theory_precision": {"theory_precision"},
    "steps/theory_pretrained": {"theory_pretrained"},
    "steps/theory_tables": {"theory_tables"},
    "steps/theory_values": {"theory_values"},
    "steps/trace": set(),
    "steps/tune": {"tune"},
    "steps/unrolls": {"unrolls"},
    "steps/verify": set(),
    "steps/yardsticks": set(),
    "storage": EVERY,
    "streams": {"tasks", "unrolls", *PRETRAINING, *UNSEEN, "metrics", *DIAGRAMS, *SAMPLED},
    "summaries": {"summaries", "compute"},
    "tables": {"metrics"},
    "theory/__init__": SAMPLED | {"claims", "summaries"},
    "theory/agreement": {"theory_agreement"},
    "theory/claims": {"claims", "summaries"},
    "theory/embeddings": SAMPLED,
    "theory/neu": {"theory_descent", "theory_pretrained"},
    "theory/precision": {"theory_precision"},
    "theory/statements": {"theory_values", "theory_descent", "theory_precision"},
    "transformer": {*PRETRAINING, "evaluate", "baselines", "theory_agreement"},
    "validation": UNSEEN,
    "verification": set(),
    "yardsticks": set(),
    "weights": {*PRETRAINING, "evaluate", "baselines", "metrics", *MAPS, "figure_learning", *SAMPLED, "kernels"},
}

# Those that are edited in a finished run; the others' params are read.
EDITED = ["fused", "claims", "figures/style", "provenance", "mrp", "steps/tune"]

# For each configuration key another value, and the rules that use it. The report lists all settings.
SHOWN = {"summaries", "manifest"}
KEYS = {
    "algos": (["mc"], {"audit", "metrics", "compute", *CURVES, *MAPS, "figure_learning", "theory_tables"} | SHOWN),
    "envs": (["boyan"], {"audit", "metrics", "compute", "figure_learning", "notebook", *OF_GRID} | SHOWN),
    "states": (
        [4],
        {"audit", "metrics", "compute", "figure_learning", "notebook", *OF_GRID, "theory_precision"} | SHOWN,
    ),
    "depths": ([6], {"audit", "metrics", "compute", "figure_learning", "notebook", *OF_GRID} | SHOWN),
    "seeds": (4, {"tasks", "evaluate", "baselines", "compute"} | SHOWN),
    "tasks": (301, {"tasks"} | SHOWN),
    "discount": (0.8, {"tasks", "unrolls", *PRETRAINING, *UNSEEN, "metrics", *SAMPLED, "claims"} | SHOWN),
    "batch_size": (32, {"unrolls"} | SHOWN),
    "rollout_steps": (100, {"unrolls", "metrics"} | SHOWN),
    "learning_rate": (0.002, PRETRAINING | SHOWN),
    "engine": ("autograd", PRETRAINING | SHOWN),
    "on_divergence": ("record", {"pretrain"} | SHOWN),
    "snapshots": (9, {"pretrain"} | SHOWN),
    "evaluation.tasks": (4, {"evaluate", "baselines"} | SHOWN),
    "evaluation.context_lengths": ([5, 10], UNSEEN | SHOWN),
    "evaluation.lstd_ridge": (0.02, {"baselines"} | SHOWN),
    "evaluation.tuning_tasks": (21, {"tune"} | SHOWN),
    "evaluation.step_sizes": ({"smallest": 0.4}, {"tune"} | SHOWN),
    "audit.tasks": (5, {"audit"} | SHOWN),
    "audit.tolerance": (1e-9, {"audit"} | SHOWN),
    "theory.tasks": (40, {"theory_values", "theory_descent"} | SHOWN),
    "theory.pretrained_tasks": (40, {"theory_pretrained"} | SHOWN),
    "theory.states": ([3, 5], {"theory_values", "theory_precision"} | SHOWN),
    "theory.depth": (41, {"theory_values", "theory_precision"} | SHOWN),
    "theory.update_depth": (31, {"theory_descent", "theory_pretrained", "theory_precision"} | SHOWN),
    "readings.attention_scale": ("none", {*PRETRAINING, *UNSEEN, "theory_pretrained"} | SHOWN),
    "readings.initial_gain": (0.2, PRETRAINING | SHOWN),
    "readings.env_options": ({"loop": {"threshold": 0.6}}, {"tasks", "metrics", "figure_8", *SAMPLED} | SHOWN),
    "readings.evaluation_env": ("loop", UNSEEN | SHOWN),
    "seeds_per_job": (1, set()),
}
# Keys of the studies, which nothing of `all` depends on.
STUDY_KEYS = {
    "anatomy": {
        "tasks": 21, "tuning_tasks": 21, "context_lengths": [5], "step_sizes": {"smallest": 0.4},
        "course": {"seeds": 3}, "phase": {"seeds": 3}, "readings": [{"name": "as_is"}],
    },
    "beyond": {
        "seeds": 3, "main_tasks": 301, "tasks": 101, "snapshots": 4, "lengths": [4, 50], "clip": 2, "depths": [2],
        "states": [3], "discounts": [0.4], "test_tasks": 21, "tuning_tasks": 31, "context_lengths": [5],
        "step_sizes": {"smallest": 0.2}, "updates": [6], "ridges": {"smallest": 0.1}, "bayes_samples": 401,
        "attention_tasks": 101, "attentions": [{"name": "linear"}],
    },
}  # fmt: skip
# Rules downstream of a key's whose jobs concern other cells or seeds.
UNTOUCHED = {
    "seeds": {"audit"},
    "readings.env_options": (CURVES | MAPS) - {"figure_9", "figure_10"},
}
# These have a single value, or are the place of the results.
FIXED = {"readings.trained_parameters", "readings.loss", "results"}


@pytest.fixture(scope="module")
def finished(smoke, tmp_path_factory) -> Path:
    """A finished smoke run, carried over to a fresh copy of the project, where nothing is to be done."""
    folder = copy_project(tmp_path_factory.mktemp("carried"))
    for part in (".snakemake", "results-smoke"):
        shutil.copytree(smoke / part, folder / part)
    for path in folder.rglob("*.py"):
        os.utime(path)
    return folder


DRY = ["--cores", "1", "--dry-run", "--nolock"]


def plans(runs: list[tuple[Path, list[str]]]) -> list[str]:
    """What dry runs say, each given by its folder and arguments."""
    jobs = json.dumps([(str(folder), [*DRY, *arguments]) for folder, arguments in runs])
    command = [sys.executable, ROOT / "tests/plans.py"]
    done = subprocess.run(command, input=jobs, stdout=subprocess.PIPE, check=True, text=True, timeout=900)
    ended = json.loads(done.stdout)
    assert all(code == 0 for code, _ in ended), ended
    return [said for _, said in ended]


def rules_in(said: str) -> set[str]:
    """Rules that a dry run lists with the number of their jobs."""
    return set(re.findall(r"^(\w+) +\d+$", said, re.MULTILINE)) - {"total"}


def planned(*runs: tuple[Path, str]) -> list[set[str]]:
    """Rules that dry runs list, each given by its folder and file of values."""
    found = []
    for said in plans([(folder, ["--quiet", "rules", "--configfile", str(values)]) for folder, values in runs]):
        found.append(rules_in(said))
        assert bool(found[-1]) == ("Nothing to be done" not in said), said
    return found


@pytest.fixture(scope="module")
def downstream(finished) -> dict[str, set[str]]:
    """For each rule, the rules that its output is an input of."""
    graph = snakemake(finished, "--rulegraph").stdout
    names = dict(re.findall(r'^\t(\d+)\[label = "(\w+)"', graph, re.MULTILINE))
    edges = {name: set() for name in names.values()}
    for source, target in re.findall(r"^\t(\d+) -> (\d+)$", graph, re.MULTILINE):
        edges[names[source]].add(names[target])
    # Each job of this rule is for the users of one module, who import it and so are in the table themselves.
    edges["kernels"] = set()
    return edges


def with_downstream(rules: set[str], edges: dict[str, set[str]]) -> set[str]:
    """Rules and all that follows from them."""
    found, waiting = set(), sorted(rules)
    while waiting:
        rule = waiting.pop()
        if rule not in found:
            found.add(rule)
            waiting += edges[rule]
    return found


def test_every_module_and_key_has_an_entry():
    modules = {str(path.relative_to(ROOT / "src/ictd").with_suffix("")) for path in (ROOT / "src/ictd").rglob("*.py")}
    assert modules == set(MODULES)
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    names = set()
    for key, value in config.items():
        nested = key in ("evaluation", "audit", "theory", "readings", "anatomy", "beyond")
        names |= {f"{key}.{inner}" for inner in value} if nested else {key}
    assert names == set(KEYS) | FIXED | {f"{study}.{key}" for study, keys in STUDY_KEYS.items() for key in keys}


def test_the_order_of_values_after_the_first_is_no_matter(finished):
    changes = ["--configfile", SMOKE, "--config", "algos=[mc, td]", "seeds_per_job=2"]
    (said,) = plans([(finished, ["results-smoke/manifest.json", *changes])])
    assert rules_in(said) == {"manifest"}


def differing(found, expected):
    """Where two tables of rules differ: the rules too many and those missing."""
    pairs = {key: (found[key] - expected[key], expected[key] - found[key]) for key in found}
    return {key: pair for key, pair in pairs.items() if any(pair)}


def steps_of_rules() -> dict[str, str]:
    """For each rule the step whose digests are its params, as the rules files have it."""
    found = {}
    for path in sorted(set((ROOT / "workflow/rules").glob("*.smk")) - STUDIES):
        blocks = re.split(r"^(?:rule|use rule \w+ as) (\w+)(?: with)?:$", path.read_text(), flags=re.MULTILINE)[1:]
        for name, body in zip(blocks[::2], blocks[1::2], strict=True):
            if step := re.search(r"\*code\(\"(\w+)\"\)", body):
                found[name] = step[1]
    return found


def test_each_rule_has_the_digests_of_the_step_that_it_calls():
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(), re.DOTALL | re.MULTILINE):
            called = re.findall(r"python -m ictd\.steps\.(\w+)", body)
            assert called in ([], re.findall(r'\*code\("(\w+)"\)', body)) or name == "kernels", name


def test_each_module_is_in_the_params_of_the_rules_that_import_it():
    imported = {step: code_digests(f"ictd.steps.{step}", ROOT / "src") for step in set(steps_of_rules().values())}
    compiled = {
        line.split()[0] for name in ("sampling", "fused") for line in code_digests(f"ictd.{name}", ROOT / "src")
    }
    found = {module: set() for module in MODULES}
    for rule, step in steps_of_rules().items():
        for line in imported[step]:
            name = line.split()[0].removeprefix("ictd").removeprefix(".").replace(".", "/")
            found[name if name in MODULES else f"{name}/__init__".removeprefix("/")].add(rule)
    for name in compiled:
        found[name.removeprefix("ictd").removeprefix(".").replace(".", "/") or "__init__"].add("kernels")
    assert differing(found, MODULES) == {}


def test_editing_a_module_reruns_what_imports_it(finished, downstream, tmp_path):
    def edited(module):
        folder = tmp_path / module.replace("/", "-")
        shutil.copytree(finished, folder)
        path = folder / f"src/ictd/{module}.py"
        path.write_text(path.read_text() + "\nADDED = 1\n")
        return folder, SMOKE

    found = dict(zip(EDITED, planned(*map(edited, EDITED)), strict=True))
    assert differing(found, {module: with_downstream(MODULES[module], downstream) for module in EDITED}) == {}


def test_changing_a_value_reruns_what_uses_it(finished, downstream, tmp_path):
    def changed(key):
        config = yaml.safe_load((ROOT / SMOKE).read_text())
        inner, *names = config, *key.split(".")
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        inner[names[-1]] = KEYS[key][0]
        path = tmp_path / f"{key}.yaml"
        path.write_text(yaml.safe_dump(config))
        return finished, path

    found = dict(zip(KEYS, planned(*map(changed, KEYS)), strict=True))
    expected = {key: with_downstream(rules, downstream) for key, (_, rules) in KEYS.items()}
    assert differing(found, {key: rules - UNTOUCHED.get(key, set()) for key, rules in expected.items()}) == {}


def test_what_touches_no_result_reruns_nothing(finished, tmp_path):
    path = tmp_path / "studies.yaml"
    config = yaml.safe_load((ROOT / SMOKE).read_text())
    path.write_text(yaml.safe_dump({**config, **{study: config[study] | keys for study, keys in STUDY_KEYS.items()}}))
    folder = tmp_path / "edited"
    shutil.copytree(finished, folder)
    for module in folder.glob("src/ictd/**/*.py"):
        text = re.sub(r'^"""', '"""Another docstring. ', module.read_text()) + "\n# A comment.\n"
        module.write_text(text.replace(":\n", ":  # Here.\n\n"))
    cases = {"carried over": (finished, SMOKE), "values of studies": (finished, path), "comments": (folder, SMOKE)}
    found = dict(zip(cases, planned(*cases.values()), strict=True))
    assert found == {name: set() for name in cases}


def test_adding_to_the_grid_keeps_finished_runs(finished):
    added = [["seeds=5"], ["depths=[6, 3, 2]"], ["states=[4, 3, 5]"], ["seeds=4", "envs=[loop, boyan]"]]
    runs = [(finished, ["--quiet", "host", "--configfile", SMOKE, "--config", *values]) for values in added]
    for said in plans(runs):
        outputs = re.findall(r"^    output: (results-smoke/runs/\S+)$", said, re.MULTILINE)
        assert outputs
        assert not [path for path in outputs if (finished / path).exists()]


def test_digests_follow_all_kinds_of_imports(tmp_path):
    package = tmp_path / "p"
    (package / "q").mkdir(parents=True)
    files = {
        "__init__": "",
        "a": "def f():\n    from . import b\n",
        "b": "import p.q.c as c\n",
        "q/__init__": "",
        "q/c": "from ..d import x\n",
        "d": "x = 1\n",
        "other": "",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    names = [line.split()[0] for line in code_digests("p.a", tmp_path)]
    assert names == ["p", "p.a", "p.b", "p.d", "p.q", "p.q.c"]
    with pytest.raises(ValueError, match=r"has no module p\.gone"):
        code_digests("p.gone", tmp_path)
    (package / "d.py").write_text("x = (\n")
    fresh = "from pathlib import Path; import ictd.provenance as p; p.code_digests('p.a', Path('.').resolve())"
    done = subprocess.run([sys.executable, "-c", fresh], cwd=tmp_path, capture_output=True, text=True)
    assert "ValueError" in done.stderr and "d.py, line 1" in done.stderr
