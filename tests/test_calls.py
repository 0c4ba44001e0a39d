"""What the library's functions do with arguments of all kinds."""

import inspect
import random
from dataclasses import replace
from types import FunctionType

import numpy as np
import pytest
import torch
from fuzz import calls
from naive import larger_weights
from tolerances import ROUNDING

import ictd
from ictd.baselines import lstd
from ictd.checks import LARGEST_DISCOUNT
from ictd.gram import Gram, estimates
from ictd.mrp import msve
from ictd.prompts import Context
from ictd.unseen_tasks import draw_unseen_tasks


def test_calls_are_answered(tmp_path):
    outcomes = {}
    for number in range(400):
        tried, outcome = calls.case(random.Random(number), tmp_path)
        outcomes.setdefault(outcome, []).append(tried)
    assert outcomes.keys() == {"taken", "refused"}, {what: tried for what, tried in outcomes.items() if len(what) > 7}
    assert min(map(len, outcomes.values())) > 150


def test_every_public_function_is_among_the_calls():
    public = set()
    for module in calls.MODULES:
        for name, one in vars(module).items():
            own = getattr(one, "__module__", None) == module.__name__ and not name.startswith("_")
            if own and (inspect.isclass(one) or isinstance(one, FunctionType)) and inspect.signature(one).parameters:
                public.add(one)
    # An exception, which its own code makes.
    assert {one.__name__ for one in public - {function for function, _, _ in calls.CALLS.values()}} == {"Divergence"}


def data():
    return draw_unseen_tasks(0, 4, 4, 6, 0.9, "boyan")


def test_tasks_in_float32_are_those_in_float64():
    tasks = data().tasks
    narrow = ictd.Tasks(*(array.astype(np.float32) for array in vars(tasks).values()))
    assert np.abs(narrow.transition.sum(axis=-1) - 1).max() < ROUNDING
    np.testing.assert_allclose(narrow.transition, tasks.transition, atol=1e-7)
    with pytest.raises(ValueError, match="does not sum to one"):
        ictd.Tasks(tasks.transition.astype(np.float32).astype(float), tasks.reward)


def test_objects_own_what_they_have_checked():
    transition, reward = np.full((1, 2, 2), 0.5), np.zeros((1, 2))
    tasks = ictd.Tasks(transition, reward)
    transition[:], reward[:] = -1, np.nan
    assert (tasks.transition == 0.5).all() and (tasks.reward == 0).all()


def test_slices_of_tasks_have_whole_numbers_for_ends():
    tasks = data().tasks
    assert len(tasks[np.int64(1) : 3]) == 2 and len(tasks[::2]) == 2
    for index in (slice("a", None), slice(0.5, None), 0, None):
        with pytest.raises(ValueError, match="is no slice of tasks; write"):
            tasks[index]


def test_an_index_takes_leading_axes_only():
    square = ictd.Weights(np.zeros((4, 4)), np.arange(64.0).reshape(4, 4, 4))
    np.testing.assert_array_equal(square[1].A, square.A[1])
    np.testing.assert_array_equal(square[:, None].A, square.A[:, None])
    with pytest.raises(IndexError):
        square[..., 0, 0]
    np.testing.assert_array_equal(square[..., 0].A, square.A[0])
    gram = Gram(np.arange(1, 5), square.A, square.u)
    assert gram[2].length == 3 and (gram[2].M == square.A[2]).all()


def test_contexts_of_several_lengths_are_those_of_each():
    """Where there are as many contexts as states, a length for each of them once went to the states."""
    unseen, weights = data(), larger_weights(4)
    one = unseen.context(3)
    several = replace(one, length=np.full(4, 3))
    np.testing.assert_array_equal(lstd(several, 0.9, 0.1), lstd(one, 0.9, 0.1))
    varied = replace(one, length=np.arange(1, 5))
    for i in range(4):
        alone = Context(i + 1, *(array[i] for array in list(vars(one).values())[1:]))
        np.testing.assert_allclose(lstd(varied, 0.9, 0.1)[i], lstd(alone, 0.9, 0.1), rtol=ROUNDING)
    M, c = np.random.default_rng(0).normal(size=(8, 8, 8)), np.ones((8, 8))
    found = estimates(weights[None], Gram(np.arange(1, 9), M, c), 3, scaled=False)
    for i in range(8):
        alone = estimates(weights[None], Gram(i + 1, M[[i]], c[[i]]), 3, scaled=False)
        np.testing.assert_allclose(found[:, i], alone[:, 0], rtol=ROUNDING)


def test_discounts_too_near_to_one():
    tasks = data().tasks
    nearest = ictd.value_function(tasks.transition, tasks.reward, LARGEST_DISCOUNT)
    # In the limit all values are the mean reward over 1 - gamma; apart, states differ by less than rewards do times n.
    mean = (tasks.stationary * tasks.reward).sum(axis=-1) / (1 - LARGEST_DISCOUNT)
    assert np.abs(nearest - mean[:, None]).max() < 10
    for discount in (np.nextafter(LARGEST_DISCOUNT, 1), 0.9999999999999999):
        with pytest.raises(ValueError, match="rounding outweighs rewards"):
            ictd.value_function(tasks.transition, tasks.reward, discount)


@pytest.mark.parametrize("discount", [0.9, 0.0])
def test_queries_are_counted(discount):
    tasks, model = data().tasks, ictd.LinearTransformer(larger_weights(4), 3)
    context = ictd.enumerated_context(tasks.transition, tasks.reward, discount)
    joint, alone = ictd.joint_prompt(context), ictd.prompts_of(context)
    found = model(joint, queries=4).detach().numpy()
    np.testing.assert_allclose(model(alone, queries=1).detach().numpy()[..., 0], found, atol=ROUNDING)
    np.testing.assert_array_equal(model(joint.tolist(), queries=4).detach().numpy(), found)
    wrong = [(joint, None), (joint, 0), (joint, -1), (joint, 5), (joint, True), (context, 1)]
    for prompt, queries in wrong + [(joint, 3)] * (discount > 0) + [(alone, None)] * (discount == 0):
        with pytest.raises(ValueError, match="quer"):
            model(prompt, queries)
    for prompt in (joint + 0j, torch.from_numpy(joint + 0j), np.where(joint == 1, np.nan, joint), joint.astype(str)):
        with pytest.raises(ValueError, match="prompt"):
            model(prompt, queries=4)
    single = model(torch.from_numpy(joint).float(), queries=4).detach().numpy()
    np.testing.assert_allclose(single, found, atol=1e-4 * np.abs(found).max())


def test_whole_numbers_do_not_overflow():
    assert msve([0.5, 0.5], np.array([2**31, 0]), np.array([-(2**31), 0])) == 2.0**63
    small = np.array([200, 0], np.uint8)
    assert msve([0.5, 0.5], small, small + np.uint8(50)) == (50**2 + 50**2) / 2
