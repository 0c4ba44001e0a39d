"""Slow versions of the study's functions, for one process, one transition and one pair at a time."""

import itertools

import numpy as np


def transitions(path, length, actions):
    """Steps (s, a, s') of a path of pairs."""
    return [(x // actions, x % actions, y // actions) for x, y in itertools.pairwise(path[: length + 1])]


def columns(steps, reward, policy, discount):
    """Columns (2d+1, m) of a prompt, one for each transition."""
    d = policy.size
    matrix = np.zeros((2 * d + 1, len(steps)))
    for t, (s, a, following) in enumerate(steps):
        matrix[s * policy.shape[1] + a, t] = 1
        matrix[d : 2 * d, t].reshape(policy.shape)[following] = discount * policy[following]
        matrix[-1, t] = reward[s, a]
    return matrix


def columns_of_pairs(weights, reward, policy, discount):
    """Columns (2d+1, d), one for each pair, with its mean next features; zeros for pairs whose weights are zero.

    ``weights`` (S, A, S) are transition probabilities, or numbers of transitions.
    """
    states, actions = policy.shape
    pairs = list(itertools.product(range(states), range(actions)))
    matrix = np.zeros((2 * len(pairs) + 1, len(pairs)))
    for x, (s, a) in enumerate(pairs):
        if weights[s, a].sum() > 0:
            every = columns([(s, a, j) for j in range(states)], reward, policy, discount)
            matrix[:, x] = every @ weights[s, a] / weights[s, a].sum()
    return matrix


def values(transition, reward, policy, discount, sweeps=3000):
    """q of a policy, by sweeps of the Bellman equation."""
    q = np.zeros_like(reward)
    for _ in range(sweeps):
        q = reward + discount * transition @ (policy * q).sum(axis=1)
    return q


def mean_value(transition, reward, policy, discount):
    """Mean over states of v of a policy."""
    return (policy * values(transition, reward, policy, discount)).sum(axis=1).mean()


def greatest_mean_value(transition, reward, discount):
    """Greatest mean value over states, among all deterministic policies."""
    states, actions = reward.shape
    policies = (np.eye(actions)[list(chosen)] for chosen in itertools.product(range(actions), repeat=states))
    return max(mean_value(transition, reward, policy, discount) for policy in policies)


def observed(steps, reward):
    """The reward of each pair that was observed, and zero."""
    r = np.zeros(reward.shape)
    for s, a, _ in steps:
        r[s, a] = reward[s, a]
    return r


def counts(steps, shape):
    """Numbers (S, A, S) of the transitions."""
    number = np.zeros((*shape, shape[0]))
    for step in steps:
        number[step] += 1
    return number


def lstd(steps, reward, policy, discount, ridge):
    """LSTD on pairs, by sums of features over transitions."""
    d = policy.size
    matrix, vector = ridge * np.eye(d), np.zeros(d)
    for column in columns(steps, reward, policy, discount).T:
        matrix += np.outer(column[:d], column[:d] - column[d:-1])
        vector += column[:d] * column[-1]
    return np.linalg.solve(matrix, vector).reshape(policy.shape)


def batch_td(steps, reward, policy, discount, step_size, updates):
    """Batch TD on pairs."""
    w, matrix, d = np.zeros(policy.size), columns(steps, reward, policy, discount), policy.size
    for _ in range(updates):
        errors = matrix[-1] + w @ matrix[d:-1] - w @ matrix[:d]
        w = w + step_size * matrix[:d] @ errors / len(steps)
    return w.reshape(policy.shape)


def smoothed(steps, reward, policy, discount, pseudo_counts):
    """Values in the maximum likelihood model with pseudo-counts; pairs that were not observed have reward zero."""
    number = counts(steps, policy.shape) + pseudo_counts / len(policy)
    return values(number / number.sum(axis=-1, keepdims=True), observed(steps, reward), policy, discount)
