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
from projects import ROOT, copy_project, planned_rules, plans, snakemake, with_results

from ictd.storage import load_json

# All options of the steps before evaluation.
PRETRAINING = {
    "tasks": {"tasks", "batch_size", "env_options"},
    "returns": {"discount", "rollout_steps"},
    "pretrain": {
        "discount", "learning_rate", "engine", "on_divergence", "snapshots", "scaled_attention", "initial_gain",
    },
}  # fmt: skip
# Keys that change the grid, keys with only one possible value, and the folder of results.
OTHERS = {"algos", "envs", "depths", "seeds_per_job", "extensions", "results", "trained_parameters", "loss"}
# Results that are removed, with the rules that make them; some of them no rule needs but the list of results.
REMOVED = {
    "weights/td-loop-5-6.npz": "weights",
    "report.html": "results",
    "baselines/5-6.npz": "baselines",
}
# A workflow that uses this one as a module.
OUTER = """
rule all:
    input:
        "mine.txt",


rule mine:
    output:
        "mine.txt",
    shell:
        "touch {output}"


module ictd:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from ictd as ictd_*
"""
RATE = ["--config", "learning_rate=0.002"]
DISCOUNT = ["--config", "discount=0.8"]
RETURNED = "results-smoke/returns/boyan-3/0-2.npz"


def add_a_statement(folder: Path) -> None:
    with open(folder / "src/ictd/mrp.py", "a") as file:
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


def use_as_a_module(folder: Path) -> None:
    (folder / "outer.smk").write_text(OUTER)


def link_from_a_path_with_a_space(folder: Path) -> None:
    (folder / "a folder").symlink_to(folder)


def remove(folder: Path) -> None:
    for name in REMOVED:
        (folder / "results-smoke" / name).unlink()


def carry_out(folder: Path, *arguments: str) -> None:
    done = snakemake(folder, *arguments, "--cores", "1")
    assert done.returncode == 0, done.stdout[-5000:]


def forget(folder: Path, edit=None) -> None:
    """Remove Snakemake's records."""
    shutil.rmtree(folder / ".snakemake")
    if edit:
        edit(folder)


def truncate_records(folder: Path) -> None:
    for path in (folder / ".snakemake/metadata").rglob("*"):
        if path.is_file():
            os.truncate(path, path.stat().st_size // 2)


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
    "forgotten, a text": (partial(forget, edit=edit_text), [], {"results", "manifest"}, {"metrics", "pretrain"}),
    "a statement": (add_a_statement, [], {"tasks", "theory_values", "results"}, {"explore"}),
    # The report lists the settings, and the manifest its pages.
    "order and jobs": (
        None, ["results-smoke/manifest.json", "--config", "algos=[mc, td]", "seeds_per_job=2"],
        {"results", "manifest"}, {"tasks", "pretrain", "evaluate", "metrics"},
    ),
    "a larger grid": (
        None, ["--config", "seeds=5", "depths=[6, 3, 2]", "states=[5, 3, 4]", "envs=[boyan, loop]"],
        {"tasks", "returns", "pretrain", "evaluate", "manifest"}, set(),
    ),
    "a new run": (
        link_from_a_path_with_a_space,
        ["--snakefile", "a folder/Snakefile", "--cores", "9", "--config", "results=new"], {"pretrain"}, set(),
    ),
    "a module": (use_as_a_module, ["--snakefile", "outer.smk"], {"all", "mine"}, {"ictd_paper"}),
    "a module, a rate": (
        use_as_a_module, ["ictd_paper", "--snakefile", "outer.smk", *RATE], {"ictd_pretrain"}, {"ictd_tasks", "mine"},
    ),
}  # fmt: skip
# Rarer events, some with a run of some jobs.
RARE_EVENTS = {
    "truncated records, a rate": (truncate_records, RATE, {"pretrain", "manifest"}, {"tasks", "returns"}),
    "times only, a statement": (add_a_statement, ["--rerun-triggers", "mtime"], {"tasks", "results"}, {"explore"}),
    "a smaller grid": (
        None, ["--config", "envs=[boyan]", "algos=[mc]"], {"evaluate", "metrics", "results", "manifest"},
        {"tasks", "returns", "pretrain", "weights"},
    ),
    "two stopped runs": (stop_two_runs, DISCOUNT, {"returns", "pretrain", "manifest"}, {"tasks"}),
    "older results": (copy_older_results, DISCOUNT, {"returns", "pretrain", "manifest"}, {"tasks"}),
}  # fmt: skip


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
    return said_after(finished, tmp_path_factory.mktemp("changed"), EVENTS)


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


def test_a_new_run_keeps_all_cores_busy(said):
    """On nine cores, a job has one seed."""
    assert re.search(r"^pretrain +24$", said["a new run"], re.MULTILINE)


def test_adding_to_the_grid_keeps_finished_runs(said, finished):
    outputs = re.findall(r"^    output: (results-smoke/runs/.*)$", said["a larger grid"], re.MULTILINE)
    assert outputs and not [path for path in outputs if (finished / path).exists()]


@pytest.fixture(scope="module")
def contents(smoke) -> dict[str, dict]:
    """Contents of the options files of the paper's rules, by the steps."""
    contents = map(load_json, (smoke / "results-smoke/options").rglob("*.json"))
    return {content["step"]: content for content in contents}


def test_steps_get_all_keys_but_pretraining_only_its_own(contents):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    keys = {name for value in config.values() if isinstance(value, dict) for name in value}
    keys |= {key for key, value in config.items() if not isinstance(value, dict)}
    options = {step.rpartition(".")[2]: set(content["options"]) for step, content in contents.items()}
    assert keys - OTHERS <= set().union(*options.values())
    assert {step: options[step] for step in PRETRAINING} == PRETRAINING


def test_options_have_the_digests_of_the_modules_that_a_step_uses(contents):
    """With the compiled engine, pretraining does not import the other one; the report imports its part by a name."""
    pretrain, results = (contents[f"ictd.steps.{name}"]["code"].keys() for name in ("pretrain", "report.results"))
    assert "ictd.engine" in pretrain and "ictd.torch_twin" not in pretrain
    assert {"ictd.report.paper.claims", "ictd.report.page"} < results
