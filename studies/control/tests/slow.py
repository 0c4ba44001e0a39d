"""Slow and obvious versions of what the study computes, one process and one transition at a time."""

import itertools

import numpy as np


def transitions(path, length, actions):
    """Steps (s, a, s') of a path of pairs."""
    return [(x // actions, x % actions, y // actions) for x, y in itertools.pairwise(path[: length + 1])]


def columns(steps, reward, policy, discount):
    """A prompt's context (2d + 1, m), a column a transition."""
    states, actions = policy.shape
    d = states * actions
    context = np.zeros((2 * d + 1, len(steps)))
    for t, (s, a, following) in enumerate(steps):
        context[s * actions + a, t] = 1
        for b in range(actions):
            context[d + following * actions + b, t] = discount * policy[following, b]
        context[-1, t] = reward[s, a]
    return context


def enumerated_columns(transition, reward, policy, discount):
    """The same with a column a pair, which has its expected next feature."""
    states, actions = policy.shape
    d, context = states * actions, np.zeros((2 * states * actions + 1, states * actions))
    for s, a in itertools.product(range(states), range(actions)):
        x = s * actions + a
        context[x, x], context[-1, x] = 1, reward[s, a]
        for j, b in itertools.product(range(states), range(actions)):
            context[d + j * actions + b, x] += discount * transition[s, a, j] * policy[j, b]
    return context


def values(transition, reward, policy, discount, sweeps=3000):
    """q of a policy, by sweeps of the Bellman equation."""
    q = np.zeros_like(reward)
    for _ in range(sweeps):
        q = reward + discount * transition @ (policy * q).sum(axis=1)
    return q


def best_worth(transition, reward, discount):
    """Greatest mean value over states among all deterministic policies."""
    states, actions = reward.shape
    found = []
    for chosen in itertools.product(range(actions), repeat=states):
        policy = np.eye(actions)[list(chosen)]
        q = np.linalg.solve(
            np.eye(states) - discount * np.einsum("sa,saj->sj", policy, transition), (policy * reward).sum(axis=1)
        )
        found.append(q.mean())
    return max(found)


def lstd(steps, reward, policy, discount, ridge):
    """LSTD on pairs, by adding up features of transitions."""
    context = columns(steps, reward, policy, discount)
    d = policy.size
    matrix, vector = ridge * np.eye(d), np.zeros(d)
    for column in context.T:
        matrix += np.outer(column[:d], column[:d] - column[d:-1])
        vector += column[:d] * column[-1]
    return np.linalg.solve(matrix, vector).reshape(policy.shape)


def smoothed(steps, reward, policy, discount, number, mean):
    """Values in a model of relative frequencies after pseudo-steps; rewards that were not seen are zero."""
    model, seen = number * mean.copy(), np.zeros(policy.shape)
    for s, a, following in steps:
        model[s, a, following] += 1
        seen[s, a] = 1
    return values(model / model.sum(axis=-1, keepdims=True), reward * seen, policy, discount)
