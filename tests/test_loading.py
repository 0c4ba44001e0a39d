"""Loaders and the configuration answer whatever they are given with one sentence."""

import copy
import json
import random
from pathlib import Path

import numpy as np
import pytest
import yaml
from fuzz.configurations import case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ictd.pipeline.config import checked_config
from ictd.pipeline.storage import load_arrays, load_json, save_arrays
from ictd.pipeline.table_files import load_table

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
SAME = settings(
    derandomize=True, max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def keys(config, path=()):
    """All places in a configuration, those of sections among them."""
    for key, value in config.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from keys(value, (*path, key))


def with_value(config, path, value):
    config = copy.deepcopy(config)
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return config


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["td", "1e-3"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@SAME
@given(path=st.sampled_from(list(keys(CONFIG))), value=values)
def test_any_value_is_taken_or_refused_in_one_sentence(path, value):
    try:
        checked_config(with_value(CONFIG, path, value), SCHEMA)
    except ValueError as error:
        sentence = str(error)
        assert sentence.startswith("Config: ") and sentence.endswith(".") and "\n" not in sentence
        assert path[0] in sentence or path[-1] in sentence


def test_any_file_is_planned_or_refused_in_one_sentence(tmp_path):
    found = {}
    for seed in range(40):
        (tmp_path / f"{seed}").mkdir()
        tried, outcome = case(random.Random(seed), tmp_path / f"{seed}")
        found.setdefault(outcome, []).append(tried)
    assert set(found) == {"taken", "refused"}, found


@pytest.mark.parametrize("path", list(keys(CONFIG)), ids=".".join)
def test_every_key_is_needed_and_named(path):
    config = copy.deepcopy(CONFIG)
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    optional = path[:2] == ("readings", "env_options") and len(path) > 2
    try:
        checked_config(config, SCHEMA)
    except ValueError as error:
        assert f"{path[-1]!r}" in str(error)
        assert not optional
    else:
        assert optional


def test_damaged_archives_are_refused_or_whole(tmp_path):
    # More than is read at once, so that not all of a file is looked at by chance.
    arrays, path = {"a": np.arange(2_500.0).reshape(5, -1), "b": np.arange(7)}, tmp_path / "stored.npz"
    save_arrays(path, **arrays)
    whole, refused = path.read_bytes(), []
    assert not is_refused(path, arrays)
    inside = range(200, 20_000)
    flips = [
        (place, bit) for place in range(len(whole)) for bit in range(8) if place not in inside or place % 997 == bit
    ]
    for place, bit in flips:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        refused.append(is_refused(path, arrays))
    assert sum(refused) > len(flips) / 2
    for place in random.Random(0).sample(range(len(whole)), 100):
        path.write_bytes(whole[:place])
        assert is_refused(path, arrays)


def is_refused(path, arrays):
    """Whether an archive cannot be read; else it has to have these arrays."""
    try:
        loaded = load_arrays(path, *arrays)
    except ValueError as error:
        assert f"{path.name} cannot be used" in str(error) and "make it anew: rm" in str(error)
        return True
    for array, expected in zip(loaded, arrays.values(), strict=True):
        np.testing.assert_array_equal(array, expected)
    return False


@SAME
@given(content=st.binary(max_size=200))
def test_foreign_files_are_refused_or_read(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"foreign cannot be used: .* make it anew: rm"):
        load_arrays(path, "a")
    for load in (load_json, load_table):
        try:
            load(path)
        except ValueError as error:
            assert "foreign cannot be used" in str(error) and "\n" not in str(error)


def test_a_pickle_is_not_opened(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(3))
    with pytest.raises(ValueError, match="not a zip file"):
        load_arrays(tmp_path / "array.npy", "a")
    (tmp_path / "cut.json").write_text(json.dumps({"a": 1})[:-1])
    with pytest.raises(ValueError, match=r"cut\.json cannot be used.*rm .*cut\.json, then run snakemake"):
        load_json(tmp_path / "cut.json")
