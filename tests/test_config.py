"""Checking the configuration, and the grid that it spans."""

import copy
from pathlib import Path

import pytest
import yaml

from ictd.pipeline.config import checked_config, numbers_from_text
from ictd.pipeline.grid import Cell, cells, seed_groups, seeds_in_a_job

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


def changed(key, value):
    config = copy.deepcopy(CONFIG)
    section = config
    *sections, last = key.split(".")
    for name in sections:
        section = section[name]
    section[last] = value
    return config


def test_the_papers_grid():
    checked_config(CONFIG, SCHEMA)
    settings = [("boyan", 5, 30), ("boyan", 5, 5), ("boyan", 5, 10), ("boyan", 5, 60)]
    settings += [("boyan", 3, 30), ("boyan", 10, 30), ("loop", 5, 30)]
    assert cells(CONFIG) == [Cell(algo, *setting) for setting in settings for algo in ("td", "mc")]
    assert len(cells(CONFIG)) * CONFIG["seeds"] == 280
    assert cells(CONFIG, "main") == cells(CONFIG)[:2]
    assert cells(CONFIG, "depths") == cells(CONFIG)[2:8]
    assert cells(changed("depths", [30]), "depths") == []


def test_cell_names_go_both_ways():
    for cell in cells(CONFIG):
        assert Cell.parse(str(cell)) == cell


@pytest.mark.parametrize(
    ("seeds", "size", "finished", "groups"),
    [
        (20, 20, [], ["0-19"]),
        (20, 8, [], ["0-7", "8-15", "16-19"]),
        (3, 1, [], ["0-0", "1-1", "2-2"]),
        (2, 9, [], ["0-1"]),
        (30, 8, ["0-19"], ["0-19", "20-27", "28-29"]),
        (8, 1, ["0-2", "3-4"], ["0-2", "3-4", "5-5", "6-6", "7-7"]),
        (8, 8, ["3-4"], ["0-2", "3-4", "5-7"]),
        (4, 4, ["0-19", "notes"], ["0-3"]),
        (6, 2, ["0-1", "0-3"], ["0-3", "4-5"]),
        (20, 20, ["0-19", "0-9", "0-9"], ["0-9", "10-19"]),
    ],
)
def test_seed_groups_cover_all_seeds_and_keep_finished_runs(seeds, size, finished, groups):
    assert seed_groups(seeds, size, finished) == groups


@pytest.mark.parametrize(
    ("cores", "runs", "size"),
    [
        (None, 14, 20),
        (1, 14, 20),
        (2, 14, 20),
        (14, 14, 20),
        (15, 14, 10),
        (28, 14, 10),
        (150, 14, 1),
        (9999, 14, 1),
        (4, 0, 5),
    ],
)
def test_jobs_take_as_many_seeds_as_keep_all_cores_busy(cores, runs, size):
    assert seeds_in_a_job("auto", 20, runs, cores) == size
    assert seeds_in_a_job(7, 20, runs, cores) == 7
    jobs = runs * len(seed_groups(20, size, []))
    assert jobs >= min(cores or 1, 20 * runs)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sedes", 3, "unknown key 'sedes'"),
        ("evaluation.ridge", 3, "evaluation has an unknown key 'ridge'"),
        ("discount", 1, "discount is 1; give less than 1"),
        ("discount", -0.1, "discount is -0.1; give at least 0"),
        ("discount", "high", "discount is 'high'; give a number"),
        ("seeds", 0, "seeds is 0; give at least 1"),
        ("seeds", 2.5, "seeds is 2.5; give an integer"),
        ("seeds", True, "seeds is True; give an integer"),
        ("tasks", -5, "tasks is -5; give at least 1"),
        ("states", [5, 1], "value 2 of states is 1; give at least 2"),
        ("states", [5, 5], "states is [5, 5]; give each value once"),
        ("depths", [], "depths is []; give at least 1 value"),
        ("depths", [-3], "value 1 of depths is -3; give at least 1"),
        ("depths", 30, "depths is 30; give a list"),
        ("algos", ["td", "sarsa"], "value 2 of algos is 'sarsa'; choose from td, mc"),
        ("envs", ["boyan", "ring"], "envs names 'ring'; the environments are boyan, loop"),
        ("readings.evaluation_env", "ring", "readings.evaluation_env names 'ring'"),
        ("readings.env_options", {"ring": {}}, "readings.env_options names 'ring'"),
        ("readings.attention_scale", "sqrt", "readings.attention_scale is 'sqrt'; choose from context_length, none"),
        ("learning_rate", 0, "learning_rate is 0; give more than 0"),
        ("evaluation.context_lengths", [0], "value 1 of evaluation.context_lengths is 0; give at least 1"),
        ("evaluation.step_sizes.smallest", 99, "step_sizes.smallest is 99; give at most the largest, 10"),
        ("seeds_per_job", 0, "seeds_per_job is 0; give at least 1"),
        ("seeds_per_job", "all", "seeds_per_job is 'all'; choose from auto"),
        ("engine", "jax", "engine is 'jax'; choose from fused, autograd"),
        ("results", "my results", "results is 'my results'; give a folder whose path"),
        ("results", "/", "results is '/'; give a folder"),
        ("results", "a;b", "results is 'a;b'; give a folder"),
        ("results", "[foo", "results is '[foo'; give a folder"),
        ("discount", float("nan"), "discount is nan; give a finite number"),
        ("learning_rate", float("inf"), "learning_rate is inf; give a finite number"),
        ("readings.env_options", {"loop": {"threshold": "abc"}}, "environment 'loop' with its readings.env_options"),
        ("readings.env_options", {"loop": {"size": 3}}, "environment 'loop' with its readings.env_options"),
        ("evaluation.context_lengths", [100, 5], "give the lengths in ascending order"),
        ("envs", None, "envs is empty; give a list"),
        ("readings.env_options", {"loop": {"threshold": 3}}, "threshold is 3; give a number between 0 and 1"),
        ("readings.env_options", {"loop": {"treshold": 0.3}}, "does not take the options ['treshold']"),
    ],
)
def test_bad_values_are_named_in_one_sentence(key, value, message):
    with pytest.raises(ValueError) as raised:
        checked_config(changed(key, value), SCHEMA)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_numbers_on_the_command_line_may_be_text():
    given = {"depths": ["6", "30"], "discount": "0.5", "step": {"a": ["1e-3", ".5"]}, "envs": ["1x"], "seeds": 20.0}
    wanted = {"depths": [6, 30], "discount": 0.5, "step": {"a": [0.001, 0.5]}, "envs": ["1x"], "seeds": 20}
    assert numbers_from_text(given, {}) == wanted
    assert isinstance(numbers_from_text(given, {})["seeds"], int)
    as_it_is = {"results": "2024-01-01", "other": "@foo", "flag": True, "tasks": "1_000", "most": 1e30}
    assert numbers_from_text(as_it_is, {}) == as_it_is


def test_text_stays_text_where_the_schema_wants_it():
    names = {"type": "array", "items": {"properties": {"name": {"type": "string"}}}}
    given = {"names": [{"name": "007", "clip": "1e-3"}], "results": "2024"}
    assert numbers_from_text(given, {"properties": {"names": names, "results": {"type": "string"}}}) == {
        "names": [{"name": "007", "clip": 0.001}], "results": "2024",
    }  # fmt: skip
    assert checked_config(changed("results", "007"), SCHEMA)["results"] == "007"


def test_missing_keys_are_named():
    config = copy.deepcopy(CONFIG)
    del config["evaluation"]["tasks"]
    with pytest.raises(ValueError, match="evaluation lacks key 'tasks'"):
        checked_config(config, SCHEMA)


def test_every_key_is_described():
    def undescribed(schema, name=""):
        for key, about in schema["properties"].items():
            if "properties" in about:
                yield from undescribed(about, f"{name}{key}.")
            elif "description" not in about:
                yield name + key

    assert list(undescribed(SCHEMA)) == []
