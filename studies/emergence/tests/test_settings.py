"""The study's settings, and what its rules go through."""

import copy
from dataclasses import fields

import pytest
from ictd.pipeline.needs import checked_needs
from projects import Study, in_megabytes
from studies.emergence.needs import needs

from studies.emergence.grid import courses, parts, readings
from studies.emergence.readings import Reading

STUDY = Study("emergence")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": 3}, "emergence has an unknown key 'task'"),
        ({"tasks": 0}, "emergence.tasks is 0; give at least 1"),
        ({"tuning_tasks": 2.5}, "emergence.tuning_tasks is 2.5; give an integer"),
        ({"context_lengths": []}, "emergence.context_lengths is []; give at least 1 value"),
        ({"step_sizes": {"smallest": 99}}, "emergence.step_sizes.smallest is 99; give at most the largest, 4"),
        ({"course": {"td_tasks": "many"}}, "emergence.course.td_tasks is 'many'; give an integer"),
        ({"course": {"tasks": 5}}, "emergence.course has an unknown key 'tasks'"),
        ({"course": {"snapshots": 1}}, "emergence.course.snapshots is 1; give at least 2"),
        ({"phase": {"states": [300]}}, "value 1 of emergence.phase.states is 300; give at most 256"),
        ({"phase": {"depths": [3, 3]}}, "emergence.phase.depths is [3, 3]; give each value once"),
        ({"phase": 3}, "emergence.phase is 3; give keys with values"),
        ({"readings": [{"name": "a", "clip": 1}]}, "begin with one that has a name only and changes nothing"),
        ({"readings": [{"name": "a"}, {"name": "a", "clip": 1}]}, "name is 'a'; give each a name of its own"),
        ({"readings": [{"name": "a b"}]}, "value 1 of emergence.readings.name is 'a b'; give letters, digits and _"),
        ({"readings": [{"name": "a"}, {"clip": 1}]}, "emergence.readings lacks key 'name'"),
        (
            {"readings": [{"name": "a"}, {"name": "b", "layers": "tied"}]},
            "value 2 of emergence.readings.layers is 'tied'; choose from looped, separate",
        ),
        (
            {"readings": [{"name": "a"}, {"name": "b", "initial_gain": 0}]},
            "value 2 of emergence.readings.initial_gain is 0; give more than 0",
        ),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    STUDY.check_refusal(given, message)


def test_single_settings_are_replaced():
    found = STUDY.settings({"tasks": 7, "phase": {"seeds": "3"}})
    assert found["tasks"] == 7 and found["phase"]["seeds"] == 3 and found["phase"]["tasks"] == 5000
    assert STUDY.smoke()["context_lengths"] == [5, 20]


def test_names_are_texts_of_one_line():
    assert STUDY.settings({"readings": [{"name": "007"}]})["readings"] == [{"name": "007"}]
    for name in ("a\n", "a" * 101):
        with pytest.raises(ValueError, match=r"^Config: value 1 of emergence\.readings\.name is 'a"):
            STUDY.settings({"readings": [{"name": name}]})


@pytest.mark.parametrize(
    ("given", "paper", "message"),
    [
        ({"phase": {"seeds": 10**9}}, {}, "emergence.phase.seeds is 1000000000, which makes about"),
        (
            {"course": {"snapshots": 10**9}},
            {},
            "emergence.course.snapshots is 1000000000, with which a job of rule emergence_",
        ),
        ({"tuning_tasks": 10**9}, {}, "emergence.tuning_tasks is 1000000000, with which a job of rule emergence_"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(given, paper, message):
    STUDY.check_need(needs, given, message, **paper)
    assert checked_needs(needs, STUDY.whole({}), STUDY.schema["properties"], 2).jobs > 100


def test_every_setting_is_described():
    assert STUDY.undescribed() == []


def test_a_reading_is_ours_but_for_what_it_changes():
    found = readings(STUDY.whole({}))
    assert next(iter(found)) == "as_is" and len(found) == 16
    assert found["as_is"] == {
        "attention_scale": "context_length", "parameters": "theta", "layers": "looped", "initial_gain": 0.1,
        "learning_rate": 0.001, "clip": 0, "precision": "float64", "corner": "drawn", "skip": False,
    }  # fmt: skip
    assert found["all_parameters_unscaled"] == found["as_is"] | {"parameters": "all", "attention_scale": "none"}
    for one in found.values():
        assert set(one) == {field.name for field in fields(Reading)}
    other = copy.deepcopy(STUDY.config) | {"learning_rate": 0.5, "emergence": {"readings": [{"name": "a"}]}}
    other["readings"]["initial_gain"] = 2
    assert readings(other)["a"] == found["as_is"] | {"learning_rate": 0.5, "initial_gain": 2}


def test_long_runs_are_of_all_algorithms_and_environments_and_the_plane_of_all_states():
    assert courses(STUDY.config) == ["td-boyan", "td-loop", "mc-boyan", "mc-loop"]
    config = {"algos": ["td"], "envs": ["loop"], "emergence": {"phase": {"states": [9, 4], "seeds": 2}}}
    assert parts(config) == {
        "course": ["course/td-loop"],
        "phase": ["phase/9/0", "phase/9/1", "phase/4/0", "phase/4/1"],
    }


# Jobs, MB of results, and MB of memory beside Python's, so that no estimate changes unseen.
AT_FULL_SIZE = 215, 2.816, {
    "emergence_ablate": 171.5, "emergence_course": 16.89, "emergence_course_measures": 26.44, "emergence_phase": 874,
    "emergence_readings": 349.2,
}  # fmt: skip


def test_estimates_are_what_they_were():
    assert in_megabytes(needs(STUDY.whole({}), 2)) == AT_FULL_SIZE
