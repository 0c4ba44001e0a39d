"""Stationary distributions: chains with known ones, closed classes, and restarts after episodes."""

from fractions import Fraction

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.elimination import _eliminated, closed_classes

TINY = np.finfo(float).tiny


def walk(states, up):
    """A random walk between two walls, up with one probability and down otherwise."""
    return up * move(states, 1) + (1 - up) * move(states, -1)


def move(states, step):
    to = np.clip(np.arange(states) + step, 0, states - 1)
    return np.eye(states)[to]


@pytest.mark.parametrize("states", [30, 300, 400])
@pytest.mark.parametrize("order", ["down", "up", "mixed"])
def test_a_walk_with_drift_has_a_geometric_distribution(states, order):
    """Entries from 8/9 to below the smallest float, which are 0."""
    expected = np.array([float(Fraction(8, 9) / 9**k / (1 - Fraction(1, 9) ** states)) for k in range(states)])
    labels = np.arange(states)
    if order != "down":
        labels = labels[::-1] if order == "up" else np.random.default_rng(states).permutation(states)
    stationary = ictd.stationary_distribution(walk(states, 0.1)[np.ix_(labels, labels)])
    np.testing.assert_allclose(stationary, np.where(expected < TINY, 0, expected)[labels], rtol=ROUNDING)


def test_probabilities_beyond_the_range_of_floats_are_refused():
    with pytest.raises(ValueError, match=r"^transition visits states with probabilities whose ratio is beyond"):
        ictd.stationary_distribution(walk(30, 1e-300))


def test_blocks_of_many_states_equal_the_elimination_one_by_one():
    chains = ictd.sample_tasks("loop", 150, 2, np.random.default_rng(0), threshold=0.95).transition
    found = ictd.stationary_distribution(chains)
    np.testing.assert_allclose(found, [naive.eliminated(chain) for chain in chains], rtol=ROUNDING)
    np.testing.assert_array_equal(found[1], ictd.stationary_distribution(chains[1]))


@pytest.mark.parametrize("env", ["boyan", "loop"])
def test_the_elimination_of_few_states_is_naive_to_the_last_bit(env):
    chains = ictd.sample_tasks(env, 12, 6, np.random.default_rng(0)).transition
    for function in (_eliminated, lambda chains: ictd.stationary_distribution(chains.reshape(2, 3, 12, 12))):
        for chain, found in zip(chains, function(chains).reshape(6, 12), strict=True):
            np.testing.assert_array_equal(found, naive.eliminated(chain))


def test_transient_states_are_never_visited():
    np.testing.assert_array_equal(ictd.stationary_distribution([[0.5, 0.5], [0.0, 1.0]]), [0, 1])
    chain = [[0.5, 0.25, 0.25, 0], [0, 0.5, 0, 0.5], [0, 0, 1 - 1e-12, 1e-12], [0, 0.25, 0, 0.75]]
    np.testing.assert_allclose(ictd.stationary_distribution([[chain]]), [[[0, 1 / 3, 0, 2 / 3]]], rtol=ROUNDING)


def test_a_transient_state_changes_no_other_chain():
    chains = ictd.sample_tasks("loop", 4, 9, np.random.default_rng(0)).transition
    expected = ictd.stationary_distribution(chains)
    chains[[2, 7]], expected[[2, 7]] = np.eye(4)[3], np.eye(4)[3]
    np.testing.assert_array_equal(ictd.stationary_distribution(chains), expected)


@pytest.mark.parametrize("seed", range(10))
def test_closed_classes_equal_those_of_the_transitive_closure(seed):
    chain = np.random.default_rng(seed).random((12, 12)) < 0.1
    chain |= np.eye(12, dtype=bool)
    reached = np.linalg.matrix_power(chain.astype(int), 12) > 0
    expected = {frozenset(np.flatnonzero(row)) for s, row in enumerate(reached) if reached[row, s].all()}
    assert {frozenset(states) for states in closed_classes(chain * 1.0)} == expected


def test_episodes_are_visited_as_often_as_their_expected_steps():
    """The share of visits of a state is start' (I - p)^-1, divided by its sum."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), (3, 5))[..., :5]
    start = rng.dirichlet(np.ones(5))
    visits = start @ np.linalg.inv(np.eye(5) - p)
    found = ictd.stationary_distribution(p, episodic=True, start=start)
    np.testing.assert_allclose(found, visits / visits.sum(axis=-1, keepdims=True), rtol=ROUNDING)
    uniform = ictd.stationary_distribution(p, episodic=True)
    np.testing.assert_allclose(uniform, ictd.stationary_distribution(p, episodic=True, start=np.full(5, 0.2)))
