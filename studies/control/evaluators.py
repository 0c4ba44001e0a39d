"""What evaluates policies from the transitions that were seen, and policy iteration by it.

An evaluator takes, last, counts (N, S, A, S), rewards, zero where not seen, a policy and a discount, and returns q.
"""

from functools import partial

import numpy as np

from ictd.baselines import lstd
from ictd.statistics import log_spaced
from ictd.transformer import Weights, estimates, theta_td
from studies.control.contexts import context_of
from studies.control.processes import Processes, greedy, uniform


def transformer(weights: Weights, depth: int, number: float, counts, reward, policy, discount) -> np.ndarray:
    """TF_L in context; its prompt also shows ``number`` pseudo-steps from each pair, spread over all states."""
    gram = context_of(counts + number / counts.shape[-1], reward, policy).gram(discount)
    with np.errstate(over="ignore", invalid="ignore"):
        return estimates(weights, gram, depth).reshape(policy.shape)


def in_context_td(step_size: float, depth: int, pairs: int) -> partial:
    """theta^TD with a step size: as many updates of batch TD as layers."""
    return partial(transformer, Weights(np.zeros(2 * pairs), step_size * theta_td(pairs).A), depth, 0.0)


def least_squares(ridge: float, counts, reward, policy, discount) -> np.ndarray:
    """LSTD on pairs, with which policy iteration is LSPI (Lagoudakis and Parr, JMLR 4, 2003)."""
    return lstd(context_of(counts, reward, policy), discount, ridge).reshape(policy.shape)


def smoothed(number: float, mean: np.ndarray | float, counts, reward, policy, discount) -> np.ndarray:
    """Exact values in the model that was seen, after ``number`` pseudo-steps from each pair by ``mean`` (S, A, S): LSTD
    with these pseudo-steps, of which each shows its pair's reward."""
    total = counts + number * mean
    return Processes(total / total.sum(axis=-1, keepdims=True), reward).values(policy, discount)


def yardsticks(place: dict, depth: int, mean: np.ndarray, ridges: dict, pseudo_steps: dict, step_sizes: dict) -> dict:
    """What each yardstick can choose from, and its evaluator for each choice; ``mean`` (S, A, S) is the mean p."""
    pairs, numbers = place["states"] * place["actions"], log_spaced(**pseudo_steps)
    return {
        "lspi": {one: partial(least_squares, one) for one in log_spaced(**ridges)},
        "lspi_mean": {one: partial(smoothed, one, mean) for one in numbers},
        "smoothed": {one: partial(smoothed, one, 1 / place["states"]) for one in numbers},
        "theta_td": {one: in_context_td(one, depth, pairs) for one in log_spaced(**step_sizes)},
    }


def improve(evaluate, counts: np.ndarray, reward: np.ndarray, policy: np.ndarray, discount: float):
    """Estimates of q of a policy, and the policy that is greedy for them; those that diverge are no better than 0."""
    q = evaluate(counts, np.where(counts.sum(axis=-1) > 0, reward, 0.0), policy, discount)
    q = np.where(np.isfinite(q), q, 0.0)
    return q, greedy(q)


def iterate(evaluate, counts: np.ndarray, reward: np.ndarray, discount: float, iterations: int):
    """Policies (K + 1, N, S, A) of K iterations of evaluating and being greedy, from the uniform policy, and the
    estimates (K, N, S, A) that led to them."""
    found = [(None, uniform(reward.shape))]
    for _ in range(iterations):
        found.append(improve(evaluate, counts, reward, found[-1][1], discount))
    return np.stack([policy for _, policy in found]), np.stack([q for q, _ in found[1:]])
