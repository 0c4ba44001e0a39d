"""Slow versions of the study's functions, for one process, one transition and one pair at a time."""

import itertools

import numpy as np


def transitions(path, length, actions):
    """Steps (s, a, s') of a path of pairs."""
    return [(x // actions, x % actions, y // actions) for x, y in itertools.pairwise(path[: length + 1])]


def columns(steps, reward, policy, discount):
    """Columns (2d+1, m) of a prompt, one for each transition."""
    states, actions = policy.shape
    d = states * actions
    matrix = np.zeros((2 * d + 1, len(steps)))
    for t, (s, a, following) in enumerate(steps):
        matrix[s * actions + a, t] = 1
        for b in range(actions):
            matrix[d + following * actions + b, t] = discount * policy[following, b]
        matrix[-1, t] = reward[s, a]
    return matrix


def grouped_columns(counts, reward, policy, discount):
    """Columns (2d+1, d) of a prompt, one for each pair, with its mean next features; zeros for pairs without a count.

    ``counts`` (S, A, S) are numbers of transitions, not necessarily integers.
    """
    observed = counts.sum(axis=-1) > 0
    shares = counts / np.where(observed, counts.sum(axis=-1), 1.0)[..., None]
    return enumerated_columns(shares, reward, policy, discount) * observed.ravel()


def enumerated_columns(transition, reward, policy, discount):
    """Columns (2d+1, d) of the enumerated prompt, one for each pair, with its expected next features."""
    states, actions = policy.shape
    d = states * actions
    matrix = np.zeros((2 * d + 1, d))
    for s, a in itertools.product(range(states), range(actions)):
        x = s * actions + a
        matrix[x, x] = 1
        matrix[-1, x] = reward[s, a]
        for j, b in itertools.product(range(states), range(actions)):
            matrix[d + j * actions + b, x] += discount * transition[s, a, j] * policy[j, b]
    return matrix


def values(transition, reward, policy, discount, sweeps=3000):
    """q of a policy, by sweeps of the Bellman equation."""
    q = np.zeros_like(reward)
    for _ in range(sweeps):
        q = reward + discount * transition @ (policy * q).sum(axis=1)
    return q


def mean_value(transition, reward, policy, discount):
    """Mean over states of v of a policy."""
    p = np.einsum("sa,saj->sj", policy, transition)
    v = np.linalg.solve(np.eye(len(p)) - discount * p, (policy * reward).sum(axis=1))
    return v.mean()


def greatest_mean_value(transition, reward, discount):
    """Greatest mean value over states, among all deterministic policies."""
    states, actions = reward.shape
    policies = (np.eye(actions)[list(chosen)] for chosen in itertools.product(range(actions), repeat=states))
    return max(mean_value(transition, reward, policy, discount) for policy in policies)


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


def observed_rewards(steps, reward):
    """The reward of each pair that was observed, and zero."""
    q = np.zeros(reward.shape)
    for s, a, _ in steps:
        q[s, a] = reward[s, a]
    return q


def smoothed(steps, reward, policy, discount, pseudo_counts, transition):
    """Values in the maximum likelihood model with pseudo-counts; pairs that were not observed have reward zero."""
    counts, observed = pseudo_counts * transition.copy(), np.zeros(policy.shape)
    for s, a, following in steps:
        counts[s, a, following] += 1
        observed[s, a] = 1
    return values(counts / counts.sum(axis=-1, keepdims=True), reward * observed, policy, discount)
