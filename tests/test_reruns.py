"""An edit reruns exactly the rules that use the edited code or setting, and the rules downstream.

This also holds if Snakemake has lost its records, because options files are inputs of jobs.
"""

import os
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
import yaml
from imports import imported_modules
from projects import (
    ROOT,
    SMOKE,
    copy_project,
    planned_rules,
    plans,
    rules_of_paper,
    small_project,
    snakemake,
    with_results,
)

from ictd.storage import load_json

# Another value of each key, which no other key has.
KEYS = {
    "tasks": 301, "discount": 0.8, "batch_size": 32, "rollout_steps": 100, "learning_rate": 0.002, "engine": "torch",
    "on_divergence": "record", "snapshots": 9,
    "evaluation.tasks": 4, "evaluation.claim_tasks": 7, "evaluation.context_lengths": [5, 11],
    "evaluation.lstd_ridge": 0.02, "evaluation.tuning_tasks": 21,
    "evaluation.step_sizes": {"smallest": 0.4, "largest": 4, "number": 4},
    "audit.tasks": 19, "audit.tolerance": 1e-9,
    "theory.tasks": 40, "theory.pretrained_tasks": 60, "theory.states": [3, 4, 5], "theory.depth": 41,
    "theory.update_depth": 31,
    "readings.scaled_attention": False, "readings.initial_gain": 0.2,
    "readings.env_options": {"loop": {"threshold": 0.6}}, "readings.evaluation_env": "loop",
}  # fmt: skip
# The steps before evaluation, and all keys that they get.
PRETRAINING = {
    "ictd.steps.tasks": {"tasks", "batch_size", "readings.env_options"},
    "ictd.steps.returns": {"discount", "rollout_steps"},
    "ictd.steps.pretrain": {
        "discount", "learning_rate", "engine", "on_divergence", "snapshots", "readings.scaled_attention",
        "readings.initial_gain",
    },
}  # fmt: skip
# Keys that change the grid, keys with only one possible value, and the folder of results.
OTHERS = {"algos", "envs", "seeds", "states", "depths", "seeds_per_job", "environments", "results"}
OTHERS |= {"readings.trained_parameters", "readings.loss"}
# Results that are removed, with the rules that make them; some of them no rule needs but the list of results.
REMOVED = {
    "weights/td-loop-5-6.npz": "weights",
    "report.html": "results",
    "baselines/5-6.npz": "baselines",
}
RATE = ["--config", "learning_rate=0.002"]
DISCOUNT = ["--config", "discount=0.8"]
TIMES = ["--rerun-triggers", "mtime"]
RUN = "results-smoke/runs/td-loop-5-6/0-2.npz"
RETURNED = "results-smoke/returns/boyan-3/0-2.npz"


def add_a_statement(folder: Path, module: str = "mrp") -> None:
    with open(folder / f"src/ictd/{module}.py", "a") as file:
        file.write("\nADDED = 1\n")


def edit_text(folder: Path) -> None:
    path = folder / "report/sentences.toml"
    path.write_text(path.read_text() + "# Another text.\n")
    # The edited file may have any time, such as that of an older copy.
    os.utime(path, (10**9, 10**9))


def edit_comments(folder: Path) -> None:
    for module in folder.glob("src/ictd/**/*.py"):
        text = re.sub(r'^"""', '"""Another docstring. ', module.read_text())
        module.write_text(text + "\n# A comment.\n")


def remove(folder: Path) -> None:
    for name in REMOVED:
        (folder / "results-smoke" / name).unlink()


def carry_out(folder: Path, *arguments: str) -> None:
    done = snakemake(folder, *arguments, "--cores", "1")
    assert done.returncode == 0, done.stdout[-5000:]


def forget(folder: Path) -> None:
    shutil.rmtree(folder / ".snakemake")


def forget_and(edit, folder: Path) -> None:
    forget(folder)
    edit(folder)


def forget_and_run(folder: Path) -> None:
    """Snakemake then has records of the jobs of this run only."""
    forget(folder)
    (folder / "results-smoke/metrics/msve.csv").unlink()
    carry_out(folder, "results-smoke/metrics/msve.csv")


def truncate_records(folder: Path) -> None:
    for path in (folder / ".snakemake/metadata").rglob("*"):
        if path.is_file():
            os.truncate(path, path.stat().st_size // 2)


def clean_records(folder: Path) -> None:
    runs = [str(path.relative_to(folder)) for path in folder.glob("results-smoke/runs/*/*.npz")]
    carry_out(folder, "--cleanup-metadata", *runs)


def run_without_records(folder: Path) -> None:
    (folder / RUN).unlink()
    carry_out(folder, RUN, "--drop-metadata")


def stop_two_runs(folder: Path) -> None:
    """Of the second run, with another discount, only one job has ended."""
    carry_out(folder, RETURNED, *DISCOUNT)
    forget(folder)


def copy_older_results(folder: Path) -> None:
    """As with ``cp -a``, after a run with another discount, whose records are forgotten."""
    results, older = folder / "results-smoke", folder / "older"
    shutil.copytree(results, older)
    carry_out(folder, RETURNED, *DISCOUNT)
    shutil.rmtree(results)
    older.rename(results)
    forget(folder)


# What happens to a finished run, the arguments of the next run, and rules that this run must and must not repeat.
EVENTS = {
    "comments and docstrings": (edit_comments, [], set(), {"all"}),
    "removed files": (remove, [], {*REMOVED.values(), "manifest"}, {"tasks", "returns", "pretrain"}),
    "a rate": (None, RATE, {"pretrain", "evaluate", "manifest"}, {"tasks", "returns"}),
    "a statement of the report": (
        partial(add_a_statement, module="report/figures/style"), [], {"results", "manifest"},
        {"tasks", "returns", "pretrain", "evaluate", "evaluate_claims", "audit", "theory_values", "metrics"},
    ),
    "forgotten, a text": (partial(forget_and, edit_text), [], {"results", "manifest"}, {"metrics", "pretrain"}),
    "forgotten, a statement": (
        partial(forget_and, add_a_statement), [], {"tasks", "theory_values", "results"}, {"explore"},
    ),
    # The report lists the settings, and the manifest its pages.
    "order and jobs": (
        None, ["results-smoke/manifest.json", "--config", "algos=[mc, td]", "seeds_per_job=2"],
        {"results", "manifest"}, {"tasks", "pretrain", "evaluate", "metrics"},
    ),
    "a larger grid": (
        None, ["--config", "seeds=5", "depths=[6, 3, 2]", "states=[5, 3, 4]", "envs=[boyan, loop]"],
        {"tasks", "returns", "pretrain", "evaluate", "manifest"}, set(),
    ),
}  # fmt: skip
# Rarer events, some with a run of some jobs.
RARE_EVENTS = {
    "forgotten": (forget, [], set(), {"all"}),
    "truncated records, a rate": (truncate_records, RATE, {"pretrain", "manifest"}, set()),
    "times only, a rate": (None, [*TIMES, *RATE], {"pretrain", "manifest"}, {"tasks", "returns"}),
    "a smaller grid": (
        None,
        ["--config", "envs=[boyan]", "algos=[mc]"],
        {"evaluate", "metrics", "results", "manifest"},
        {"tasks", "returns", "pretrain", "weights"},
    ),
    "forgotten, one job, a rate": (forget_and_run, RATE, {"pretrain", "manifest"}, {"tasks", "returns"}),
    "cleaned records, a rate": (clean_records, RATE, {"pretrain", "manifest"}, {"tasks", "returns"}),
    "dropped records, a rate": (run_without_records, RATE, {"pretrain", "manifest"}, {"tasks", "returns"}),
    "times only, a statement": (add_a_statement, TIMES, {"tasks", "results"}, set()),
    "two stopped runs": (stop_two_runs, DISCOUNT, {"returns", "pretrain", "manifest"}, {"tasks"}),
    "older results": (copy_older_results, DISCOUNT, {"returns", "pretrain", "manifest"}, {"tasks"}),
}


@pytest.fixture(scope="module")
def finished(smoke, tmp_path_factory) -> Path:
    """A finished smoke run in a fresh copy of the project."""
    folder = copy_project(tmp_path_factory.mktemp("carried"), without=("studies",))
    with_results(smoke, folder)
    for path in folder.rglob("*.py"):
        os.utime(path)
    return folder


def said_after(finished: Path, folder: Path, events: dict) -> dict[str, str]:
    """Output of dry runs, by the name of the event."""
    runs = {}
    for name, (edit, arguments, *_) in events.items():
        copy = shutil.copytree(finished, folder / re.sub("[, ]+", "-", name), symlinks=True)
        if edit:
            edit(copy)
        runs[name] = copy, arguments
    found = dict(zip(runs, plans([*runs.values()]), strict=True))
    assert {name: text for name, (code, text) in found.items() if code} == {}
    return {name: text for name, (_, text) in found.items()}


@pytest.fixture(scope="module")
def said(finished, tmp_path_factory) -> dict[str, str]:
    graph = {"graph": (None, ["--rulegraph"])}
    return said_after(finished, tmp_path_factory.mktemp("changed"), EVENTS | graph)


@pytest.fixture(scope="module")
def downstream(said) -> dict[str, set[str]]:
    """For each rule, the rules that its output is an input of."""
    names = dict(re.findall(r'^\t(\d+)\[label = "(\w+)"', said["graph"], re.MULTILINE))
    edges = {name: set() for name in names.values()}
    for source, target in re.findall(r"^\t(\d+) -> (\d+)$", said["graph"], re.MULTILINE):
        edges[names[source]].add(names[target])
    return edges


def options_of(folder: Path) -> dict[str, dict]:
    """Contents of the options files of a dry run, by their names."""
    options = folder / ".snakemake/options/results-smoke/options"
    files = [path for path in options.rglob("*.json") if path.is_file()]
    return {str(path.parent.relative_to(options)): load_json(path) for path in sorted(files)}


@pytest.fixture(scope="module")
def changed_options(tmp_path_factory) -> list[tuple[str, dict, dict]]:
    """Step and options of each options file, before and after a change of all of KEYS."""
    folders = [small_project(tmp_path_factory.mktemp("plan")) for _ in range(2)]
    config = yaml.safe_load((ROOT / SMOKE).read_text())
    for key, value in KEYS.items():
        inner, *names = config, *key.split(".")
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        inner[names[-1]] = value
    changed = folders[1] / "changed.yaml"
    changed.write_text(yaml.safe_dump(config))
    for code, text in plans([(folders[0], []), (folders[1], ["--configfile", str(changed)])]):
        assert code == 0, text
    before, after = map(options_of, folders)
    assert before.keys() == after.keys()
    return [(content["step"], content["options"], after[path]["options"]) for path, content in before.items()]


def test_every_key_has_an_entry():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    names = set()
    for key, value in config.items():
        names |= {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
    assert names == KEYS.keys() | OTHERS


def holds(option, value) -> bool:
    """Whether an option has a value, or some of the items of a mapping."""
    if isinstance(value, dict) and isinstance(option, dict):
        return any(option.get(name) == value[name] for name in value)
    return option == value


def test_steps_get_the_values_of_all_keys_but_pretraining_only_its_own(changed_options):
    """The pages and the manifest list all settings."""
    found = {}
    for step, before, after in changed_options:
        changed = [after[name] for name in after.keys() - {"settings"} if after[name] != before[name]]
        keys = {key for key, value in KEYS.items() if any(holds(option, value) for option in changed)}
        found[step] = found.get(step, set()) | keys
    assert set().union(*found.values()) == KEYS.keys()
    assert {step: found[step] for step in PRETRAINING} == PRETRAINING


def test_every_rule_of_the_paper_has_options(changed_options):
    """The article, which needs the studies, is not in this project."""
    assert {step for step, *_ in changed_options} | {"ictd.steps.report.article"} == {
        step for step, _ in rules_of_paper().values()
    }


def check(said: dict[str, str], name: str, event: tuple) -> None:
    planned, (*_, repeated, kept) = planned_rules(said[name]), event
    assert repeated <= planned and not kept & planned
    assert ("Nothing to be done" in said[name]) == (not repeated)


@pytest.mark.parametrize("name", EVENTS)
def test_a_run_repeats_what_an_event_makes_invalid(said, name):
    check(said, name, EVENTS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", RARE_EVENTS)
def test_a_run_repeats_what_a_rare_event_makes_invalid(finished, tmp_path, name):
    said = said_after(finished, tmp_path, {name: RARE_EVENTS[name]})
    check(said, name, RARE_EVENTS[name])
    if name == "two stopped runs":
        outputs = re.findall(r"^    output: (results-smoke/returns/.*)$", said[name], re.MULTILINE)
        assert sorted(outputs) == [f"results-smoke/returns/{setting}/0-2.npz" for setting in ("boyan-5", "loop-5")]


def test_adding_to_the_grid_keeps_finished_runs(said, finished):
    outputs = re.findall(r"^    output: (results-smoke/runs/.*)$", said["a larger grid"], re.MULTILINE)
    assert outputs and not [path for path in outputs if (finished / path).exists()]


# Modules that a step imports for other settings only.
UNUSED = {"pretrain": "ictd.torch_twin"}
# Modules whose edits are planned in each run of the tests.
EDITED = "baselines evaluation engine theory.updates torch_twin report.html".split()
MODULES = [
    ".".join(path.relative_to(ROOT / "src/ictd").with_suffix("").parts)
    for path in sorted((ROOT / "src/ictd").rglob("*.py"))
    if path.name != "__init__.py"
]


def check_edits(finished: Path, folder: Path, downstream: dict[str, set[str]], modules: list[str]) -> None:
    """An edit of a module repeats the rules whose steps import it, and the rules that need their output."""
    edits = {name: (partial(add_a_statement, module=name.replace(".", "/")), []) for name in modules}
    said = said_after(finished, folder, edits)
    steps = {rule: step for rule, (step, _) in rules_of_paper().items() if rule in downstream}
    imported = {rule: imported_modules(step, UNUSED.get(rule, "")) for rule, step in steps.items()}
    # The step of a part imports its results by a name that is a value, and so does the notebook.
    for module in ("ictd.report.paper.results", "ictd.report.page"):
        imported["results"] |= imported_modules(module)
    for name in modules:
        waiting = [rule for rule in steps if f"ictd.{name}" in imported[rule]]
        expected = set()
        while waiting:
            rule = waiting.pop()
            if rule not in expected:
                expected.add(rule)
                waiting += downstream[rule]
        assert planned_rules(said[name]) == expected, name


def test_an_edit_repeats_the_rules_that_import_the_module(finished, tmp_path, downstream):
    check_edits(finished, tmp_path, downstream, EDITED)


@pytest.mark.slow
def test_an_edit_of_any_module_repeats_the_rules_that_import_it(finished, tmp_path, downstream):
    check_edits(finished, tmp_path, downstream, [name for name in MODULES if name not in EDITED])


OUTER = """
rule all:
    input:
        "mine.txt",


rule mine:
    output:
        "mine.txt",
    shell:
        "touch {{output}}"


module ictd:
    snakefile:
        "{snakefile}"
    config:
        config
    {prefix}


use rule * from ictd as ictd_*
"""


@pytest.fixture(scope="module")
def outer(smoke, tmp_path_factory) -> dict[str, tuple[int | str, str]]:
    """Exit codes and messages of dry runs of a workflow that uses this one as a module, with finished results."""
    project = small_project(tmp_path_factory.mktemp("module"))
    folders = {name: project.parent / f"outer-{name}" for name in ("plain", "prefix")}
    for name, folder in folders.items():
        folder.mkdir()
        prefix = 'prefix:\n        "sub"' if name == "prefix" else ""
        (folder / "Snakefile").write_text(OUTER.format(snakefile=project / "workflow/Snakefile", prefix=prefix))
    shutil.copytree(smoke / "results-smoke", folders["plain"] / "results-smoke")
    values = ["--configfile", str(project / SMOKE)]
    runs = {
        "default": (folders["plain"], values),
        "rate": (folders["plain"], ["ictd_paper", *values, *RATE]),
        "prefix": (folders["prefix"], values),
    }
    return dict(zip(runs, plans([*runs.values()]), strict=True))


def test_a_workflow_that_uses_this_one_keeps_its_default_target(outer):
    assert outer["default"][0] == 0 and planned_rules(outer["default"][1]) == {"all", "mine"}


def test_reruns_are_right_in_a_module(outer):
    planned = planned_rules(outer["rate"][1])
    assert "ictd_pretrain" in planned and "ictd_tasks" not in planned


def test_a_prefix_of_a_module_is_refused(outer):
    ended, text = outer["prefix"]
    assert "The module of this workflow has a prefix; give another folder as `results`" in f"{ended}{text}"
    assert "Traceback" not in text
