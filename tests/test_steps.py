"""Steps: found by name, explained by help, and given to rules by the names of their parameters."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from projects import ROOT
from snakemake.iocontainers import Namedlist

from ictd.pipeline.help import listing, sentences
from ictd.pipeline.rules import named_files, step_params
from ictd.pipeline.steps import all_steps, find_step

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())


def named(**items):
    """What Snakemake gives params functions as wildcards, input or output."""
    return Namedlist(fromdict=items)


def command(*words):
    return subprocess.run([sys.executable, "-m", "ictd.steps", *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("step", all_steps().values(), ids=lambda step: step.name)
def test_help_explains_every_option_and_what_is_written(step):
    says = sentences(step)
    assert set(says) == {"", *step.parameters()}
    for name, sentence in says.items():
        assert sentence.strip().endswith((".", ")")), name
    assert find_step(step.name).path == step.path


def test_steps_are_listed_with_their_first_lines():
    lines = listing().splitlines()
    assert any(line.startswith("tasks ") and "Algorithms 3 and 4" in line for line in lines)
    assert any(line.startswith("theory.values ") and "Theorem 1" in line for line in lines)
    assert command().stdout.splitlines() == lines
    said = command("evaluate", "--help").stdout
    assert "Unseen tasks a trial is evaluated on." in said and "--context-lengths" in said and "Write" in said


@pytest.mark.parametrize("name", ["nothing", "../tasks", "", "mrp", "tasks.main", "report"])
def test_what_is_no_step_is_answered_in_one_sentence(name):
    done = command(name)
    assert done.returncode == 1
    assert done.stderr == f"error: there is no step {name!r}; `python -m ictd.steps` lists all.\n"


def test_parameters_are_wildcards_or_of_the_configuration():
    params = step_params(CONFIG, [], "evaluate", env_options={})
    wildcards = named(algo="td", env="boyan", states="7", depth="9")
    assert params["values"](wildcards).split()[:4] == ["--states", "7", "--depth", "9"]
    assert "--tasks 10 --context-lengths 5 10 15" in params["values"](wildcards)
    files = params["files"](wildcards, named(runs=["a b.npz", "c.npz"]), named(weights="w", evaluations="e"))
    assert files == "--runs 'a b.npz' c.npz --weights w --evaluations e"
    assert params["step"] == "evaluate" and params["ictd.steps.evaluate"].startswith("ictd.steps.evaluate ")
    assert {"ictd.steps.__main__", "ictd.pipeline.runner", "ictd.unseen_tasks"} <= set(params)


def test_output_is_the_file_or_the_folder_of_several():
    files = step_params(CONFIG, [], "theory.figures", env="boyan", states=5)["files"]
    tables = named(tables=["t.csv"])
    assert files(None, tables, Namedlist(["r/f/a.png", "r/f/b.png"])) == "--tables t.csv --output r/f"
    assert files(None, tables, Namedlist(["r/a.png", "r/a.svg"])) == "--tables t.csv --output r/a.png"
    assert files(None, tables, Namedlist(["r/a.png"])) == "--tables t.csv --output r/a.png"
    with pytest.raises(ValueError, match=r"step theory\.figures needs an input or output 'tables'"):
        files(None, named(), Namedlist(["r/a.png"]))


def test_a_name_that_stands_in_several_sections_is_refused():
    assert "tasks" in CONFIG and "tasks" in CONFIG["theory"]
    with pytest.raises(ValueError, match="step tasks: 'tasks' is no setting, one of several sections, or no int"):
        step_params(CONFIG, [], "tasks", env_options={})["values"](named(env="boyan", states="5", seeds="0-1"))
    with pytest.raises(ValueError, match=r"step report\.figures\.weight_maps: 'figures' is no setting"):
        step_params(CONFIG, [], "report.figures.weight_maps")["values"](named())
    with pytest.raises(ValueError, match="step tasks has no parameter 'task'; it has env, states"):
        step_params(CONFIG, [], "tasks", task=3)


def test_given_values_may_be_functions_of_wildcards():
    params = step_params(CONFIG, [], "tasks", tasks=3, env_options=lambda wildcards: {"a": wildcards.env})
    said = params["values"](named(env="loop", states="5", seeds="0-1"))
    assert "--tasks 3" in said and """--env-options '{"a": "loop"}'""" in said


def test_sections_come_from_the_module_its_folder_or_its_study():
    assert find_step("audit").sections() == ["audit"] and find_step("theory.values").sections() == ["theory"]
    assert find_step("pretrain").sections() == []
    assert SimpleNamespace(**find_step("tasks").parameters()).output == "Path"


def test_bad_ranges_and_json_are_answered_in_a_sentence(tmp_path):
    given = [
        "--env",
        "boyan",
        "--states",
        "3",
        "--tasks",
        "2",
        "--output",
        str(tmp_path / "a.npz"),
    ]
    done = command("tasks", *given, "--seeds", "3", "--env-options", "{}")
    assert done.stderr.splitlines()[-1] == "error: seeds is '3'; give first-last, such as 0-19."
    done = command("tasks", *given, "--seeds", "0-1", "--env-options", "x")
    assert done.stderr.splitlines()[-1].endswith("argument --env-options: invalid mapping value: 'x'")
    done = command("tasks", *given, "--seeds", "0-1", "--env-options", "[1]")
    assert done.stderr.splitlines()[-1].endswith("argument --env-options: invalid mapping value: '[1]'")
    done = command("tasks", *given, "--seeds", "3-1", "--env-options", "{}")
    assert done.stderr.splitlines()[-1] == "error: seeds is '3-1'; give first-last, such as 0-19."


def test_every_option_must_be_given():
    done = command("verify", "--results", "results")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("the following arguments are required: --reference")


def test_compiled_kernels_are_kept_where_caches_are(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    settings = '--settings boyan-3-2 --discount 0.9 --env-options {"boyan":{}} --output'.split()
    assert command("theory.agreement", *settings, str(tmp_path / "made.json")).returncode == 0
    assert any((tmp_path / "caches/ictd").iterdir())


def test_names_of_files_count_and_their_order_does_not():
    rules = [
        SimpleNamespace(input=named(**inputs), output=named(output="c"))
        for inputs in ({"runs": ["a", "b"]}, {"runs": ["b", "a"]}, {"tables": ["a", "b"]}, {"runs": ["a"]})
    ]
    same, ordered, named_otherwise, fewer = map(named_files, rules)
    assert same == ordered and len({same, named_otherwise, fewer}) == 3
