"""The study's settings, and the variants and places of its rules."""

import pytest

from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from studies.control.grid import PLACE, check, places, snapshots, tried, variants


def checked(given):
    config = load_config({"control": given}, PROJECT)
    check(config)
    return config


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": 3}, "control has an unknown key 'task'"),
        ({"main": {"family": "grid"}}, "control.main.family is 'grid'; choose from dirichlet, boyan, loop"),
        ({"main_tasks": 9}, "control.tasks is 200000; give at most the main_tasks, 9"),
        ({"prompt_lengths": [100, 5]}, "control.prompt_lengths is [100, 5]; give them in ascending order"),
        ({"variants": [{"name": "a", "depth": 3}]}, "begin with one that has a name only and changes nothing"),
        ({"places": [{"name": "a/b"}]}, "value 1 of control.places.name is 'a/b'; give letters, digits and _"),
        ({"places": [{"name": "a"}, {"name": "b", "depth": 3}]}, "has an unknown key 'depth'"),
        ({"variants": [{"name": "smoothed"}]}, "control.variants has the name 'smoothed', which is a baseline's"),
        ({"variants": [{"name": "td"}, {"name": "mc", "algo": "mc", "tasks": 2_000_000}]},
         "control.variants gives 'mc' more tasks than the first has; give at most 1000000"),
        ({"online": {"variants": ["td", "nope"]}}, "control.online.variants has 'nope'; choose from td, mc, "),
        ({"online": {"variants": ["mc"]}}, "control.online.variants lacks the first variant, 'td'; add it"),
        ({"places": [{"name": "home"}, {"name": "other", "actions": 3}]}, "control.places has 'other', whose states"),
        ({"variants": [{"name": "td"}, {"name": "more", "states": 6}], "places": [{"name": "home"}]},
         "control.variants has 'more', whose states and actions no place has; add one."),
    ],
)  # fmt: skip
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        checked(given)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_names_and_numbers_of_tasks_can_be_chosen_freely():
    settings = {"variants": [{"name": "main"}, {"name": "short", "tasks": 5000}], "online": {"variants": ["main"]}}
    config = checked(settings | {"places": [{"name": "first"}, {"name": "far", "discount": 0.5}]})
    # The first variant has snapshots at the ends of the other variants, for comparisons after equal numbers of tasks.
    assert snapshots(config) == [5000, 20000, 60000, 200000, 1000000]
    assert tried(config, "far") == ["main", "short"]


def test_variants_have_the_main_settings_and_their_changes():
    by_name = variants(checked({}))
    assert next(iter(by_name)) == "td" and by_name["td"]["tasks"] == 1_000_000 and by_name["mc"]["tasks"] == 200_000
    assert by_name["paper_td"] == by_name["td"] | {"prompts": "enumerated", "tasks": 20_000}


def test_the_first_place_has_the_main_settings():
    config = checked({})
    name, home = next(iter(places(config).items()))
    assert name == "home" and home == {key: variants(config)["td"][key] for key in PLACE}


def test_variants_are_evaluated_in_places_with_their_number_of_pairs():
    config = checked({})
    first = {place: tried(config, place)[0] for place in places(config)}
    assert first == {"home": "td", "actions_4": "actions_4", "boyan": "boyan", "loop": "loop"} | {
        "discount_95": "discount_95"
    }
    assert tried(config, "actions_4") == ["actions_4"] and "layers_3" in tried(config, "home")
    assert tried(config, "loop") == ["loop", "td", "mc", "boyan", "discount_95"]
    assert {"on_grouped", "on_enumerated", "paper_td"} <= {*tried(config, "home")}
