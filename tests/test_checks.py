"""Validation of arguments: public functions accept valid arguments in all forms, and reject invalid arguments."""

import copy
import dataclasses
import inspect
import re
import warnings

import numpy as np
import pandas
import pytest
import torch
from naive import larger_weights
from tolerances import ROUNDING

import ictd
from ictd.checks import LARGEST_DISCOUNT, array, probabilities

# Values of other types, by the types of valid ones.
WRONG = {
    bool: [1, 0.5, "a"], int: [-1, 2**64, 0.5, np.nan, True, "a"], str: [3, [1], ""],
    float: [np.nan, np.inf, -np.inf, 10**400, True, "a"], np.ndarray: ["a"], object: [1, int, "a"],
}  # fmt: skip
# Arguments whose last axis may be shorter.
ANY_LENGTH = {("sampled_columns", "paths"), *((name, "features") for name in ("Tasks", "enumerated", "lstd_lambda"))}
# Values out of range, by the names of arguments, and by functions if they differ.
OUT_OF_RANGE = {
    "transition": [np.full((3, 3), 0.4), [[1.5, -0.5, 0]] * 3], "stationary": [np.full(3, 0.4), [1.5, -0.5, 0]],
    "visits": [np.zeros(3)], "discount": [1.0, -0.1, LARGEST_DISCOUNT + 1e-9], "queries": [0, 2],
    "states": [0], "depth": [0], "size": [0], "batch_size": [0], "rollout_steps": [0], "ridge": [0.0, -1.0, 5e-324],
    "learning_rate": [0.0, -1.0], "threshold": [0.0, 1.0], "paths": [[0, 1, 3], [0, -1, 2]], "decay": [1.5, -0.1],
    "tasks_seen": [[2, 1], [1]], "pseudo_counts": [-np.eye(3), np.ones((2, 2))],
    ("Model", "discount"): [1.1, -0.1], ("lstd_lambda", "discount"): [1.1, -0.1, [[0.5, 1.1]] * 2],
    "step_size": [[[0.5]]], "length": [0, [1, 2, 3]],
}  # fmt: skip


@pytest.fixture(scope="module")
def calls():
    """Public functions of each kind by name, each with valid arguments."""
    rng = np.random.default_rng(0)
    tasks = ictd.sample_tasks("loop", 3, 2, rng)
    batches, weights, paths = ictd.unroll(tasks, 8, 0.5, 5, rng), larger_weights(3), np.array([[0, 1, 2], [2, 2, 0]])
    p, r, gamma = tasks.transition, tasks.reward, {"discount": 0.5}
    context, features = ictd.Context.enumerated(p, r), rng.normal(size=(2, 3, 2))
    prompt = ictd.joint_prompt(ictd.enumerated_columns(p, r, 0.5))
    training = {"tasks": tasks, "batches": batches, "algo": "td", "depth": 2, **gamma, "learning_rate": 0.5,
                "start": weights, "engine": "compiled", "tasks_seen": np.array([1, 2]), "scaled": True}  # fmt: skip
    steps = {"states": paths, "rewards": paths[:, 1:] * 0.5, **gamma}
    loop = ictd.TaskDistribution("loop", 3)
    calls = [
        (ictd.Tasks, {**vars(tasks), "features": features, "behaviour": p[::-1]}),
        (ictd.value_function, {"transition": p, "reward": r, **gamma}),
        (ictd.sample_tasks, {"env": "loop", "states": 3, "size": 2, "rng": rng, "threshold": 0.25}),
        (ictd.BatchStatistics, vars(batches)),
        (ictd.Weights, vars(weights)),
        (ictd.Context, vars(context)),
        (ictd.Context.from_features, {"phi": features, "phi_next": features[:, ::-1], "rewards": features[..., 0]}),
        (ictd.Context.enumerated, {"transition": p, "reward": r, "features": features, "weights": tasks.stationary}),
        (ictd.sampled_columns, {"paths": paths, "reward": r, **gamma}),
        (ictd.Model, {"weights": weights, "depth": 2, "scaled": False, **gamma}),
        (ictd.batch_td, {"context": context, **gamma, "step_size": 0.5, "depth": 2}),
        (ictd.lstd_lambda, {**steps, "decay": 0.5, "ridge": 0.5, "features": features}),
        (ictd.certainty_equivalence, {"context": context, **gamma, "pseudo_counts": np.ones((3, 3))}),
        (ictd.GramAttention, {"dimension": 3, "depth": 2, "looped": False, "seeds": 1, "initial_gain": 0.5}),
        (ictd.LinearTransformer(weights, 2).forward, {"prompt": prompt, "queries": 3}),
        (
            ictd.pretrain,
            {"tasks": loop, "depth": 2, **gamma, "updates": 3, "seeds": 1, "learning_rate": 0.5, "batch_size": 4,
             "rollout_steps": 2, "initial_gain": 0.25, "clip": 0.5},
        ),
        (ictd.pretrain_history, training),
        (
            ictd.evaluate,
            {"model": ictd.Model(weights, 2, 0.5), "tasks": loop, "prompts": ictd.EnumeratedPrompts(), "grouped": True,
             "size": 2, "seed": 1},
        ),
    ]  # fmt: skip
    return {function.__name__: (function, valid) for function, valid in calls}


def invalid_values(name: str, argument: str, value, optional: bool) -> list:
    """Invalid values for an argument."""
    kind = next(kind for kind in WRONG if isinstance(value, kind))
    values = [*WRONG[kind], b"", {"a": 1}, 1j, *OUT_OF_RANGE.get((name, argument), OUT_OF_RANGE.get(argument, []))]
    values += [None] * (not optional)
    if kind is not np.ndarray:
        return values
    values += [value + 0j, value.astype(str), value > 0, np.ma.masked_array(value, mask=value == value.flat[0])]
    values += [np.where(value == value.flat[0], other, value.astype(object)) for other in (None, "a")]
    values += [value[..., :0], [[1], [1, 2]], np.zeros(value.shape, "datetime64[D]")]
    values += [] if (name, argument) in ANY_LENGTH else [value[..., :-1]]
    values += [value * 1.5] if value.dtype.kind in "iu" else []
    for number in () if name == "Weights" else (np.nan, np.inf, -np.inf):  # Those of weights have a meaning.
        values.append(value.astype(float))
        values[-1].flat[-1] = number
    return values


def forms(value) -> list:
    """All accepted forms of a valid value."""
    if isinstance(value, bool | int | float):
        single = [np.float32(value)] if isinstance(value, float) else []
        return [np.asarray(value)[()], np.asarray(value), torch.tensor(value), *single]
    if isinstance(value, str):
        return [np.asarray(value)]
    if isinstance(value, np.ndarray):
        swapped = value.astype(value.dtype.newbyteorder(">"))
        arrays = [value.tolist(), swapped, value.copy(order="F"), value[..., ::-1][..., ::-1]]
        return [*arrays, np.ma.masked_array(value), torch.from_numpy(value.copy())]
    return []


def numbers_of(result) -> list:
    """All numbers of a result, in their order."""
    if isinstance(result, torch.nn.Module):
        result = list(result.parameters())
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


def test_invalid_arguments_are_refused_in_one_sentence(calls):
    for name, (function, valid) in calls.items():
        parameters = inspect.signature(function).parameters
        for argument, value in valid.items():
            optional = argument in parameters and parameters[argument].default is None
            for wrong in invalid_values(name, argument, value, optional):
                try:
                    function(**{**valid, argument: wrong})
                    message = "accepted"
                except ValueError as error:
                    message = str(error)
                one = "\n" not in message and message.endswith(".") and any(word in message for word in valid)
                assert one, (name, argument, wrong, message)


@pytest.mark.filterwarnings("error", "ignore:zero has a smaller MSVE")
def test_valid_arguments_are_taken_in_all_their_forms(calls):
    for name, (function, valid) in calls.items():
        expected = numbers_of(function(**copy.deepcopy(valid)))
        for argument, value in valid.items():
            for form in forms(value):
                found = numbers_of(function(**copy.deepcopy(valid | {argument: form})))
                np.testing.assert_allclose(found, expected, ROUNDING, ROUNDING, err_msg=f"{name}: {argument}")


def test_every_public_function_is_validated():
    """Other names are modules' own tables, and classes whose methods are validated."""
    others = {"ENVIRONMENTS", "EnumeratedPrompts", "GramAttention", "LinearTransformer", "TaskDistribution"}
    others |= {"register_environment", "register_algorithm", "save_module", "load_module"}
    assert ictd.__all__ == dir(ictd) == sorted(ictd.__all__)
    checked = {name for name in ictd.__all__ if {"__wrapped__", "_validators"} & {*dir(getattr(ictd, name))}}
    assert checked == {*ictd.__all__} - others


@pytest.mark.parametrize(
    ("row", "kind", "episodic", "words"),
    [
        ([0.25, 0.749], "f8", True, "a row of transition sums to 0.999; the rest counts as the end of"),
        ([0.25, 0.751], "f8", True, "rows of transition .* divided by their"),
        ([0.25, 0.749], "f8", False, "rows of transition .* divided by their"),
        ([0.25, 0.75 - 6e-7], ">f4", True, "a row of transition sums"),
        ([0.25, 0.75 - 1e-7], "f4", True, "no warning"),
        # Rounding of six entries to three digits explains 0.003.
        ([0.2, 0.2, 0.2, 0.2, 0.099, 0.099], "f8", True, "a row of transition sums"),
        ([0.3, 0.698], "f8", True, "no warning"),
        ([0.29985, 0.69965], "f8", True, "no warning"),
        ([0.25, 0.74951234], "f8", True, "no warning"),  # Only one of the entries has three digits.
        ([1 - 3e-7, 0], "f8", True, "a row of transition sums"),
    ],
)
def test_a_row_that_nearly_sums_to_one_is_rounded_or_has_an_end(row, kind, episodic, words):
    rows = np.array([row, [1] + [0] * (len(row) - 1)], kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = probabilities("k, n", may_end=True)("transition", rows, {"episodic": episodic})
    total = rows[0].sum(dtype=float) if "divided" in words or kind == "f4" else 1
    np.testing.assert_allclose(found, rows.astype(float) / [[total], [1]], rtol=ROUNDING)
    assert re.match(words, "".join(str(warning.message) for warning in caught) or "no warning")


def test_tables_with_labels_in_another_order_are_refused():
    table, half = pandas.DataFrame(np.eye(2) / 2, ["a", "b"], ["a", "b"]), pandas.Series([0.5, 0.5], ["a", "b"])
    valid = {"transition": table, "reward": half, "behaviour": half, "start": half}
    assert len(ictd.Tasks(**valid, episodic=True)) == 1
    message = r" has the labels \['.', '.'\] after \['.', '.'\]; order both alike, or give arrays without labels"
    for name, value in [*valid.items(), ("transition", [table, table.iloc[::-1, ::-1]])]:
        with pytest.raises(ValueError, match=message):
            ictd.Tasks(**valid | {name: value[::-1]}, episodic=True)
    states, rewards, following = (pandas.Series(column) for column in ([0, 1, 0, 1], [1.0, 2, 3, 0], [1, 0, 1, 1]))
    ictd.Context.from_transitions(states, rewards, following, n=2)
    with pytest.raises(ValueError, match=r"rewards has the labels .*; order both alike"):
        ictd.Context.from_transitions(states, rewards[::-1], following, n=2)


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
