"""Environments and algorithms of one's own in the workflow, from files that the configuration names."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from projects import ROOT, RUN

import ictd
from ictd import mrp
from ictd.algorithms import ALGORITHMS
from ictd.pipeline import extensions
from ictd.pipeline.config import load_config
from ictd.pipeline.extensions import extension_digest, load_extensions
from ictd.pipeline.rules import Steps
from ictd.storage import file_digest

RING = """
import numpy as np

import ictd


@ictd.register_environment("ring")
def ring(states, size, rng, least=0.0):
    right = rng.uniform(least, 1, (size, states, 1))
    forward = np.roll(np.eye(states), 1, axis=1)
    return right * forward + (1 - right) * forward.T, rng.uniform(-1, 1, (size, states))
"""


@pytest.fixture
def ring(tmp_path):
    """A file with an environment, whose name is forgotten after the test."""
    path = tmp_path / "ring.py"
    path.write_text(RING)
    yield path
    extensions.FILES.clear()
    extensions.extension_digest.cache_clear()
    for registry, name in ((mrp.ENVIRONMENTS, "ring"), (ALGORITHMS, "half_td")):
        registry.pop(name, None)


def test_the_configuration_knows_an_environment_of_a_file(ring):
    given = {"extensions": [str(ring)], "envs": ["boyan", "ring"]}
    given["readings"] = {"env_options": {"ring": {"least": 0.2}}}
    assert load_config(given, ROOT)["envs"] == ["boyan", "ring"]
    with pytest.raises(ValueError, match=r"'rings' \(did you mean ring\?\); the environments are boyan, loop, .*ring"):
        load_config(given | {"envs": ["rings"]}, ROOT)


def test_a_job_samples_tasks_from_the_environment(ring, tmp_path):
    load_extensions([str(ring)])
    options = "--env ring --states 4 --seeds 0-1 --tasks 5 --batch-size 4 --env-options".split()
    command = [sys.executable, "-P", "-m", "ictd.pipeline.runner", "ictd.steps.tasks", *options, '{"ring": {}}']
    env = os.environ | {"ICTD_EXTENSIONS": str(ring)}
    subprocess.run([*command, "--output", tmp_path / "tasks.npz"], env=env, check=True)
    with np.load(tmp_path / "tasks.npz") as tasks:
        rewards = ictd.sample_tasks("ring", 4, 5, ictd.generator(1, "ring", 4, "tasks")).reward
        np.testing.assert_array_equal(tasks["reward"][1], rewards)


def test_an_edit_changes_the_options_of_the_jobs_of_this_environment(ring, monkeypatch):
    table, helper = (ring.with_name(name) for name in ("table.csv", "helper.py"))
    table.write_text("1\n")
    helper.write_text("scale = 1\n")
    monkeypatch.setattr(extensions, "PROJECT", ring.parent)
    monkeypatch.syspath_prepend(ring.parent)
    monkeypatch.chdir(ring.parent)
    text = "import helper\n" + RING.replace('"ring"', '"ring", reads=["table.csv"]')
    ring.write_text(text)
    load_extensions([str(ring)])
    settings = load_config({"envs": ["boyan", "ring"]}, ROOT)

    def digests() -> list[str]:
        extension_digest.cache_clear()
        step = Steps(settings, "src", RUN)
        tasks = step("ictd.steps.tasks", tasks=settings["tasks"])
        unseen = step("ictd.steps.baselines", settings["evaluation"], evaluation_env="ring")
        named = step("ictd.steps.theory.family", settings["theory"], settings=["ring-4"])
        cells = [{"env": env, "states": "4", "seeds": "0-1"} for env in ("boyan", "ring")]
        return [file_digest(Path(file)) for file in (*map(tasks, cells), unseen({}), named({}))]

    found = [digests()]
    ring.write_text(text + "\n# A comment.\n")
    assert digests() == found[0]
    for file, edited in ((ring, text.replace("1, (size", "0.5, (size")), (table, "2\n"), (helper, "scale = 2\n")):
        file.write_text(edited)
        found.append(digests())
    assert [len({*of_one}) for of_one in zip(*found, strict=True)] == [1, 4, 4, 4]
    table.unlink()
    with pytest.raises(ValueError, match=r"Environment 'ring' reads .*table\.csv: No such file or directory\."):
        digests()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "which is no file"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("x = 1", "registers nothing"),
        (RING, r"my:ring\.py; give a path that ends in \.py, without ':'"),
        (RING.replace('"ring"', '"loop"'), "there is an environment 'loop' already"),
    ],
)
def test_files_that_register_nothing_are_refused(ring, text, message):
    ring.unlink() if text is None else ring.write_text(text)
    ring = ring.rename(ring.with_name("my:ring.py")) if text == RING else ring
    with pytest.raises(ValueError, match=message):
        load_extensions([str(ring)])
