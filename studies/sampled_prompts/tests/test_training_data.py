"""Training data with sampled and infinitely large batches, and traces in known preconditioners."""

import numpy as np
import pytest
import torch
from naive import larger_weights, sampled_material
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.engine import Engine
from ictd.transformer import preconditioned_td
from studies.sampled_prompts.traces import trace_measures
from studies.sampled_prompts.training_data import expected_batches, training_data

GAMMA = 0.9


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_expected_batches_weigh_errors_by_the_stationary_distribution(algo):
    lengths = np.arange(1, 41)
    tasks, _, gram, paths = sampled_material("boyan", 3, 40, lengths, GAMMA)
    start = larger_weights(3)
    model = ictd.LinearTransformer(start, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, length in enumerate(lengths):
        context = ictd.sampled_columns(paths[i, : length + 1], tasks.reward[i], GAMMA)
        estimate = model(torch.from_numpy(ictd.prompts_of(context)))
        target = tasks.reward[i] + GAMMA * tasks.transition[i] @ estimate.detach().numpy()
        if algo == "mc":
            target = tasks.reward[i] + GAMMA * tasks.transition[i] @ tasks.reward[i]
        optimizer.zero_grad()
        (0.5 * torch.from_numpy(tasks.stationary[i]) * (torch.from_numpy(target) - estimate) ** 2).sum().backward()
        optimizer.step()
    engine = Engine(start, algo, 3, GAMMA, 1e-3)
    engine.train(tasks.reward, expected_batches(tasks, GAMMA, 2), gram)
    np.testing.assert_allclose(engine.weights().A, model.A.detach().numpy(), atol=ENGINES)


def test_batches_of_infinite_size_and_sampled_ones_have_the_same_mean_returns():
    draw = training_data("boyan", 4, 7, [3, 9], GAMMA, 16, 40)
    tasks, context, batches = draw(200, ["td", "mc", "expected_td", "expected_mc"])
    assert set(context.length) == set(range(3, 10))
    value = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    # Mean returns of a state scatter around v, by far less than single rewards differ from v.
    visited = batches["mc"].visits > 0
    away = (batches["mc"].return_sums[visited] / batches["mc"].visits[visited] - value[visited]).mean()
    assert abs(away) < 0.2 and np.abs(tasks.reward - value)[visited].mean() > 0.5
    np.testing.assert_allclose(batches["expected_mc"].return_sums / tasks.stationary, value, atol=GAMMA**40 * 10)


@pytest.mark.parametrize("others", [[], ["td", "mc", "expected_td"]])
@pytest.mark.parametrize(("target", "steps"), [("td", 1), ("mc", 40)])
def test_batches_do_not_depend_on_other_targets(target, steps, others):
    """Only MC needs whole returns."""
    draw = training_data("loop", 4, 7, [3, 9], GAMMA, 16, 40, threshold=0.3)
    streams = {name: ictd.generator(7, "loop", 4, f"agent {name}") for name in ("tasks", "unrolls")}
    for size in (5, 3):
        tasks, _, batches = draw(size, [*others, target])
        expected = ictd.sample_tasks("loop", 4, size, streams["tasks"], threshold=0.3)
        np.testing.assert_array_equal(tasks.transition, expected.transition)
        unrolls = ictd.unroll(expected, 16, GAMMA, steps, streams["unrolls"])
        np.testing.assert_array_equal(batches[target].return_sums, unrolls.return_sums)
        np.testing.assert_array_equal(batches[target].transitions, unrolls.transitions)


def test_traces_send_errors_to_predecessors():
    """Known preconditioners: a trace, which propagates errors back along p, its opposite, and theta^TD's."""
    states, transition = 4, ictd.sample_tasks("boyan", 4, 1, np.random.default_rng(0)).transition[0]
    identity = np.eye(states)
    G = np.stack([identity + 0.3 * transition.T, identity + 0.3 * transition, identity])
    A = preconditioned_td(np.concatenate([G, np.zeros_like(G)], axis=-2))
    found = trace_measures(ictd.Weights(np.zeros((3, 2 * states)), A), 0.9, transition)
    both = np.corrcoef(transition[~np.eye(states, dtype=bool)], transition.T[~np.eye(states, dtype=bool)])[0, 1]
    np.testing.assert_allclose(found["predecessors"], [1, both, 0], atol=ROUNDING)
    np.testing.assert_allclose(found["successors"], [both, 1, 0], atol=ROUNDING)
