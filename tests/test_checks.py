"""Validation of arguments: public functions accept valid arguments in all forms, and reject invalid arguments."""

import copy
import dataclasses
import re
import warnings
from functools import cache

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import larger_weights
from tolerances import ROUNDING

import ictd
from ictd.checks import LARGEST_DISCOUNT, array, integer, probabilities

REPEATABLE = settings(max_examples=300, derandomize=True, deadline=None)
# Arguments whose last axis may be shorter, and arguments whose entries may be NaN.
ANY_LENGTH = {
    ("sampled_columns", "paths"),
    ("joint_prompt", "columns"),
    ("Tasks", "features"),
    ("enumerated", "features"),
    ("lstd_lambda", "features"),
}
OPTIONAL = {"stationary", "E", "queries", "tasks_seen", "features", "behaviour", "weights", "prompts",
            "pseudo_counts"}  # fmt: skip
MAY_BE_NAN = {("Weights", "u"), ("Weights", "A"), ("msve", "value"), ("msve", "estimate")}
# Values out of range, by the names of arguments, and by functions if they differ.
OUT_OF_RANGE = {
    "transition": [np.full((3, 3), 0.4), [[1.5, -0.5, 0]] * 3], "stationary": [np.full(3, 0.4), [1.5, -0.5, 0]],
    "visits": [np.zeros(3)],
    "discount": [1.0, -0.1, LARGEST_DISCOUNT + 1e-9], "states": [0], "depth": [0], "size": [0], "n": [0],
    "batch_size": [0], "rollout_steps": [0], "queries": [0, 2], "gain": [-1.0], "ridge": [0.0, -1.0, 5e-324],
    "learning_rate": [0.0, -1.0], "threshold": [0.0, 1.0], "paths": [[0, 1, 3], [0, -1, 2]],
    "tasks_seen": [[2, 1], [1]],
    "decay": [1.5, -0.1],
    "pseudo_counts": [-np.eye(3), np.ones((2, 2))],
    ("Model", "discount"): [1.1, -0.1], ("lstd_lambda", "discount"): [1.1, -0.1, [[0.5, 1.1]] * 2],
    "env": ["ring"], "algo": ["sarsa"], "engine": ["jax"], "step_size": [[[0.5]]], "length": [0, [1, 2, 3]],
}  # fmt: skip


@cache
def calls():
    """Public functions of each kind by name, each with valid arguments."""
    rng = np.random.default_rng(0)
    tasks = ictd.sample_tasks("loop", 3, 2, rng)
    batches, weights, paths = ictd.unroll(tasks, 8, 0.5, 5, rng), larger_weights(3), np.array([[0, 1, 2], [2, 2, 0]])
    p, r, gamma = tasks.transition, tasks.reward, {"discount": 0.5}
    context, features = ictd.Context.enumerated(p, r), rng.normal(size=(2, 3, 2))
    prompt = ictd.joint_prompt(ictd.enumerated_columns(p, r, 0.5))
    drawn = {"states": 3, "size": 2, "rng": rng}
    training = {"tasks": tasks, "batches": batches, "algo": "td", "depth": 2, **gamma, "learning_rate": 0.5,
                "start": weights, "engine": "compiled"}  # fmt: skip
    of_model = {"weights": weights, "depth": 2, "scaled": False}
    steps = {"states": paths, "rewards": paths[:, 1:] * 0.5, **gamma}
    updates = {"context": context, **gamma, "step_size": 0.5, "depth": 2}
    return {
        "Tasks": (ictd.Tasks, {**vars(tasks), "features": features, "behaviour": p[::-1]}),
        "value_function": (ictd.value_function, {"transition": p, "reward": r, **gamma}),
        "msve": (ictd.msve, {"stationary": tasks.stationary, "value": r, "estimate": 2 * r}),
        "sample_tasks": (ictd.sample_tasks, {"env": "loop", **drawn, "threshold": 0.25}),
        "BatchStatistics": (ictd.BatchStatistics, vars(batches)),
        "unroll": (ictd.unroll, {"tasks": tasks, "batch_size": 4, **gamma, "rollout_steps": 2, "rng": rng}),
        "Weights": (ictd.Weights, vars(weights)),
        "initial_weights": (ictd.initial_weights, {"dimension": 3, "gain": 0.5, "rng": rng}),
        "Context": (ictd.Context, vars(context)),
        "from_trajectory": (ictd.Context.from_trajectory, {"states": paths, "rewards": paths[:, 1:] * 0.5, "n": 3}),
        "from_features": (
            ictd.Context.from_features,
            {"phi": features, "phi_next": features[:, ::-1], "rewards": features[..., 0]},
        ),
        "enumerated": (
            ictd.Context.enumerated,
            {"transition": p, "reward": r, "features": features, "weights": tasks.stationary},
        ),
        "sampled_columns": (ictd.sampled_columns, {"paths": paths, "reward": r, **gamma}),
        "joint_prompt": (ictd.joint_prompt, {"columns": prompt[..., :3]}),
        "Model": (ictd.Model, {**of_model, **gamma}),
        "values": (ictd.Model(weights, 2, 0.5).values, {"context": context}),
        "batch_td": (ictd.batch_td, updates),
        "lstd_lambda": (ictd.lstd_lambda, {**steps, "decay": 0.5, "ridge": 0.5, "features": features}),
        "certainty_equivalence": (
            ictd.certainty_equivalence,
            {"context": context, **gamma, "pseudo_counts": np.ones((3, 3)), "reward": 0.5},
        ),
        "GramAttention": (
            ictd.GramAttention,
            {"dimension": 3, "depth": 2, "heads": 2, "looped": False, "seeds": 1, "initial_gain": 0.5},
        ),
        "forward": (ictd.LinearTransformer(weights, 2), {"prompt": prompt, "queries": 3}),
        "pretrain": (
            ictd.pretrain,
            {"tasks": ictd.TaskDistribution("loop", 3), "depth": 2, **gamma, "updates": 3, "seeds": 1,
             "learning_rate": 0.5, "batch_size": 4, "rollout_steps": 2, "initial_gain": 0.25, "clip": 0.5},
        ),
        "pretrain_history": (ictd.pretrain_history, {**training, "tasks_seen": np.array([1, 2]), "scaled": True}),
        "evaluate": (
            ictd.evaluate,
            {"model": ictd.Model(weights, 2, 0.5), "tasks": ictd.TaskDistribution("loop", 3),
             "prompts": ictd.EnumeratedPrompts(), "grouped": True, "size": 2, "seed": 1},
        ),
        "generator": (ictd.generator, {"seed": 0, "env": "loop", "states": 3, "purpose": "tasks"}),
    }  # fmt: skip


def invalid_values(function: str, name: str, value):
    """Invalid values for an argument."""
    others = st.text() | st.binary() | st.dictionaries(st.text(), st.integers()) | st.complex_numbers()
    if isinstance(value, bool):
        others |= st.integers() | st.floats()
    elif isinstance(value, int):
        others |= st.integers(max_value=-1) | st.integers(min_value=2**64) | st.floats() | st.booleans()
    elif isinstance(value, float):
        others |= st.sampled_from([np.nan, np.inf, -np.inf, 10**400]) | st.booleans()
    elif isinstance(value, str):
        others = st.binary() | st.integers() | st.lists(st.integers())
    elif isinstance(value, np.ndarray):
        others |= st.sampled_from(invalid_arrays(value, (function, name)))
    else:
        others |= st.integers() | st.just(type(value))
    if name not in OPTIONAL or function == "msve":
        others |= st.none()
    own = OUT_OF_RANGE.get((function, name), OUT_OF_RANGE.get(name, []))
    out_of_range = own if function != "generator" else []
    return others | st.sampled_from(out_of_range) if out_of_range else others


def invalid_arrays(value: np.ndarray, place: tuple[str, str]) -> list:
    arrays = [value + 0j, value.astype(str), value > 0, np.ma.masked_array(value, mask=value == value.flat[0])]
    arrays += [np.where(value == value.flat[0], other, value.astype(object)) for other in (None, "a")]
    arrays += [value[..., :0], [[1], [1, 2]], np.zeros(value.shape, "datetime64[D]")]
    if place not in ANY_LENGTH:
        arrays.append(value[..., :-1])
    if value.dtype.kind in "iu":
        arrays.append(value * 1.5)
    if place not in MAY_BE_NAN:
        for number in (np.nan, np.inf, -np.inf):
            arrays.append(value.astype(float))
            arrays[-1].flat[-1] = number
    return arrays


def forms(value):
    """All accepted forms of a valid value."""
    if isinstance(value, bool | int):
        return st.sampled_from([value, np.asarray(value)[()], np.asarray(value), torch.tensor(value)])
    if isinstance(value, float):
        return st.sampled_from([value, np.float64(value), np.float32(value), np.asarray(value), torch.tensor(value)])
    if isinstance(value, str):
        return st.sampled_from([value, np.asarray(value)])
    if isinstance(value, np.ndarray):
        swapped = value.astype(value.dtype.newbyteorder(">"))
        arrays = [value, value.tolist(), swapped, value.copy(order="F"), value[..., ::-1][..., ::-1]]
        return st.sampled_from([*arrays, np.ma.masked_array(value), torch.from_numpy(value.copy())])
    return st.just(value)


def numbers_of(result) -> list:
    """All numbers of a result, in their order."""
    if isinstance(result, torch.nn.Module):
        result = list(result.parameters())
    elif isinstance(result, np.random.Generator):
        result = [result.integers(2**63)]
    elif dataclasses.is_dataclass(result):
        result = [getattr(result, field.name) for field in dataclasses.fields(result)]
    elif isinstance(result, dict):
        result = [*result.values()]
    if isinstance(result, list | tuple):
        return [number for part in result for number in numbers_of(part)]
    if isinstance(result, torch.Tensor):
        result = result.detach().numpy()
    assert np.asarray(result).dtype.isnative
    return np.ravel([] if result is None else result).tolist()


@REPEATABLE
@given(st.data())
def test_invalid_arguments_are_refused_in_one_sentence(data):
    name = data.draw(st.sampled_from(list(calls())))
    function, valid = calls()[name]
    argument = data.draw(st.sampled_from(list(valid)))
    value = data.draw(invalid_values(name, argument, valid[argument]))
    with pytest.raises(ValueError) as error:
        function(**{**copy.deepcopy(valid), argument: value})
    message = str(error.value)
    assert "\n" not in message and message.endswith(".") and any(name in message for name in valid), message


@pytest.mark.filterwarnings("error", "ignore:zero has a smaller MSVE")
@REPEATABLE
@given(st.data())
def test_valid_arguments_are_taken_in_all_their_forms(data):
    function, valid = calls()[data.draw(st.sampled_from(list(calls())))]
    given = {name: data.draw(forms(value)) for name, value in valid.items()}
    found, expected = (numbers_of(function(**copy.deepcopy(arguments))) for arguments in (given, valid))
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


def test_every_public_function_is_validated():
    """Other names are modules' own tables, and classes whose methods are validated."""
    others = {"ENVIRONMENTS", "EnumeratedPrompts", "GramAttention", "LinearTransformer", "TaskDistribution"}
    others.add("register_environment")
    assert ictd.__all__ == dir(ictd) == sorted(ictd.__all__)
    checked = {name for name in ictd.__all__ if {"__wrapped__", "_validators"} & {*dir(getattr(ictd, name))}}
    assert checked == {*ictd.__all__} - others


ENDS, DIVIDED = (
    "a row of transition sums to .*; the rest counts as the end of",
    "rows of transition .* divided by their",
)


@pytest.mark.parametrize(
    ("kind", "total", "episodic", "words"),
    [
        ("f8", 0.999, True, ENDS),
        ("f8", 1.001, True, DIVIDED),
        ("f8", 0.999, False, DIVIDED),
        (">f4", 1 - 6e-7, True, ENDS),
        ("f4", 1 - 1e-7, True, "no warning"),
    ],
)
def test_a_row_that_nearly_sums_to_one_is_rounded_or_has_an_end(kind, total, episodic, words):
    rows = np.array([[0.5, 0.5], [0.25, total - 0.25]], kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = probabilities("n, n", may_end=True)("transition", rows, {"episodic": episodic})
    expected = rows[1].sum(dtype=float) if words == ENDS else 1
    np.testing.assert_allclose(found.sum(axis=1), [1, expected], rtol=ROUNDING)
    assert re.match(words, "".join(str(warning.message) for warning in caught) or "no warning")


def test_tables_with_labels_in_another_order_are_refused():
    table, half = pandas.DataFrame(np.eye(2) / 2, ["a", "b"], ["a", "b"]), pandas.Series([0.5, 0.5], ["a", "b"])
    valid = {"transition": table, "reward": half, "behaviour": half, "start": half}
    assert len(ictd.Tasks(**valid, episodic=True)) == 1
    message = r" has the labels \['.', '.'\] after \['.', '.'\]; order both alike, or give arrays without labels"
    for name, value in [*valid.items(), ("transition", [table, table.iloc[::-1, ::-1]])]:
        with pytest.raises(ValueError, match=message):
            ictd.Tasks(**valid | {name: value[::-1]}, episodic=True)


@pytest.mark.parametrize("entry", [-2.8e-17, -1e-10])
def test_negative_probabilities_are_clipped_within_rounding(entry):
    chain = ictd.Tasks([[1 - entry, entry], [0.5, 0.5]], [0, 0], behaviour=[0.5, 0.5]).transition
    np.testing.assert_allclose(chain[0, 0], [1, 0], rtol=1e-9)
    assert (chain >= 0).all()


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (ictd.lstd, {"gamma": 0.9, "ridge": 0.1}, "lstd has no argument gamma; its name is discount."),
        (ictd.lstd, {"ridge": 0.1}, "lstd missing a required argument: 'context'; its arguments are context, discount"),
        (ictd.Context.from_trajectory, {"terminals": [0]}, r"from_trajectory has .* to Context\.from_transitions"),
        (ictd.Context.from_transitions, {"truncated": [0]}, "has no argument truncated; leave out time limits, after"),
    ],
)
def test_wrong_names_of_arguments_are_explained(function, arguments, message):
    with pytest.raises(TypeError, match=message):
        function(**arguments)


@pytest.mark.parametrize(
    ("shape", "given", "sizes", "bound"),
    [
        ("n, n", (3, 4), {}, None),
        ("..., 2n+1, m", (5, 7, 2), {}, {"...": (5,), "n": 3, "m": 2}),
        ("..., 2n+1, m", (6, 2), {}, None),
        ("..., m+1", (4,), {"m": 3}, {"...": (), "m": 3}),
        ("..., m+1", (4,), {"m": 2}, None),
        ("..., n", (2,), {"...": (5,)}, None),
        ("*, n", (2,), {"...": (5,)}, {"...": (5,), "n": 2}),
        ("..., m!, d", (1, 1, 2), {}, {"...": (1,), "m": 1, "d": 2}),
    ],
)
def test_shapes_bind_sizes(shape, given, sizes, bound):
    if bound is None:
        with pytest.raises(ValueError, match="argument has shape"):
            array(shape)("argument", np.zeros(given), sizes)
    else:
        array(shape)("argument", np.zeros(given), sizes)
        assert sizes == bound


def test_whole_numbers_may_be_their_bounds():
    check = integer(2, 5)
    assert [check("k", value, {}) for value in (2, 5)] == [2, 5]
    for value in (1, 6):
        with pytest.raises(ValueError, match="give a whole number from 2 to 5"):
            check("k", value, {})


@pytest.mark.parametrize(
    ("row", "warned"),
    [
        ([0.2, 0.2, 0.2, 0.2, 0.099, 0.099], True),  # Rounding of six entries to three digits explains 0.003.
        ([0.3, 0.698, 0, 0, 0, 0], False),
        ([0.29985, 0.69965, 0, 0, 0, 0], False),
        ([0.333, 0.666, 0, 0, 0, 0], True),
        ([1 - 3e-7, 0, 0, 0, 0, 0], True),
    ],
)
def test_a_rest_of_a_row_that_rounding_may_explain_is_named(row, warned):
    table = np.array([row, *np.eye(6)[1:]])
    table[1:, 0] = 0.5
    table[1:] /= table[1:].sum(axis=1, keepdims=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = ictd.value_function(table, np.ones(6), 0.9, episodic=True)
    np.testing.assert_allclose(values, np.linalg.solve(np.eye(6) - 0.9 * table, np.ones(6)))
    assert [str(one.message)[:18] for one in caught] == ["a row of transitio"] * warned


def test_labels_of_steps_in_another_order_are_refused():
    states, rewards, following = (pandas.Series(column) for column in ([0, 1, 0, 1], [1.0, 2, 3, 0], [1, 0, 1, 1]))
    ictd.Context.from_transitions(states, rewards, following, n=2)
    for first, other in ((states[::-1], rewards), (states, rewards[::-1])):
        with pytest.raises(ValueError, match=r"rewards has the labels .*; order both alike"):
            ictd.Context.from_transitions(first, other, following, n=2)
