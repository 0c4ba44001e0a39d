"""The study's settings, and the jobs of its rules."""

from dataclasses import fields

import pytest

from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from studies.emergence.grid import courses, discounts, joined_tables, readings
from studies.emergence.readings import Reading


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": 3}, "emergence has an unknown key 'task'"),
        ({"step_sizes": {"smallest": 99}}, "emergence.step_sizes.smallest is 99; give at most the largest, 4"),
        ({"course": {"td_tasks": "many"}}, "emergence.course.td_tasks is 'many'; give an integer"),
        ({"phase": {"depths": [3, 3]}}, "emergence.phase.depths is [3, 3]; give each value once"),
        ({"phase": 3}, "emergence.phase is 3; give keys with values"),
        ({"readings": [{"name": "a", "clip": 1}]}, "begin with one that has a name only and changes nothing"),
        ({"readings": [{"name": "a"}, {"name": "b", "layers": "tied"}]}, "layers is 'tied'; choose from looped, sep"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        load_config({"emergence": given}, PROJECT)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_reading_differs_from_ours_only_in_its_changes():
    found = readings(load_config({}, PROJECT))
    assert next(iter(found)) == "as_is" and len(found) == 16
    assert found["as_is"] == {
        "scaled_attention": True, "parameters": "theta", "layers": "looped", "initial_gain": 0.1,
        "learning_rate": 0.001, "clip": 0, "precision": "float64", "corner": "drawn", "skip": False,
    }  # fmt: skip
    assert found["all_parameters_unscaled"] == found["as_is"] | {"parameters": "all", "scaled_attention": False}
    assert all(set(one) == {field.name for field in fields(Reading)} for one in found.values())
    given = {"learning_rate": 0.5, "readings": {"initial_gain": 2}, "emergence": {"readings": [{"name": "a"}]}}
    other = readings(load_config(given, PROJECT))
    assert other == {"a": found["as_is"] | {"learning_rate": 0.5, "initial_gain": 2}}


def test_long_runs_and_the_plane_cover_the_configuration():
    assert courses(load_config({}, PROJECT)) == ["td-boyan", "td-loop", "mc-boyan", "mc-loop"]
    given = {"algos": ["td"], "envs": ["loop"], "states": [5], "depths": [3]}
    config = load_config({**given, "emergence": {}}, PROJECT)
    found = joined_tables(config, ["0-3", "4-5"])
    assert found["course"] == ["course/td-loop"] and found["trained"] == ["trained/td-loop-5-3"]
    assert found["phase"] == ["phase/0-3", "phase/4-5"]
    assert found["best_numbers"] == [f"best_numbers/loop-{states}" for states in (3, 5, 10, 20)]
    assert discounts(config, 5) == [0.5, 0.8, 0.9, 0.95, 0.99] and discounts(config, 20) == [0.9]
