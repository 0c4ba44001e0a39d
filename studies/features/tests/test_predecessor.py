"""The predecessor's setting: tasks, prompts, engine and metrics beside slow versions on whole prompts."""

import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

from ictd.literal import linear_attention
from ictd.mrp import value_function
from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from studies.features import predecessor, predecessor_tables
from studies.features.predecessor_engine import Engine, StepSize, implicit_weights
from studies.features.predecessor_grid import check, variants
from studies.features.predecessor_pretrain import Setting

torch.set_num_threads(1)
# Kernels are compiled for d features: d is that of the public code, whose cases are compared too.
STATES, DIMENSION, LENGTH, BATCH, GAMMA = 6, 4, 7, 5, 0.9
HEIGHT = 2 * DIMENSION + 1


def some_tasks(size=8, one_hot=False, seed=0):
    dimension = STATES if one_hot else DIMENSION
    return predecessor.draw_tasks(size, STATES, dimension, one_hot, np.random.default_rng(seed))


def some_batches(prompts, size=8, batches=3):
    tasks, start = some_tasks(size)
    rng = np.random.default_rng(1)
    if prompts == "sampled":
        paths = predecessor.draw_paths(tasks, start, batches, LENGTH + BATCH + 1, rng)
        return predecessor.sampled_batches(tasks, paths, LENGTH, GAMMA), LENGTH
    return predecessor.enumerated_batches(
        tasks, predecessor.draw_paths(tasks, start, batches, BATCH, rng), GAMMA
    ), STATES


def literal_estimate(P, Q, rows, query, depth):
    """TF_L on one whole prompt, whose columns are rows (m, D) and the query (d,)."""
    column = torch.cat([query, torch.zeros(len(P[0]) - len(query), dtype=query.dtype)])
    Z = torch.cat([rows, column[None]]).T
    for layer in range(depth):
        own = layer % len(P)
        Z = linear_attention(Z, P[own] / len(rows), Q[own], len(rows))
    return -Z[-1, -1]


def literal_updates(P, Q, batches, length, depth, learning_rate, decay, clip, trained):
    """P and Q (2, K, D, D) after updates by torch's Adam on whole prompts."""
    parameters = [torch.nn.Parameter(torch.tensor(matrix)) for matrix in (P, Q)]
    masks = [torch.tensor(np.broadcast_to(mask, P.shape).copy()) for mask in trained]
    optimiser = torch.optim.Adam(parameters, lr=learning_rate)
    arrays = (torch.tensor(array) for array in (batches.columns, batches.queries, batches.rewards))
    for rows, queries, rewards in zip(*arrays, strict=True):
        sliding = len(rows) > length
        values = [
            literal_estimate(*parameters, rows[t : t + length] if sliding else rows, query, depth)
            for t, query in enumerate(queries)
        ]
        errors = [
            reward + GAMMA * following.detach() - value
            for reward, value, following in zip(rewards, values, values[1:], strict=False)
        ]
        optimiser.zero_grad()
        (torch.stack(errors) ** 2).mean().backward()
        for parameter, mask in zip(parameters, masks, strict=True):
            parameter.grad = (parameter.grad + decay * parameter.detach()) * mask
        if clip:
            norm = sum((parameter.grad**2).sum() for parameter in parameters).sqrt()
            for parameter in parameters:
                parameter.grad *= min(1, clip / norm)
        optimiser.step()
    return np.stack([parameter.detach().numpy() for parameter in parameters])


@pytest.mark.parametrize("prompts", ["sampled", "enumerated"])
@pytest.mark.parametrize(("depth", "layers", "clip"), [(1, 1, 0), (3, 1, 0), (3, 3, 0), (4, 1, 0.01), (6, 6, 0.01)])
def test_updates_are_those_of_automatic_differentiation_on_whole_prompts(prompts, depth, layers, clip):
    batches, length = some_batches(prompts)
    rng = np.random.default_rng(2)
    P, Q = predecessor.initial_matrices(DIMENSION, layers, 1.0, rng)
    trained = rng.integers(0, 2, (2, 1, HEIGHT, HEIGHT)).astype(float)
    engine = Engine(P, Q, depth, length, GAMMA, 0.01, 0.1, clip, trained)
    assert engine.train(batches.columns, batches.queries, batches.rewards) == len(batches.rewards)
    slow = literal_updates(P, Q, batches, length, depth, 0.01, 0.1, clip, trained)
    np.testing.assert_allclose(engine.matrices(), slow, atol=ENGINES)
    assert np.abs(engine.matrices() - np.stack([P, Q])).max() > 0.01


@pytest.mark.parametrize(("depth", "layers"), [(1, 1), (4, 1), (4, 4)])
def test_implicit_weights_give_the_estimates_of_whole_prompts(depth, layers):
    rng = np.random.default_rng(3)
    P, Q = predecessor.initial_matrices(DIMENSION, layers, 1.0, rng)
    rows, queries = rng.uniform(-1, 1, (5, LENGTH, HEIGHT)), rng.uniform(-1, 1, (5, DIMENSION))
    w = implicit_weights(P, Q, rows.mT @ rows / LENGTH, depth)
    for i in range(5):
        arguments = (torch.tensor(array) for array in (P, Q, rows[i], queries[i]))
        assert w[i] @ queries[i] == pytest.approx(literal_estimate(*arguments, depth).item(), abs=ROUNDING)


@pytest.mark.parametrize("prompts", ["sampled", "enumerated"])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_step_size_of_batch_td_is_trained_as_the_corner_of_p(prompts, depth):
    batches, length = some_batches(prompts)
    P, Q = predecessor.td_matrices(DIMENSION)
    corner = np.zeros((2, 1, HEIGHT, HEIGHT))
    corner[0, :, -1, -1] = 1
    engine = Engine(P[None], Q[None], depth, length, GAMMA, 0.01, 0.1, trained=corner)
    step_size = StepSize(DIMENSION, depth, length, GAMMA, 0.01, 0.1)
    for part in (slice(10), slice(10, None)):
        arguments = batches.columns[part], batches.queries[part], batches.rewards[part]
        engine.train(*arguments)
        step_size.train(*arguments)
    assert step_size.value() == pytest.approx(engine.matrices()[0, 0, -1, -1], abs=ENGINES)
    assert step_size.value() != pytest.approx(1, abs=0.01)


def test_an_engine_stops_where_estimates_are_not_finite():
    batches, length = some_batches("sampled")
    P, Q = predecessor.initial_matrices(DIMENSION, 1, 1.0, np.random.default_rng(2))
    batches.rewards[4] = np.nan
    engine = Engine(P, Q, 3, length, GAMMA, 0.01)
    assert engine.train(batches.columns, batches.queries, batches.rewards) == 5


def test_contexts_slide_with_their_queries():
    tasks, start = some_tasks(2)
    paths = predecessor.draw_paths(tasks, start, 3, LENGTH + BATCH + 1, np.random.default_rng(1))
    batches = predecessor.sampled_batches(tasks, paths, LENGTH, GAMMA)
    assert batches.columns.shape == (6, LENGTH + BATCH, HEIGHT)
    for i, k in np.ndindex(2, 3):
        phi, path = tasks.features[i], paths[i, k]
        update = 3 * i + k
        for t in range(BATCH + 1):
            np.testing.assert_array_equal(batches.queries[update, t], phi[path[t + LENGTH + 1]])
            if t < BATCH:
                assert batches.rewards[update, t] == tasks.reward[i, path[t + LENGTH + 1]]
            for j in range(t, t + LENGTH):
                column = [*phi[path[j]], *(GAMMA * phi[path[j + 1]]), tasks.reward[i, path[j]]]
                np.testing.assert_allclose(batches.columns[update, j], column, atol=ROUNDING)


def test_enumerated_batches_have_one_context_and_the_states_of_a_trajectory():
    tasks, start = some_tasks(2)
    paths = predecessor.draw_paths(tasks, start, 3, BATCH, np.random.default_rng(1))
    batches = predecessor.enumerated_batches(tasks, paths, GAMMA)
    for i, k in np.ndindex(2, 3):
        phi, update = tasks.features[i], 3 * i + k
        columns = np.hstack([phi, GAMMA * tasks.transition[i] @ phi, tasks.reward[i][:, None]])
        np.testing.assert_allclose(batches.columns[update], columns, atol=ROUNDING)
        np.testing.assert_array_equal(batches.queries[update], phi[paths[i, k]])
        np.testing.assert_array_equal(batches.rewards[update], tasks.reward[i][paths[i, k, :-1]])


@pytest.mark.parametrize("one_hot", [False, True])
def test_tasks_are_boyans_chains_with_features(one_hot):
    tasks, start = some_tasks(500, one_hot)
    for s in range(STATES - 2):
        assert {*np.nonzero(tasks.transition[0, s])[0]} == {s + 1, s + 2}
    assert (tasks.transition[:, -2, -1] == 1).all() and (tasks.transition[:, -1] > 0).all()
    first = tasks.transition[:, 0, 1]
    assert 0.01 <= first.min() < 0.05 and 0.95 < first.max() <= 0.99
    np.testing.assert_allclose(start.sum(axis=1), 1)
    assert np.abs(tasks.reward).max() <= 1
    if one_hot:
        np.testing.assert_array_equal(tasks.features[7], np.eye(STATES))
    else:
        assert tasks.features.shape == (500, STATES, DIMENSION)
        assert tasks.features.min() == pytest.approx(-1, abs=0.01) and not np.array_equal(*tasks.features[:2])


def test_trajectories_follow_their_chains():
    tasks, start = some_tasks(3)
    paths = predecessor.draw_paths(tasks, start, 2000, 4, np.random.default_rng(1))
    for i in range(3):
        first = np.bincount(paths[i, :, 0], minlength=STATES) / 2000
        np.testing.assert_allclose(first, start[i], atol=0.05)
        reached = np.bincount(paths[i, :, 4], minlength=STATES) / 2000
        np.testing.assert_allclose(reached, start[i] @ np.linalg.matrix_power(tasks.transition[i], 4), atol=0.05)
        assert (tasks.transition[i][paths[i, :, :-1], paths[i, :, 1:]] > 0).all()


def test_metrics_are_those_of_estimates_and_of_gradients():
    tasks, _ = some_tasks(4)
    rng = np.random.default_rng(5)
    w, td = rng.standard_normal((2, 4, DIMENSION))
    found, errors = predecessor.metrics(w, td, tasks), predecessor.value_error(w, tasks, GAMMA)
    for i in range(4):
        estimates, td_estimates = tasks.features[i] @ w[i], tasks.features[i] @ td[i]
        difference = tasks.stationary[i] @ (estimates - td_estimates) ** 2
        assert found["value_difference"][i] == pytest.approx(difference, abs=ROUNDING)
        assert found["similarity"][i] == pytest.approx(w[i] @ td[i] / np.linalg.norm(w[i]) / np.linalg.norm(td[i]))
        value = value_function(tasks.transition[i], tasks.reward[i], GAMMA)
        assert errors[i] == pytest.approx(tasks.stationary[i] @ (estimates - value) ** 2)


def test_signs_are_those_of_a_positive_corner():
    matrices = np.random.default_rng(0).standard_normal((5, 2, 3, HEIGHT, HEIGHT))
    aligned = predecessor.aligned(matrices)
    assert (aligned[:, 0, :, -1, -1] > 0).all()
    for i, layer in np.ndindex(5, 3):
        sign = np.sign(matrices[i, 0, layer, -1, -1])
        np.testing.assert_array_equal(aligned[i, :, layer], sign * matrices[i, :, layer])


def settings(**given):
    config = load_config({"features": {"predecessor": given}}, PROJECT)
    check(config)
    return variants(config)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variants": [{"name": "a"}, {"name": "b", "features": "one_hot"}]}, "gives 'b' one-hot features"),
        ({"variants": [{"name": "a"}, {"name": "b", "layers": "separate", "trained": "theta"}]}, "gives 'b' separate"),
        ({"variants": [{"name": "a"}, {"name": "b", "clip": -1}]}, "clip"),
        ({"main": {"prompts": "other"}}, "choose from sampled, enumerated"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        settings(**given)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_other_variants_change_only_what_they_name():
    by_name = settings(variants=[{"name": "first"}, {"name": "deep", "depth": 7}])
    assert by_name["deep"] == by_name["first"] | {"depth": 7}


def test_runs_are_measured_on_the_way_and_stop_where_they_diverge():
    variant = settings(main={"tasks": 6, "states": STATES, "dimension": DIMENSION})["main"]
    setting = Setting(variant, LENGTH, BATCH, GAMMA, 0.001)
    matrices, diverged_at, measures = setting.pretrain(0, np.array([2, 6]), 4)
    assert diverged_at == 0 and np.isfinite(matrices).all() and np.isfinite(measures).all()
    # Fewer snapshots change nothing.
    again, _, again_measures = setting.pretrain(0, np.array([6]), 4)
    np.testing.assert_array_equal(again[-1], matrices[-1])
    np.testing.assert_array_equal(again_measures[-1], measures[-1])
    wild = Setting(variant | {"gain": 1e4, "depth": 30}, LENGTH, BATCH, GAMMA, 0.001)
    matrices, diverged_at, measures = wild.pretrain(0, np.array([2, 6]), 4)
    assert diverged_at == 1 and np.isnan(matrices).all() and np.isnan(measures).all()


def test_theta_trains_u_and_a_only():
    variant = settings(main={"tasks": 6}, variants=[{"name": "main"}, {"name": "theta", "trained": "theta"}])["theta"]
    setting = Setting(variant, LENGTH, BATCH, GAMMA, 0.001)
    matrices, _, _ = setting.pretrain(0, np.array([6]), 4)
    P, Q = matrices[-1, :, 0]
    assert P[-1, -1] == 1 and (P[:-1] == 0).all() and (Q[-1] == 0).all() and (Q[:, -1] == 0).all()
    assert (P[-1] != 0).all() and (Q[:-1, :-1] != 0).all()


def test_a_summary_leaves_out_runs_that_diverged():
    td = predecessor.td_matrices(DIMENSION)[:, None]
    other = np.zeros_like(td)
    other[1, 0, 0, 0] = 1
    matrices = np.stack([td, td, td + other, np.full_like(td, np.nan)])
    last = {name: np.array([1.0, 2.0, 3.0, np.nan]) for name in ("cosine_Q", "share_of_td", "similarity")}
    last |= {"value_difference": np.array([1.0, 2.0, 3.0, np.nan]), "learned": np.array([True, True, False, False])}
    last["learned_td"] = np.array([True, False, False, False])
    found = predecessor_tables.summarise(matrices, last)
    assert (found["seeds"], found["diverged"], found["learned"]) == (4, 1, 2)
    assert found["learned_td_share"] == 0.25 and found["learned_share"] == 0.5 and found["share_of_td"] == 2
    mean = td[1, 0] + other[1, 0] / 3
    cosine = (mean * td[1, 0]).sum() / np.linalg.norm(mean) / np.linalg.norm(td[1, 0])
    assert found["mean_cosine_Q"] == pytest.approx(cosine) and found["mean_cosine_P"] == pytest.approx(1)
    assert found["mean_cosine_Q_low"] <= found["mean_cosine_Q"] <= found["mean_cosine_Q_high"]
