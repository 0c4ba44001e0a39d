"""The configuration and its grid: accepted values, and rejected values with one sentence."""

import copy
import functools
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from projects import ROOT, STUDIES

from ictd.pipeline import config as configuration
from ictd.pipeline.config import (
    check_folder,
    check_values,
    differences,
    load_config,
    load_yaml,
    schema_like,
    values_from_text,
)
from ictd.pipeline.grid import Cell, cells, seed_ranges

CONFIG = load_yaml(ROOT / "config.yaml")
BOUNDS = load_yaml(ROOT / "workflow/schemas/studies.schema.yaml")


@pytest.fixture(autouse=True, scope="module")
def files_read_once():
    """Reading the files of settings takes 20 times as long as checking them."""
    kept = functools.cache(load_yaml)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "load_yaml", lambda path: copy.deepcopy(kept(path)))
        yield


def nested(key: str, value) -> dict:
    """A mapping with a value under a key such as "evaluation.tasks"."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def refusal(given: dict) -> str:
    """The error message for a configuration."""
    with pytest.raises(ValueError) as raised:
        load_config(given, ROOT)
    sentence = str(raised.value)
    assert sentence.startswith("Config: ") and sentence.endswith(".") and "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sedes: 3", "there is an unknown key 'sedes' (did you mean seeds?); the keys are algos, envs"),
        ("evaluation: {task: 3}", "evaluation has an unknown key 'task' (did you mean tasks?); the keys are "),
        ("discount: 1", "discount: 1 is greater than or equal to the maximum of 1"),
        ("seeds: true", "seeds: True is not of type 'integer'"),
        ("theory: {tasks: 30}", "theory.tasks: 30 is not a multiple of 20"),
        ("states: [5, 5]", "states: [5, 5] has non-unique elements"),
        ("algos: [td, sarsa]", "algos names 'sarsa'; the algorithms are td, mc, values"),
        ("evaluation: {context_lengths: [100, 5]}", "give them in ascending order"),
        ("evaluation: {step_sizes: {smallest: 99}}", "step_sizes.smallest: give at most the largest, 10"),
        ("readings: {evaluation_env: ring}", "readings.evaluation_env names 'ring'"),
        ("readings: {env_options: {loop: {threshold: 3}}}", "threshold is 3; give a number between 0 and 1"),
        ("results: my results", "results is 'my results'; give a folder whose path"),
        ("results: src/new", "results is 'src/new', which holds files of the project; give another folder"),
        *((f"{name}: {{unknown: 1}}", f"{name} has an unknown key 'unknown'") for name in STUDIES),
    ],
)
def test_invalid_values_are_refused_with_their_key(given, message):
    assert message in refusal(yaml.safe_load(given))


def keys(config: dict, prefix: str = "") -> list[str]:
    """All keys of a configuration, including the keys of sections."""
    inner = (keys(value, f"{prefix}{key}.") for key, value in config.items() if isinstance(value, dict))
    return [*(prefix + key for key in config), *(name for names in inner for name in names)]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["td", "1e-3"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(key=st.sampled_from(keys(CONFIG)), value=values)
def test_any_value_is_taken_or_refused_in_one_sentence(key, value):
    try:
        load_config(nested(key, value), ROOT)
    except ValueError as error:
        sentence = str(error)
        assert sentence.startswith("Config: ") and sentence.endswith(".") and "\n" not in sentence
        assert key.split(".")[0] in sentence or key.split(".")[-1] in sentence


def test_given_values_replace_the_papers_values():
    study = {STUDIES[0]: {"seeds": "7"}} if STUDIES else {}
    found = load_config({"evaluation": {"tasks": "3"}, "depths": ["6"], "results": "007", **study}, ROOT)
    assert found["evaluation"] == CONFIG["evaluation"] | {"tasks": 3}
    assert found["depths"] == [6] and found["results"] == "007" and found["seeds"] == CONFIG["seeds"]
    assert all(found[name]["seeds"] == 7 for name in study)


def test_texts_of_numbers_and_booleans_are_read_as_such():
    schema = {"properties": {"name": {"type": "string"}}}
    given = yaml.safe_load("{a: [1e-3, '.5', 1x], name: '007', seeds: 20.0, most: 1.0e+30, b: [true, 'false', 'True']}")
    wanted = yaml.safe_load("{a: [0.001, 0.5, 1x], name: '007', seeds: 20, most: 1.0e+30, b: [true, false, true]}")
    found = values_from_text(given, schema)
    assert found == wanted and isinstance(found["seeds"], int)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("seeds: 1\nseeds: 2", "c.yaml, line 2: key 'seeds' is there twice."),
        ("a: 1\nb: [\n", "c.yaml, line 3: "),
        ("# \udcf6\na: 1", "c.yaml is not valid YAML in UTF-8."),
        ("", "c.yaml has no keys with values."),
        (None, "c.yaml cannot be read: No such file or directory."),
    ],
)
def test_invalid_files_of_settings_are_refused_with_the_line(tmp_path, content, message):
    if content is not None:
        (tmp_path / "c.yaml").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError) as raised:
        load_yaml(tmp_path / "c.yaml")
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_the_folder_of_results_must_be_its_own(tmp_path):
    root = tmp_path / "project"
    for name in ("project/src", "project/results", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "file").touch()
    for name in ("project/results", "project/new/deep", "other/new"):
        check_folder(tmp_path / name, root)
    for name in ("project", "project/src/new", "project/.git", "project/new/../src", "."):
        with pytest.raises(ValueError, match="which holds files of the project; give another folder"):
            check_folder(tmp_path / name, root)
    with pytest.raises(ValueError, match=r"nothing can be written to .*/file; give write access"):
        check_folder(tmp_path / "file/results", root)


def test_the_grid_is_that_of_the_paper():
    settings = [("boyan", 5, 30), ("boyan", 5, 5), ("boyan", 5, 10), ("boyan", 5, 60)]
    settings += [("boyan", 3, 30), ("boyan", 10, 30), ("loop", 5, 30)]
    found = cells(CONFIG)
    assert found == [Cell(algo, *setting) for setting in settings for algo in ("td", "mc")]
    assert cells(CONFIG, "main") == found[:2] and cells(CONFIG, "depths") == found[2:8]
    assert [Cell.parse(str(cell)) for cell in found] == found


@pytest.mark.parametrize(
    ("wanted", "seeds", "cores", "finished", "ranges"),
    [
        (8, 30, 2, ["0-19"], ["0-19", "20-27", "28-29"]),
        (1, 8, 2, ["0-2", "3-4"], ["0-2", "3-4", "5-5", "6-6", "7-7"]),
        (2, 6, 2, ["0-1", "0-3"], ["0-3", "4-5"]),
        (20, 20, 2, ["0-19", "0-9", "0-9"], ["0-9", "10-19"]),
        # As many jobs as keep all cores busy, with at most 20 seeds each.
        ("auto", 20, 14, [], ["0-19"]),
        ("auto", 20, 15, [], ["0-9", "10-19"]),
        ("auto", 3, 9999, [], ["0-0", "1-1", "2-2"]),
        ("auto", 30, 1, [], ["0-19", "20-29"]),
    ],
)
def test_ranges_cover_all_seeds_and_keep_finished_runs(wanted, seeds, cores, finished, ranges):
    files = [Path(f"cell-{i}/{name}.npz") for i, name in enumerate(finished)]
    assert seed_ranges(wanted, seeds, 14, cores, files) == ranges


def test_settings_that_differ_from_ones_own_are_found():
    own = load_config({}, ROOT)
    assert differences(own, load_config({"results": own["results"]}, ROOT)) == []
    other = load_config({"seeds": 3, "readings": {"env_options": {"loop": {"threshold": 0.7}}}}, ROOT)
    assert sorted(differences(other, own)) == ["readings.env_options.loop.threshold", "seeds"]


OWN = """
seeds: 5
main: {discount: 0.9, algo: td}
lengths: [5, 10]
rates: [0, 0.5]
flag: true
clip: 1
context_lengths: [5]
prompt_lengths: [5, 100]
ridges: {smallest: 1, largest: 2}
variants: [{name: td}, {name: deep, depth: 30}]
"""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("seeds: x", "seeds: 'x' is not of type 'integer'"),
        ("seeds: 0", "seeds: 0 is less than the minimum of 1"),
        ("seed: 1", "there is an unknown key 'seed' (did you mean seeds?); the keys are"),
        ("main: {discount: 1.5}", "main.discount: 1.5 is greater than or equal to the maximum of 1"),
        ("lengths: [5, x]", "value 2 of lengths: 'x' is not of type 'integer'"),
        ("prompt_lengths: [5, 10, 20]", "prompt_lengths: [5, 10, 20] is too long"),
        ("ridges: {smallest: 2, largest: 1}", "ridges.smallest: give at most the largest, 1"),
        ("variants: [{name: a, depth: 0}]", "value 1 of variants.depth: 0 is less than the minimum of 1"),
        ("variants: [{name: ../a}]", "value 1 of variants.name is '../a'; give letters, digits, _ and . only"),
        ("variants: [{depth: 1}]", "value 1 of variants: 'name' is a required property"),
        ("flag: 1", "flag: 1 is not of type 'boolean'"),
    ],
)
def test_settings_of_studies_have_the_types_of_their_own_values_and_bounds(given, said):
    schema = schema_like(yaml.safe_load(OWN), BOUNDS)
    right = yaml.safe_load("{seeds: '7', main: {discount: '1e-1'}, rates: [2, 0.1], clip: 0.5}")
    found = values_from_text(right, schema)
    check_values(found, schema)
    assert found == right | {"seeds": 7, "main": {"discount": 0.1}}
    with pytest.raises(ValueError, match=re.escape(said)):
        check_values(yaml.safe_load(given), schema)
