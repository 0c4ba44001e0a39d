"""Steps: commands of jobs from their signatures, and parsing of their command lines."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, RUN
from snakemake.iocontainers import Namedlist

from ictd.pipeline import runner
from ictd.pipeline.config import load_yaml
from ictd.pipeline.rules import Steps
from ictd.storage import load_json

CONFIG = load_yaml(ROOT / "config.yaml")
OWN = {"sizes": {"b": 2, "a": 1}, "name": "a b", "tasks": 7, "lengths": [5, 10]}
# A step in its own package, and the results of reading it.
STEP = '''"""A step."""
from pathlib import Path


def main(env: str, states: int, tasks: int, initial_gain: float, lengths: list[int], sizes: dict,
         runs: list[Path], output: Path) -> None:
    """Write something."""
'''


def named(**items):
    """The wildcards, input or output that Snakemake passes to functions."""
    return Namedlist(fromdict=items)


class Rule:
    """A rule that runs a step, with the functions that Snakemake calls for a job."""

    def __init__(self, *arguments, **given):
        self.step = Steps(CONFIG | {"results": "r"}, "src", RUN)
        self.options = self.step(*arguments, **given)

    def command(self, wildcards, output=("r/a.npz",), **files) -> str:
        path = self.options(wildcards)
        words = self.step.command(wildcards, named(options=path, **files), Namedlist(output))
        return words.partition(" ictd.pipeline.runner ")[2]


def test_parameters_are_given_or_wildcards_or_of_the_configuration(package):
    package("m.py", STEP)

    def command(*arguments, **given) -> str:
        return Rule("ours.m", *arguments, **given).command(named(env="loop", states="5"), runs=["b.npz"])

    words = (
        'ours.m --env loop --states 5 --tasks 7 --initial-gain 0.1 --lengths 5 10 --sizes \'{"a": 1, "b": 2}\''
        " --runs b.npz --output r/a.npz"
    )
    assert command(OWN) == words
    given = command(OWN, tasks=3, states=lambda wildcards: wildcards.env)
    assert given == words.replace("--tasks 7", "--tasks 3").replace("--states 5", "--states loop")
    assert "--tasks 1 " in command({"tasks": 1}, OWN)


def test_files_of_a_step_are_the_input_and_output_of_its_rule(package):
    package("m.py", STEP)
    wildcards, runs = named(env="loop", states="5"), ["a b.npz", "c.npz"]
    rule = Rule("ours.m", OWN)
    assert rule.command(wildcards, ["r/f/a.png", "r/f/b.png"], runs=runs).endswith(
        "--runs 'a b.npz' c.npz --output r/f"
    )
    assert rule.command(wildcards, ["r/a.png", "r/a.svg"], runs=runs).endswith("--output r/a.png")
    with pytest.raises(ValueError, match=r"Step ours\.m needs an input or output 'runs' of its rule\."):
        rule.command(wildcards)
    with pytest.raises(ValueError, match=r"the rule has no options; give it the input options=step\(MODULE\)\."):
        rule.step.command(wildcards, named(runs=runs), Namedlist(["r/a.npz"]))


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (STEP, {"task": 3}, "Step ours.m has no parameter 'task'; it has env, states, tasks"),
        (STEP.replace("sizes:", "other:"), {}, "Step ours.m: 'other' has no value of type dict; give it in the rule."),
        (STEP.replace("states: int", "states"), {}, "m.py, line 5: give states a type, int, float"),
        (STEP.replace("def main", "def other"), {}, "m.py has no function main, so it is no step."),
    ],
)
def test_mistakes_in_a_rule_or_a_step_are_refused(package, text, given, message):
    package("m.py", text)
    with pytest.raises(ValueError) as raised:
        Rule("ours.m", OWN, **given).options(named(env="loop", states="5"))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ("env: str, env_options: dict", {"loop": {"threshold": 0.5}}),
        ("env: str, evaluation_env: str, env_options: dict", {"loop": {"threshold": 0.5}, "boyan": {}}),
        ("env_options: dict", {"boyan": {}, "loop": {"threshold": 0.5}}),
    ],
)
def test_a_step_gets_the_options_of_its_environments(package, parameters, options):
    package("m.py", f"def main({parameters}):\n    pass")
    assert load_json(Path(Rule("ours.m").options(named(env="loop"))))["options"]["env_options"] == options


def carried_out(main, words: str, monkeypatch) -> None:
    """Run a function in the same way as the runner runs a step."""
    monkeypatch.setattr(runner, "import_module", lambda name: type("Module", (), {"main": main}))
    monkeypatch.setattr(sys, "argv", ["runner", "some.step", *words.split()])
    monkeypatch.setattr(sys, "path", [*sys.path])
    runner.main()


def test_options_are_converted_to_the_types_of_parameters(monkeypatch):
    got = []

    def main(ratio: float, name: str, a_list: list[int], paths: list[Path], options: dict):
        got.append((ratio, name, a_list, paths, options))

    words = '--ratio 1e-3 --name x --a-list 4 5 --paths a b/c --options {"k":1}'
    carried_out(main, words, monkeypatch)
    assert got == [(1e-3, "x", [4, 5], [Path("a"), Path("b/c")], {"k": 1})]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("It is wrong."), "error: It is wrong."),
        (MemoryError(), "error: this needs more memory than there is; give fewer tasks"),
        (OSError(errno.EACCES, "No", "a.csv"), "error: a.csv: No; make room or give write access, then run snakemake"),
    ],
)
def test_errors_of_the_user_end_in_a_sentence(error, message, monkeypatch):
    def main():
        raise error

    with pytest.raises(SystemExit, match=message):
        carried_out(main, "", monkeypatch)


def test_a_step_that_does_not_exist_ends_in_a_sentence(tmp_path):
    command = [sys.executable, "-P", "-m", "ictd.pipeline.runner", "ictd.steps.gone"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "error: No module named 'ictd.steps.gone'.\n"
