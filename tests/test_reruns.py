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
from projects import ROOT, SMOKE, SMOKE_OF_ALL, copy_project, plans, rules_of, snakemake

from ictd.pipeline import provenance
from ictd.pipeline.provenance import code_digests, notebook_digests
from ictd.pipeline.steps import ROOTS, find_step

FIGURES = {"msve_curves", "weight_maps", "learning_curves"}
UNSEEN = {"evaluate", "baselines"}
PRETRAINING = {"pretrain", "audit"}
# The theory's checks that sample tasks, and those that are of all cells.
SAMPLED = {f"theory_{name}" for name in ("values", "descent", "family", "pretrained", "agreement", "precision")}
OF_GRID = {"theory_agreement", "theory_tables", "pretrained_tables"}
# What names or counts jobs.
COUNTED = {"compute", "workflow_figure"}

# Modules that are edited in a finished run.
EDITED = [
    "fused_engine", "statistics", "report/figures/style", "pipeline/provenance", "mrp", "steps/baselines",
    "pipeline/runner", "pipeline/help",
]  # fmt: skip

# For each configuration key another value, and the rules that use it. The report lists all settings.
SHOWN = {"summaries", "manifest"}
KEYS = {
    "algos": (["mc"], {"evaluate", "slider", *COUNTED, "audit", "metrics", *FIGURES, "pretrained_tables"} | SHOWN),
    "envs": (["boyan"], {"slider", *COUNTED, "audit", "metrics", *FIGURES, "notebook", *OF_GRID} | SHOWN),
    "states": (
        [4],
        {"baselines", "slider", *COUNTED, "audit", "metrics", *FIGURES, "notebook", *OF_GRID, "theory_precision"}
        | SHOWN,
    ),
    "depths": ([6], {"baselines", "slider", *COUNTED, "audit", "metrics", *FIGURES, "notebook", *OF_GRID} | SHOWN),
    "seeds": (4, {*COUNTED, "tasks", "evaluate", "baselines"} | SHOWN),
    "tasks": (301, {"tasks"} | SHOWN),
    "discount": (
        0.8,
        {"slider", "learning_curves", "unrolls", *PRETRAINING, *UNSEEN, "metrics", *SAMPLED, "theory_claims"} | SHOWN,
    ),
    "batch_size": (32, {"unrolls"} | SHOWN),
    "rollout_steps": (100, {"unrolls", "metrics"} | SHOWN),
    "learning_rate": (0.002, PRETRAINING | SHOWN),
    "engine": ("autograd", PRETRAINING | SHOWN),
    "on_divergence": ("record", {"pretrain"} | SHOWN),
    "snapshots": (9, {"pretrain"} | SHOWN),
    "evaluation.tasks": (4, {"evaluate", "baselines", "audit"} | SHOWN),
    "evaluation.context_lengths": ([5, 10], UNSEEN | {"audit"} | SHOWN),
    "evaluation.lstd_ridge": (0.02, {"baselines"} | SHOWN),
    "evaluation.tuning_tasks": (21, {"baselines"} | SHOWN),
    "evaluation.step_sizes": ({"smallest": 0.4}, {"baselines"} | SHOWN),
    "audit.tasks": (5, {"audit"} | SHOWN),
    "audit.tolerance": (1e-9, {"audit"} | SHOWN),
    "theory.tasks": (40, {"theory_values", "theory_descent"} | SHOWN),
    "theory.pretrained_tasks": (40, {"theory_pretrained", "theory_family"} | SHOWN),
    "theory.states": ([3, 5], {"theory_values", "theory_precision"} | SHOWN),
    "theory.depth": (41, {"theory_values", "theory_precision"} | SHOWN),
    "theory.update_depth": (31, {"theory_descent", "theory_family", "theory_pretrained", "theory_precision"} | SHOWN),
    "readings.attention_scale": ("none", {*PRETRAINING, *UNSEEN, "theory_pretrained"} | SHOWN),
    "readings.initial_gain": (0.2, PRETRAINING | SHOWN),
    "readings.env_options": (
        {"loop": {"threshold": 0.6}},
        {"tasks", "metrics", "environment_diagrams", *SAMPLED} | SHOWN,
    ),
    "readings.evaluation_env": ("loop", UNSEEN | {"audit"} | SHOWN),
    "seeds_per_job": (1, set()),
}
# Rules downstream of a key's whose jobs concern other cells or seeds.
UNTOUCHED = {"seeds": {"audit"}}
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


def rules_in(said: str) -> set[str]:
    """Rules that a dry run lists with the number of their jobs."""
    return set(re.findall(r"^(\w+) +\d+$", said, re.MULTILINE)) - {"total"}


def planned(*runs: tuple[Path, str]) -> list[set[str]]:
    """Rules that dry runs list, each given by its folder and file of values."""
    found = []
    for code, said in plans([(folder, ["--quiet", "rules", "--configfile", str(values)]) for folder, values in runs]):
        assert code == 0, said
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


def test_every_key_has_an_entry():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    names = set()
    for key, value in config.items():
        names |= {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
    assert names == set(KEYS) | FIXED


def test_the_order_of_values_is_that_of_figures_alone(finished):
    changes = ["--configfile", SMOKE, "--config", "algos=[mc, td]", "seeds_per_job=2"]
    ((code, said),) = plans([(finished, ["results-smoke/manifest.json", *changes])])
    # The report lists the settings, and the manifest its pages.
    ordered = {"msve_curves", "weight_maps"}
    assert code == 0 and rules_in(said) == {*ordered, "summaries", "notebook", "manifest"}


def differing(found, expected):
    """Where two tables of rules differ: the rules too many and those missing."""
    pairs = {key: (found[key] - expected[key], expected[key] - found[key]) for key in found}
    return {key: pair for key, pair in pairs.items() if any(pair)}


def loaded_modules(log: Path, step: str) -> set[str]:
    """Our modules that a job imported, as Python itself said in its log; of the step's own, which the runner imports by
    name, it says nothing."""
    names = set(re.findall(r"^import time:.*\| +(\S+)$", log.read_text(), re.MULTILINE))
    own = find_step(step).module.split(".")
    names |= {".".join(own[: i + 1]) for i in range(len(own))}
    # A study's folder is a package without code.
    return {name for name in names if name.split(".")[0] in ROOTS and not re.fullmatch(r"studies(\.\w+)?", name)}


def test_digests_are_those_of_the_modules_that_jobs_load(under_conda):
    """Both engines count as imported by what may choose either; packages without code of their own are no modules.  The
    cells of a notebook import in a process of their own, which does not log."""
    either = {line.split()[0] for name in ("fused", "autograd") for line in code_digests(f"ictd.{name}_engine", ROOTS)}
    logs, rules = under_conda / "results-smoke/logs", rules_of(under_conda, SMOKE_OF_ALL)
    cells = {"notebook": ROOT / "report/report.ipynb"}
    cells |= {f"{path.parent.name}_notebook": path for path in (ROOT / "studies").glob("*/notebook.ipynb")}
    in_cells = {rule: {line.split()[0] for line in notebook_digests(path, ROOTS)} for rule, path in cells.items()}
    seen = set()
    for log in logs.rglob("*.log"):
        rule = log.relative_to(logs).parts[0].removesuffix(".log")
        if rule not in rules:
            continue
        seen.add(rule)
        loaded, digested = (
            loaded_modules(log, rules[rule]["step"]),
            set(rules[rule]["modules"]) - {"ictd.steps.__main__"},
        )
        assert len(loaded) > 5 and loaded <= digested, (rule, loaded - digested)
        assert in_cells.get(rule, set()) <= digested
        assert digested - loaded <= either | in_cells.get(rule, set()), (rule, digested - loaded)
    with_steps = {name for name, rule in rules.items() if rule["step"]}
    assert with_steps == seen and in_cells.keys() <= seen


def test_editing_a_module_reruns_what_imports_it(finished, downstream, tmp_path):
    def edited(module):
        folder = tmp_path / module.replace("/", "-")
        shutil.copytree(finished, folder)
        path = folder / f"src/ictd/{module}.py"
        path.write_text(path.read_text() + "\nADDED = 1\n")
        return folder, SMOKE

    rules = rules_of(finished)
    found, expected = dict(zip(EDITED, planned(*map(edited, EDITED)), strict=True)), {}
    for module in EDITED:
        name = f"ictd.{module.replace('/', '.')}"
        users = {rule for rule in downstream if name in rules[rule]["modules"]}
        expected[module] = with_downstream(users, downstream)
    assert differing(found, expected) == {}
    assert found["pipeline/provenance"] == found["pipeline/help"] == set()
    assert found["pipeline/runner"] >= {"tasks", "notebook", "theory_values"}


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
    folder = tmp_path / "edited"
    shutil.copytree(finished, folder)
    for module in folder.glob("src/ictd/**/*.py"):
        text = re.sub(r'^"""', '"""Another docstring. ', module.read_text()) + "\n# A comment.\n"
        module.write_text(text.replace(":\n", ":  # Here.\n\n"))
    cases = {"carried over": (finished, SMOKE), "comments": (folder, SMOKE)}
    found = dict(zip(cases, planned(*cases.values()), strict=True))
    assert found == {name: set() for name in cases}


def test_adding_to_the_grid_keeps_finished_runs(finished):
    added = [["seeds=5"], ["depths=[6, 3, 2]"], ["states=[4, 3, 5]"], ["seeds=4", "envs=[loop, boyan]"]]
    runs = [(finished, ["--quiet", "host", "--configfile", SMOKE, "--config", *values]) for values in added]
    for _, said in plans(runs):
        outputs = re.findall(
            r"results-smoke/runs/[^\s,]+", " ".join(re.findall(r"^    output: .*", said, re.MULTILINE))
        )
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
    names = [line.split()[0] for line in code_digests("p.a", {"p": tmp_path})]
    assert names == ["p", "p.a", "p.b", "p.d", "p.q", "p.q.c"]
    sources = (
        "import os\n",
        "if True:\n    from p.q import c\n",
        "%matplotlib inline\nimport p.other\n",
        "from . import x",
    )
    cells = [{"cell_type": "code", "source": [text]} for text in (*sources, "%%bash\nfor x in *; do\n", "x = (7\n%2)")]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# p"]}, *cells]}))
    of_cells = notebook_digests(tmp_path / "n.ipynb", {"p": tmp_path})
    assert {line.split()[0] for line in of_cells} == {"p", "p.q", "p.q.c", "p.d", "p.other"}
    for text in ("{", "[]", "{}"):
        (tmp_path / "n.ipynb").write_text(text)
        with pytest.raises(ValueError, match=r"n\.ipynb is no notebook"):
            notebook_digests(tmp_path / "n.ipynb", {"p": tmp_path})
    with pytest.raises(ValueError, match=r"no module p\.gone"):
        code_digests("p.gone", {"p": tmp_path})
    (package / "d.py").write_text("x = (\n")
    fresh = "from pathlib import Path; from ictd.pipeline.provenance import code_digests; "
    fresh += "code_digests('p.a', {'p': Path('.').resolve()})"
    done = subprocess.run([sys.executable, "-c", fresh], cwd=tmp_path, capture_output=True, text=True)
    assert "ValueError" in done.stderr and "d.py, line 1" in done.stderr


LAZY = """
from importlib import import_module

def __getattr__(name):
    return getattr(import_module("p.hidden"), name)

def own():
    pass
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("from p import found", "a.py, line 1: take 'found' from the module that has it; what p finds"),
        ("import p\np.found()", "a.py, line 2: take 'found' from the module that has it"),
        ("import p.hidden\np.found()", "a.py, line 2: take 'found' from the module that has it"),
        ("import p as q\nq.found()", "a.py, line 2: take 'found' from the module that has it"),
        ("from importlib import import_module as load\nload('p.hidden')", "a.py: what importlib finds"),
        ("import importlib as i\ni.import_module('p.hidden')", "a.py: what importlib finds is not followed"),
        ("__import__('p.hidden')", "a.py: what __import__ finds is not followed"),
        ("open(__file__ + '.json')", "a.py: what __file__ finds is not followed; use an import statement"),
    ],
)
def test_imports_that_digests_cannot_follow_are_refused(tmp_path, monkeypatch, text, sentence):
    monkeypatch.setattr(provenance, "FOLLOWED", ("p",))
    (tmp_path / "p").mkdir()
    for name, content in {"__init__": LAZY, "hidden": "def found():\n    pass\n", "a": text}.items():
        (tmp_path / f"p/{name}.py").write_text(content)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        code_digests("p.a", {"p": tmp_path})
    (tmp_path / "p/a.py").write_text("from p import hidden, own\nfrom p.hidden import found\n")
    provenance._module.cache_clear()
    assert [line.split()[0] for line in code_digests("p.a", {"p": tmp_path})] == ["p", "p.a", "p.hidden"]
