"""The Transformer on prompts, the baselines beside it, and the evaluation."""

from dataclasses import replace

import naive
import numpy as np
import pytest
import torch
from naive import larger_weights
from tolerances import ROUNDING

import ictd
from ictd.baselines import batch_td, lstd
from ictd.evaluation import baseline_msve, batch_td_msve, draw_unseen_tasks, tune_step_size, weights_msve
from ictd.literal import literal_estimates
from ictd.prompt import ENUMERATED, Context, Gram
from ictd.transformer import estimates

STATES, DISCOUNT, LENGTHS = 4, 0.85, [1, 6, 25]


@pytest.fixture(scope="module")
def data():
    return draw_unseen_tasks(7, STATES, 5, max(LENGTHS), DISCOUNT, "boyan")


def test_prompts_equal_those_written_column_by_column(data):
    reward, transition = data.tasks.reward, data.tasks.transition
    sampled = ictd.prompts_of(ictd.sampled_columns(data.paths, reward, DISCOUNT))
    enumerated = ictd.prompts_of(ictd.enumerated_columns(transition, reward, DISCOUNT))
    for i in range(5):
        for s in range(STATES):
            expected = naive.sampled_prompt(data.paths[i], reward[i], DISCOUNT, s)
            np.testing.assert_array_equal(sampled[i, s], expected)
            expected = naive.enumerated_prompt(transition[i], reward[i], DISCOUNT, s)
            np.testing.assert_array_equal(enumerated[i, s], expected)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("depth", [1, 9])
def test_transformer_equals_naive_layers(data, depth, scaled):
    weights = larger_weights(STATES)
    model = ictd.LinearTransformer(weights, depth, scaled)
    context = ictd.sampled_columns(data.paths[:, :7], data.tasks.reward, DISCOUNT)
    one_by_one = model(torch.from_numpy(ictd.prompts_of(context))).detach().numpy()
    jointly = model(torch.from_numpy(ictd.joint_prompt(context)), queries=STATES).detach().numpy()
    for i in range(5):
        for s in range(STATES):
            prompt = naive.sampled_prompt(data.paths[i, :7], data.tasks.reward[i], DISCOUNT, s)
            expected = naive.transformer(weights, depth, prompt, scaled)
            assert abs(one_by_one[i, s] - expected) <= ROUNDING * max(1, abs(expected))
            assert abs(jointly[i, s] - expected) <= ROUNDING * max(1, abs(expected))


def test_transformer_takes_weights_with_leading_axes(data):
    several = [larger_weights(STATES, seed) for seed in range(3)]
    stacked = ictd.Weights(np.stack([w.u for w in several]), np.stack([w.A for w in several]))
    prompts = torch.from_numpy(ictd.prompts_of(ictd.sampled_columns(data.paths[0], data.tasks.reward[0], DISCOUNT)))
    together = ictd.LinearTransformer(stacked[:, None], 5)(prompts).detach().numpy()
    for k, weights in enumerate(several):
        alone = ictd.LinearTransformer(weights, 5)(prompts).detach().numpy()
        np.testing.assert_allclose(together[k], alone, atol=ROUNDING)


@pytest.mark.parametrize("depth", [1, 40])
def test_theta_td_is_batch_td(data, depth):
    theta = ictd.theta_td(STATES)
    step_size = 1.3
    model = ictd.LinearTransformer(ictd.Weights(theta.u, step_size * theta.A), depth)
    context = ictd.sampled_columns(data.paths, data.tasks.reward, DISCOUNT)
    estimates = model(torch.from_numpy(ictd.joint_prompt(context)), queries=STATES).detach().numpy()
    for i in range(5):
        expected = naive.batch_td(data.paths[i], data.tasks.reward[i], DISCOUNT, step_size, depth)
        np.testing.assert_allclose(estimates[i], expected, atol=ROUNDING)
        fast = batch_td(data.context(max(LENGTHS)), DISCOUNT, step_size, depth)
        np.testing.assert_allclose(fast[i], expected, atol=ROUNDING)


def contexts_of(data):
    return [data.context(length) for length in LENGTHS]


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_lstd_equals_naive(data, ridge):
    for length in LENGTHS:
        fast = lstd(data.context(length), DISCOUNT, ridge)
        for i in range(5):
            expected = naive.lstd(data.paths[i, : length + 1], data.tasks.reward[i], DISCOUNT, ridge)
            np.testing.assert_allclose(fast[i], expected, atol=ROUNDING * 1000)


def test_msve_of_methods_by_direct_formulas(data):
    weights, depth = larger_weights(STATES), 6
    model = ictd.LinearTransformer(weights, depth)
    (found,) = weights_msve(ictd.Weights(weights.u[None], weights.A[None]), data, [ENUMERATED, *LENGTHS], depth)
    whole = [data.error(literal_estimates(model, data.columns(length))) for length in (ENUMERATED, *LENGTHS)]
    np.testing.assert_allclose(found, whole, rtol=1e-9)
    enumerated, *sampled = found
    beside = baseline_msve(data, depth, contexts_of(data), 0.7, 0.1)
    for j, length in enumerate(LENGTHS):
        for i in range(5):
            path, reward = data.paths[i, : length + 1], data.tasks.reward[i]
            mu, v = data.tasks.stationary[i], data.value[i]
            prompts = [naive.sampled_prompt(path, reward, DISCOUNT, s) for s in range(STATES)]
            values = {
                "sampled": [naive.transformer(weights, depth, prompt) for prompt in prompts],
                "batch_td": naive.batch_td(path, reward, DISCOUNT, 0.7, depth),
                "lstd": naive.lstd(path, reward, DISCOUNT, 0.1),
                "zero": np.zeros(STATES),
            }
            expected = {name: (mu * (v - np.array(value)) ** 2).sum() for name, value in values.items()}
            np.testing.assert_allclose(sampled[j][i], expected["sampled"], rtol=1e-9)
            np.testing.assert_allclose(beside["theta_td"][j, i], expected["batch_td"], rtol=1e-9)
            for name in ("batch_td", "lstd", "zero"):
                np.testing.assert_allclose(beside[name][j, i], expected[name], rtol=1e-9)
    prompts = [
        naive.enumerated_prompt(data.tasks.transition[0], data.tasks.reward[0], DISCOUNT, s) for s in range(STATES)
    ]
    values = np.array([naive.transformer(weights, depth, prompt) for prompt in prompts])
    expected = (data.tasks.stationary[0] * (data.value[0] - values) ** 2).sum()
    np.testing.assert_allclose(enumerated[0], expected, rtol=1e-9)


def test_theta_td_is_batch_td_without_the_scaled_attention_too(data):
    beside = baseline_msve(data, 4, contexts_of(data), 0.03, 0.1, scaled=False)
    np.testing.assert_allclose(beside["theta_td"], beside["batch_td"], rtol=1e-9)
    values = naive.batch_td(data.paths[2, :7], data.tasks.reward[2], DISCOUNT, 0.03 * 6, 4)
    expected = (data.tasks.stationary[2] * (data.value[2] - values) ** 2).sum()
    np.testing.assert_allclose(beside["batch_td"][1, 2], expected, rtol=1e-9)


def test_step_size_is_the_best_of_those_offered(data):
    sizes = np.array([0.1, 1.0, 30.0])
    contexts = contexts_of(data)
    scores = tune_step_size(data, 20, contexts, sizes)
    expected = [batch_td_msve(data, 20, contexts, np.array([size])).mean() for size in sizes]
    np.testing.assert_allclose(scores, expected)
    assert np.argmin(scores) == 1
    assert tune_step_size(data, 3000, contexts, np.array([30.0]))[0] == np.inf


def test_all_models_of_a_seed_see_the_same_tasks(data):
    again = draw_unseen_tasks(7, STATES, 5, max(LENGTHS), DISCOUNT, "boyan")
    assert again.paths.tobytes() == data.paths.tobytes()
    other = draw_unseen_tasks(8, STATES, 5, max(LENGTHS), DISCOUNT, "boyan")
    assert (other.tasks.reward != data.tasks.reward).all()
    tuning = draw_unseen_tasks(7, STATES, 5, max(LENGTHS), DISCOUNT, "boyan", "tuning")
    assert (tuning.tasks.reward != data.tasks.reward).all()


def test_bad_prompts_are_refused():
    model = ictd.LinearTransformer(ictd.theta_td(3), 2)
    with pytest.raises(ValueError, match=r"prompt has shape \(5, 4\)"):
        model(torch.zeros(5, 4))
    with pytest.raises(ValueError, match="m above 0"):
        model(torch.zeros(7, 3), queries=3)
    for row in range(3, 7):
        query = np.eye(7, 1) + np.eye(7)[:, [row]]
        with pytest.raises(ValueError, match="does not end in just 1 columns"):
            model(torch.from_numpy(np.concatenate([np.ones((7, 3)), query], axis=1)))
    with pytest.raises(ValueError, match="depth is 0"):
        ictd.LinearTransformer(ictd.theta_td(3), 0)
    with pytest.raises(ValueError, match="ridge is 0"):
        lstd(Context.of_paths(np.array([0, 1]), np.zeros(2)), 0.9, 0)


def test_an_index_of_weights_takes_leading_axes_only():
    square = ictd.Weights(np.zeros((4, 4)), np.arange(64.0).reshape(4, 4, 4))
    np.testing.assert_array_equal(square[1].A, square.A[1])
    np.testing.assert_array_equal(square[:, None].A, square.A[:, None])
    np.testing.assert_array_equal(square[..., 0].A, square.A[0])
    with pytest.raises(IndexError):
        square[..., 0, 0]
    several = Gram(np.arange(1, 5), square.A, square.u)
    assert several[2].length == 3 and (several[2].M == square.A[2]).all()


def test_contexts_of_several_lengths_are_those_of_each():
    """With as many contexts as states, where lengths could be taken for those of states."""
    unseen, weights = draw_unseen_tasks(0, 4, 4, 6, 0.9, "boyan"), larger_weights(4)
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
    with pytest.raises(ValueError, match="length is 7; give at most 6"):
        unseen.context(7)


@pytest.mark.parametrize("discount", [0.9, 0.0])
def test_queries_are_counted(discount):
    tasks, model = draw_unseen_tasks(0, 4, 4, 6, 0.9, "boyan").tasks, ictd.LinearTransformer(larger_weights(4), 3)
    context = ictd.enumerated_columns(tasks.transition, tasks.reward, discount)
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
