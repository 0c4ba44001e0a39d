"""An edit reruns exactly the rules that use the edited code or setting, and the rules downstream."""

import os
import re
import shutil
from pathlib import Path

import networkx as nx
import pytest
import yaml
from projects import ROOT, SMOKE, copy_project, planned_rules, plans, rules_of_paper, with_results

from ictd.pipeline.provenance import code_digests, notebook_digests
from ictd.pipeline.rules import RUNNER
from ictd.report.figures.workflow import ARROWS, BOXES
from ictd.storage import load_json, save_json

FIGURES = {"curves", "diagrams"}
UNSEEN = {"evaluate", "baselines", "unseen"}
PRETRAINING = {"pretrain", "audit"}
# The theory's checks that sample tasks, and the checks of all cells.
SAMPLED = {f"theory_{name}" for name in ("values", "descent", "family", "pretrained", "agreement", "precision")}
OF_GRID = {"theory_agreement", "theory_tables", "theory_family", "theory_pretrained", "theory_precision"}

# For each configuration key another value, and the rules that use it. The report lists all settings.
SHOWN = {"pages", "manifest"}
KEYS = {
    "algos": (
        ["mc"],
        {"evaluate", "pretrained_tables", "audit", "metrics", "unseen", *FIGURES} | SHOWN,
    ),
    "envs": (["boyan"], {"audit", "metrics", "unseen", *FIGURES, "notebook", *OF_GRID} | SHOWN),
    "states": (
        [4],
        {"audit", "metrics", "unseen", *FIGURES, "notebook", *OF_GRID} | SHOWN,
    ),
    "depths": (
        [6],
        {"audit", "metrics", "unseen", *FIGURES, "notebook"} | {"theory_agreement", "theory_pretrained"} | SHOWN,
    ),
    "seeds": (4, {"diagrams", "tasks", "evaluate", "baselines"} | SHOWN),
    "tasks": (301, {"tasks"} | SHOWN),
    "discount": (
        0.8,
        {"unrolls", *PRETRAINING, *UNSEEN, "metrics", *SAMPLED, "claims"} | SHOWN,
    ),
    "batch_size": (32, {"unrolls"} | SHOWN),
    "rollout_steps": (100, {"unrolls", "metrics"} | SHOWN),
    "learning_rate": (0.002, PRETRAINING | SHOWN),
    "engine": ("autograd", PRETRAINING | SHOWN),
    "on_divergence": ("record", {"pretrain"} | SHOWN),
    "snapshots": (9, {"pretrain"} | SHOWN),
    "evaluation.tasks": (4, {"evaluate", "baselines", "audit"} | SHOWN),
    "evaluation.claim_tasks": (4, {"unseen"} | SHOWN),
    "evaluation.context_lengths": ([5, 10], UNSEEN | {"audit"} | SHOWN),
    "evaluation.lstd_ridge": (0.02, {"baselines", "unseen"} | SHOWN),
    "evaluation.tuning_tasks": (21, {"baselines"} | SHOWN),
    "evaluation.step_sizes": ({"smallest": 0.4}, {"baselines"} | SHOWN),
    "audit.tasks": (5, {"audit"} | SHOWN),
    "audit.tolerance": (1e-9, {"audit"} | SHOWN),
    "theory.tasks": (40, {"theory_values", "theory_descent"} | SHOWN),
    "theory.pretrained_tasks": (40, {"theory_pretrained", "theory_family"} | SHOWN),
    "theory.states": ([3, 5], {"theory_values", "theory_precision"} | SHOWN),
    "theory.depth": (41, {"theory_values", "theory_precision"} | SHOWN),
    "theory.update_depth": (31, {"theory_descent", "theory_family", "theory_pretrained", "theory_precision"} | SHOWN),
    "readings.scaled_attention": (False, {*PRETRAINING, *UNSEEN, "theory_pretrained"} | SHOWN),
    "readings.initial_gain": (0.2, PRETRAINING | SHOWN),
    "readings.env_options": (
        {"loop": {"threshold": 0.6}},
        {"tasks", "metrics", "diagrams", *SAMPLED} | SHOWN,
    ),
    "readings.evaluation_env": ("loop", UNSEEN | {"audit"} | SHOWN),
    "seeds_per_job": (1, set()),
}
# Rules downstream of a key's rules whose jobs are for other cells or seeds.
UNTOUCHED = {"seeds": {"audit"}}
# Keys with only one possible value, and the folder of results.
FIXED = {"environments", "readings.trained_parameters", "readings.loss", "results"}
# Modules that are edited in a finished run, and two that no result depends on.
EDITED = ["pretraining", "report/figures/style", "mrp", "steps/baselines", "pipeline/runner"]
BESIDE = ["pipeline/record", "pipeline/config"]
# Additions to the grid.
ADDED = [["seeds=5", "depths=[6, 3, 2]"], ["seeds=4", "states=[4, 3, 5]", "envs=[loop, boyan]"]]
# Results that are removed, with the rules that make them; some of them no rule needs but the list of results.
REMOVED = {
    "weights/td-loop-4-6.npz": "evaluate",
    "figures/figure_05.svg": "curves",
    "tables/msve.html": "pages",
    "baselines/4-6.npz": "baselines",
}


def forget(folder: Path) -> None:
    shutil.rmtree(folder / ".snakemake")


def forget_and_edit(folder: Path) -> None:
    forget(folder)
    add_a_statement(folder, "mrp")


def put_old_results_in_place(folder: Path) -> None:
    """As ``cp -a`` of a folder of results that another version made."""
    path = folder / "results-smoke/run.json"
    record = load_json(path)
    record["code"]["ictd.mrp"] = "another"
    save_json(path, record)


OTHER_CODE = "other settings or code (ictd.mrp), and .snakemake has no record of it."
# Results without a record of Snakemake: changes of them, and the expected messages.
UNKNOWN = {
    "forgotten": (forget, "Nothing to be done"),
    "forgotten, an edit": (forget_and_edit, OTHER_CODE),
    "older results": (put_old_results_in_place, OTHER_CODE),
}


@pytest.fixture(scope="module")
def finished(smoke, tmp_path_factory) -> Path:
    """A finished smoke run in a fresh copy of the project."""
    folder = copy_project(tmp_path_factory.mktemp("carried"), without=("studies",))
    with_results(smoke, folder)
    for path in folder.rglob("*.py"):
        os.utime(path)
    return folder


def values_with(key: str, value, path: Path) -> list[str]:
    """Arguments for the smoke run's values with another value of a key."""
    config = yaml.safe_load((ROOT / SMOKE).read_text())
    inner, *names = config, *key.split(".")
    for name in names[:-1]:
        inner = inner.setdefault(name, {})
    inner[names[-1]] = value
    path.write_text(yaml.safe_dump(config))
    return ["--configfile", str(path)]


def add_a_statement(folder: Path, *modules: str) -> None:
    for module in modules:
        with open(folder / f"src/ictd/{module}.py", "a") as file:
            file.write("\nADDED = 1\n")


def edit_comments(folder: Path) -> None:
    for module in folder.glob("src/ictd/**/*.py"):
        text = re.sub(r'^"""', '"""Another docstring. ', module.read_text()) + "\n# A comment.\n"
        module.write_text(text.replace(":\n", ":  # Here.\n\n"))


@pytest.fixture(scope="module")
def said(finished, tmp_path_factory) -> dict[str, str]:
    """Output of dry runs, by the name of the change."""
    folder = tmp_path_factory.mktemp("changed")

    def copy_with(name, edit, *arguments) -> Path:
        copied = shutil.copytree(finished, folder / name.replace("/", "-"), symlinks=True)
        edit(copied, *arguments)
        return copied

    def remove(copied):
        for name in REMOVED:
            (copied / "results-smoke" / name).unlink()

    runs = {"nothing": (finished, []), "graph": (finished, ["--rulegraph"])}
    runs |= {key: (finished, values_with(key, KEYS[key][0], folder / f"{key}.yaml")) for key in KEYS}
    runs |= {module: (copy_with(module, add_a_statement, module), []) for module in EDITED}
    runs |= {"comments": (copy_with("comments", edit_comments), [])}
    runs |= {"beside": (copy_with("beside", add_a_statement, *BESIDE), [])}
    runs |= {"removed": (copy_with("removed", remove), [])}
    runs |= {" ".join(values): (finished, ["--config", *values]) for values in ADDED}
    runs |= {name: (copy_with(name, edit), []) for name, (edit, _) in UNKNOWN.items()}
    runs |= {"order": (finished, ["results-smoke/manifest.json", "--config", "algos=[mc, td]", "seeds_per_job=2"])}
    found = dict(zip(runs, plans([*runs.values()]), strict=True))
    assert {name: text for name, (code, text) in found.items() if code and name not in UNKNOWN} == {}
    return {name: f"{text}{code}" for name, (code, text) in found.items()}


@pytest.fixture(scope="module")
def downstream(said) -> dict[str, set[str]]:
    """For each rule, the rules that its output is an input of."""
    names = dict(re.findall(r'^\t(\d+)\[label = "(\w+)"', said["graph"], re.MULTILINE))
    edges = {name: set() for name in names.values()}
    for source, target in re.findall(r"^\t(\d+) -> (\d+)$", said["graph"], re.MULTILINE):
        edges[names[source]].add(names[target])
    return edges


def with_downstream(rules: set[str], edges: dict[str, set[str]]) -> set[str]:
    """Rules and all rules downstream of them."""
    found, waiting = set(), sorted(rules)
    while waiting:
        rule = waiting.pop()
        if rule not in found:
            found.add(rule)
            waiting += edges[rule]
    return found


def differing(found: dict[str, set[str]], expected: dict[str, set[str]]) -> dict:
    """Differences between two tables of rules: additional and missing rules."""
    pairs = {key: (found[key] - expected[key], expected[key] - found[key]) for key in found}
    return {key: pair for key, pair in pairs.items() if any(pair)}


def test_every_key_has_an_entry():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    names = set()
    for key, value in config.items():
        names |= {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
    assert names == set(KEYS) | FIXED


def test_changing_a_value_reruns_what_uses_it(said, downstream):
    found = {key: planned_rules(said[key]) for key in KEYS}
    expected = {key: with_downstream(rules, downstream) for key, (_, rules) in KEYS.items()}
    assert differing(found, {key: rules - UNTOUCHED.get(key, set()) for key, rules in expected.items()}) == {}


def test_editing_a_module_reruns_what_imports_it(said, downstream):
    imported = {rule: {*code_digests(step), RUNNER} for rule, (step, _) in rules_of_paper().items()}
    imported["notebook"] |= notebook_digests(ROOT / "report/report.ipynb").keys()
    found, expected = {module: planned_rules(said[module]) for module in EDITED}, {}
    for module in EDITED:
        users = {rule for rule in imported if f"ictd.{module.replace('/', '.')}" in imported[rule]}
        expected[module] = with_downstream(users, downstream)
    assert differing(found, expected) == {}
    assert found["pipeline/runner"] >= {*imported}


def test_the_picture_of_the_workflow_is_that_of_its_rules(downstream):
    """Each rule has its box, each arrow is a path, and no path between boxes lacks arrows."""
    box = {rule: title for title, (*_, rules) in BOXES.items() for rule in rules.split()}
    assert box.keys() == downstream.keys()
    drawn = nx.DiGraph(ARROWS)
    follow = nx.DiGraph((box[a], box[b]) for a in downstream for b in downstream[a] if box[a] != box[b])
    assert nx.transitive_closure(drawn).edges == nx.transitive_closure(follow).edges


@pytest.mark.parametrize("name", ["nothing", "comments", "beside"])
def test_changes_that_affect_no_result_rerun_nothing(said, name):
    assert planned_rules(said[name]) == set() and "Nothing to be done" in said[name]


def test_the_order_of_values_changes_only_figures(said):
    """The report lists the settings, and the manifest its pages."""
    assert planned_rules(said["order"]) == {"curves", "diagrams", "pages", "notebook", "manifest"}


@pytest.mark.parametrize("values", ADDED, ids=" ".join)
def test_adding_to_the_grid_keeps_finished_runs(said, finished, values):
    listed = re.findall(r"^    output: (results-smoke/runs/.*)$", said[" ".join(values)], re.MULTILINE)
    outputs = [path for files in listed for path in files.split(", ")]
    assert outputs and not [path for path in outputs if (finished / path).exists()]


def test_removed_files_are_made_again(said):
    assert {*REMOVED.values(), "manifest"} <= planned_rules(said["removed"])
    assert not {"tasks", "unrolls", "pretrain"} & planned_rules(said["removed"])


@pytest.mark.parametrize("name", UNKNOWN)
def test_results_without_a_record_of_snakemake_are_refused(said, name):
    assert UNKNOWN[name][-1] in said[name] and "Traceback" not in said[name]
