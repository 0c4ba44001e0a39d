"""Algorithms: the arrays of each one give the errors of its targets, step by step."""

import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.algorithms import ALGORITHMS, LAMBDA, STEPS

GAMMA = 0.8


def material(behaviour=None):
    tasks = ictd.TaskDistribution("loop", 4, behaviour=behaviour).sample(5, np.random.default_rng(0))
    return tasks, ictd.unroll(tasks, 7, GAMMA, 9, np.random.default_rng(1))


def targets_of_steps(algo, r, path, value, mean_return, true_value):
    """The target of each step of a path, by the definition of the algorithm."""
    b, found = len(path) - 1, []
    for t in range(b):
        # The k-step returns from t, for k = 1, ..., b - t.
        returns = [
            sum(GAMMA**i * r[path[t + i]] for i in range(k)) + GAMMA**k * value[path[t + k]]
            for k in range(1, b - t + 1)
        ]
        shares = [(1 - LAMBDA) * LAMBDA**k for k in range(b - t - 1)] + [LAMBDA ** (b - t - 1)]
        found.append(
            {
                "td": returns[0],
                "mc": mean_return[path[t]],
                "values": true_value[path[t]],
                "three_step_td": returns[min(STEPS, b - t) - 1],
                "td_lambda": np.dot(shares, returns),
            }[algo]
        )
    return found


@pytest.mark.parametrize("algo", ["td", "mc", "values", "three_step_td", "td_lambda"])
def test_errors_are_sums_of_the_differences_between_targets_and_estimates(algo):
    tasks, batches = material()
    value = np.random.default_rng(2).normal(size=tasks.reward.shape)
    true = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    expected = np.zeros(value.shape)
    for i, path in enumerate(batches.paths):
        mean_return = batches.return_sums[i] / np.maximum(batches.visits[i], 1)
        targets = targets_of_steps(algo, tasks.reward[i], path, value[i], mean_return, true[i])
        for state, target in zip(path[:-1], targets, strict=True):
            expected[i, state] += (target - value[i, state]) / 7
    found = ALGORITHMS[algo].targets(tasks, batches, GAMMA).errors(value)
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_steps_off_policy_form_no_paths():
    with pytest.raises(ValueError, match=r"td_lambda needs batches\.paths, which are None; tasks with a behaviour"):
        ALGORITHMS["td_lambda"].targets(*material([0.4, 0.3, 0.2, 0.1]), GAMMA)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"odd returns None; return \(visits, sums, bootstrap\)"),
        (
            (np.ones((5, 4)), np.ones((4, 5)), None),
            r"odd returns sums of shape \(4, 5\).*; return real",
        ),
        ((np.ones((5, 4)), np.ones((5, 4), complex), None), "odd returns sums of .* type complex128"),
        ((np.ones((5, 4)), np.full((5, 4), np.nan), None), "odd returns sums with NaN"),
        ((np.ones((5, 4)), None, None), "returns sums .* register it with returns=True if"),
    ],
)
def test_other_results_and_names_are_refused(monkeypatch, returned, message):
    monkeypatch.setitem(ALGORITHMS, "odd", None)
    monkeypatch.delitem(ALGORITHMS, "odd")
    ictd.register_algorithm("odd")(lambda tasks, batches, discount: returned)
    with pytest.raises(ValueError, match=message):
        ALGORITHMS["odd"].targets(*material(), GAMMA)
    with pytest.raises(ValueError, match=r"there is an algorithm 'td' already, in ictd\.algorithms"):
        ictd.register_algorithm("td")(len)
    with pytest.raises(ValueError, match="name is 'my-td'; give lower-case letters"):
        ictd.register_algorithm("my-td")


def test_counts_are_signed_and_what_was_not_asked_for_is_missing(monkeypatch):
    def sums(function):
        monkeypatch.delitem(ALGORITHMS, "odd", raising=False)
        ictd.register_algorithm("odd")(function)
        return ALGORITHMS["odd"].targets(*material(), GAMMA).sums

    _, batches = material()
    visits = batches.visits.astype(int)
    np.testing.assert_array_equal(sums(lambda _, b, __: (b.visits, -b.visits, None)), -visits)
    with pytest.raises(ValueError, match=r"odd fails: .*not subscriptable; .* with paths=True"):
        sums(lambda _, b, __: (b.visits, b.paths[:, :4], None))
