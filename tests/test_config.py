"""Checking the configuration, and the grid that it spans."""

import copy
import itertools
import subprocess
from pathlib import Path

import pytest
import yaml

from ictd.pipeline.config import OWN, check_folder, checked_config, numbers_from_text, with_defaults
from ictd.pipeline.grid import Cell, algos_together, cells, seed_groups, seeds_in_a_job
from ictd.pipeline.yaml_files import load_yaml

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


# Nine to the sixth values in six lines.
BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
BOMB += "".join(f"{one}: &{one} [{', '.join([f'*{last}'] * 9)}]\n" for last, one in itertools.pairwise("abcdef"))


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
    ("wanted", "cores", "together"),
    [("auto", None, True), ("auto", 6, True), ("auto", 7, False), (1, 2, False), (20, None, False)],
)
def test_a_job_takes_all_algorithms_where_cores_are_few(wanted, cores, together):
    assert algos_together(changed("seeds_per_job", wanted), cores) == together


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
        (4, 4, ["0-19", "notes", "1-0"], ["0-3"]),
        (3, 2, ["1-0", "2-1"], ["0-1", "2-2"]),
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
        ("evaluation.context_lengths", [100, 5], "give them in ascending order"),
        ("envs", None, "envs is empty; give a list"),
        ("discount", 1 - 2**-53, "discount is 0.9999999999999999; give at most 0.99999999"),
        ("evaluation.lstd_ridge", 1e-320, "evaluation.lstd_ridge is 1e-320; give at least 1e-16"),
        ("batch_size", 2**32, "batch_size is 4294967296; give at most 4294967295"),
        ("seeds", 1e30, "seeds is 1e+30; give an integer below 2^63"),
        ("seeds", "1_000", "seeds is '1_000'; give an integer"),
        ("learning_rate", 10**400, "learning_rate is too large; give a finite number"),
        ("states", [5, "a"] * 500, "'a', 5, 'a']; give each value once"),
        (
            "readings.env_options",
            {"loop": {"threshold": "a\n"}},
            r"with its readings.env_options: threshold is 'a\n'; give",
        ),
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


@pytest.mark.parametrize("results", ["results\n", "-x", "a b", "results\x00", "~/x", "é\n"])
def test_folders_of_odd_letters_are_refused(results):
    with pytest.raises(ValueError, match="give a folder whose path has letters, digits and _"):
        checked_config(changed("results", results), SCHEMA)


def test_results_go_to_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("project/src", "project/results/logs", "project/empty", "other/logs", "foreign", "home"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "foreign/thesis.tex").touch()
    root = tmp_path / "project"
    for name in ("project/results", "project/empty", "project/new/deep", "other", "elsewhere", "project/../other"):
        check_folder(tmp_path / name, root)
    for name in ("project/src", "project/src/new", "project/.git/new", "project/new/../src", "project", ".", "home"):
        with pytest.raises(ValueError, match="a folder of the project, one around it, or the home folder"):
            check_folder(tmp_path / name, root)
    with pytest.raises(ValueError, match=r"foreign', where there is 'thesis\.tex'; give a folder of its own"):
        check_folder(tmp_path / "foreign", root)
    with pytest.raises(ValueError, match=r"no usable folder: .*too long"):
        check_folder(tmp_path / ("x" * 300), root)


def test_no_folder_of_the_project_is_for_results():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("this is no repository")
    assert {line.split("/")[0] for line in tracked.stdout.split() if "/" in line} < OWN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds: 1\nseeds: 2", "line 2: key 'seeds' is there twice"),
        ("evaluation: {tasks: 1, tasks: 2}", "line 1: key 'tasks' is there twice"),
        ("states: &a [*a]", "a value that holds itself"),
        ("readings: &a {env_options: *a}", "a value that holds itself"),
        (BOMB, "more than 5000 values"),
        (f"states: {'[' * 30}{']' * 30}", "20 levels"),
        (f"states: {'[' * 900}{']' * 900}", "cannot be read: maximum recursion depth"),
        (f"seeds: {'9' * 5000}", "cannot be read: Exceeds the limit"),
        (f"results: {'x' * 200_000}", "cannot be read: it has more than 100000 bytes"),
        ("results: 2024-13-45", "cannot be read: month must be in 1..12"),
        ("results: !!python/name:os.system", "line 1: could not determine a constructor"),
    ],
)  # fmt: skip
def test_files_that_are_no_plain_mappings_are_refused(tmp_path, text, message):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ValueError) as raised:
        load_yaml(tmp_path / "config.yaml")
    assert f"{raised.value}".startswith(f"{tmp_path}/config.yaml") and message in f"{raised.value}"
    assert "\n" not in f"{raised.value}"


def test_mappings_that_take_in_others_may_be_used_again(tmp_path):
    (tmp_path / "config.yaml").write_text("a: {b: &b {<<: {c: 1, d: 2}, c: 3}}\ne: {<<: *b, d: 4}\n")
    assert load_yaml(tmp_path / "config.yaml") == {"a": {"b": {"c": 3, "d": 2}}, "e": {"c": 3, "d": 4}}


def test_values_given_on_the_command_line_may_not_hold_themselves():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match=r"^Config: the whole has .* or a value that holds itself; give less"):
        checked_config(changed("states", cycle), SCHEMA)


def test_values_that_are_not_given_are_the_defaults():
    defaults = {"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": [1, 2]}
    given = {"b": {"d": {"e": 4, "g": 5}}, "f": [3], "h": {"i": 6}}
    expected = {"a": 1, "b": {"c": 2, "d": {"e": 4, "g": 5}}, "f": [3], "h": {"i": 6}}
    assert with_defaults(given, defaults) == expected and with_defaults({}, defaults) == defaults
    assert with_defaults({"b": 7}, defaults)["b"] == 7 and defaults["b"] == {"c": 2, "d": {"e": 3}}
