"""The study's settings, and what it needs."""

import re

import pytest
from projects import ROOT, Study, in_megabytes
from studies.control.needs import needs

from studies.control.grid import check, places, snapshots, tried, variants

STUDY = Study("control")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": 3}, "control has an unknown key 'task'"),
        ({"seeds": 1}, "control.seeds is 1; give at least 2"),
        ({"main": {"family": "grid"}}, "control.main.family is 'grid'; choose from dirichlet, boyan, loop"),
        ({"main": {"algo": "q"}}, "control.main.algo is 'q'; choose from td, mc"),
        ({"main": {"discount": 1}}, "control.main.discount is 1; give at most 0.99"),
        ({"main_tasks": 9}, "control.tasks is 200000; give at most the main_tasks, 9"),
        ({"prompt_lengths": [100, 5]}, "control.prompt_lengths is [100, 5]; give them in ascending order"),
        ({"concentrations": [0.001]}, "value 1 of control.concentrations is 0.001; give at least 0.05"),
        ({"clip": 0}, "control.clip is 0; give more than 0"),
        ({"context_lengths": [9, 5]}, "control.context_lengths is [9, 5]; give them in ascending order"),
        ({"variants": [{"name": "a", "depth": 3}]}, "begin with one that has a name only and changes nothing"),
        ({"variants": [{"name": "a"}, {"name": "a"}]}, "name is 'a'; give each a name of its own"),
        ({"places": [{"name": "nan"}]}, "value 1 of control.places.name is 'nan'; give letters, digits and _"),
        ({"places": [{"name": "a/b"}]}, "value 1 of control.places.name is 'a/b'; give letters, digits and _"),
        ({"places": [{"name": "a"}, {"name": "b", "depth": 3}]}, "has an unknown key 'depth'"),
        ({"iterations": 1}, "control.iterations is 1; give at least 2"),
        ({"ridges": {"smallest": 999}}, "control.ridges.smallest is 999; give at most the largest, 100"),
        ({"online": {"steps": 1}}, "control.online.steps is 1; give at least 2"),
        ({"online": {"intervals": [0]}}, "value 1 of control.online.intervals is 0; give at least 1"),
        ({"online": {"epsilons": [-1]}}, "value 1 of control.online.epsilons is -1; give at least 0"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    STUDY.check_refusal(given, message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"test_processes": 10**9}, "control.test_processes is 1000000000, with which a job of rule control_"),
        ({"rollout": 10**9}, "control.rollout is 1000000000, with which a job of rule control_pretrain"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(given, message):
    STUDY.check_need(needs, given, message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variants": [{"name": "smoothed"}]}, "control.variants has the name 'smoothed', which is a yardstick's"),
        ({"variants": [{"name": "td"}, {"name": "sarsa"}]}, "control.variants has the name 'sarsa'"),
        (
            {"variants": [{"name": "td"}, {"name": "mc", "algo": "mc", "tasks": 2_000_000}]},
            "control.variants gives 'mc' more tasks than the first has; give at most 1000000",
        ),
        ({"online": {"variants": ["td", "nope"]}}, "control.online.variants has 'nope'; choose from td, mc, "),
        ({"online": {"variants": ["td", "actions_4"]}}, "control.online.variants has 'actions_4'; choose from td"),
        ({"online": {"variants": ["mc"]}}, "control.online.variants lacks the first variant, 'td'; add it"),
        ({"places": [{"name": "home"}, {"name": "other", "actions": 3}]}, "control.places has 'other', whose states"),
        (
            {"variants": [{"name": "td"}, {"name": "more", "states": 6}], "places": [{"name": "home"}]},
            "control.variants has 'more', whose states and actions no place has; add one.",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused_at_planning(given, message):
    with pytest.raises(ValueError, match=re.escape(f"Config: {message}")) as refused:
        check(STUDY.whole(given))
    assert "\n" not in str(refused.value) and str(refused.value).count(". ") == 0
    rules = (ROOT / "studies/control/rules.smk").read_text()
    assert rules.index("CONTROL_GRID.check(config)") < rules.index("use rule")


def test_names_and_tasks_are_free():
    given = {"variants": [{"name": "main"}, {"name": "short", "tasks": 5000}], "online": {"variants": ["main"]}}
    config = STUDY.whole(given | {"places": [{"name": "first"}, {"name": "far", "discount": 0.5}]})
    check(config)
    # Weights of the first variant are kept where another ends, so that they can be compared after as many tasks.
    assert snapshots(config) == [5000, 20000, 60000, 200000, 1000000]
    assert tried(config, "far") == ["main", "short"]


def test_every_key_is_described():
    assert STUDY.undescribed() == []


def test_full_size_spans_what_the_study_speaks_of():
    config = {"control": STUDY.settings({})}
    found, where = variants(config), places(config)
    assert next(iter(found)) == "td" and found["td"]["tasks"] == 1_000_000 and found["mc"]["tasks"] == 200_000
    assert found["paper_td"] == found["td"] | {"prompts": "enumerated", "tasks": 20_000}
    assert next(iter(where.items())) == ("home", {key: found["td"][key] for key in where["home"]})
    assert [tried(config, place)[0] for place in where] == ["td", "actions_4", "boyan", "loop", "discount_95"]
    assert tried(config, "actions_4") == ["actions_4"] and "layers_3" in tried(config, "home")
    assert tried(config, "loop") == ["loop", "td", "mc", "boyan", "discount_95", "paper_td", "paper_mc"]
    assert set(config["control"]["online"]["variants"]) <= set(found)


# Jobs, MB of results, and MB of memory beside Python's, so that no estimate changes unseen.
AT_FULL_SIZE = 25, 123.8, {
    "control_pretrain": 1151, "control_offline": 312.6, "control_online": 38.3, "control_claims": 559.5,
}  # fmt: skip


def test_estimates_are_what_they_were():
    assert in_megabytes(needs(STUDY.whole({}), 2)) == AT_FULL_SIZE
