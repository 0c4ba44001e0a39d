"""Critics, which evaluate policies from observed transitions, and policy iteration with a critic.

A critic is a function of

    counts    (N, S, A, S) numbers of observed transitions, not necessarily integers
    reward    (N, S, A) rewards, zero for pairs that were not observed
    policy    (N, S, A) policies to evaluate
    discount  gamma

that returns estimates of q (N, S, A).  Further parameters, such as a tuned number, are keywords.
"""

from collections.abc import Callable

import numpy as np

from ictd.baselines import theta_preconditioned_td
from ictd.context import Context, diagonal
from ictd.transformer import Weights, estimates
from studies.control.processes import Processes, greedy, pair_transitions, uniform

Critic = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


def pair_context(counts: np.ndarray, reward: np.ndarray, policy: np.ndarray) -> Context:
    """Average over the columns of prompts with given transitions, for the evaluation of any policy.

    A transition (s, a, r, s') is the column [phi(s, a); gamma sum_a' pi(a' | s') phi(s', a'); r].  So transitions under
    any behaviour policy can be used to evaluate every policy pi.

    Returns
    -------
    Context of N prompts, with the d = SA pairs in place of states
    """
    length = counts.sum(axis=(1, 2, 3))
    shares = counts / length[:, None, None, None]
    visits = shares.sum(axis=-1).reshape(len(counts), -1)  # (N, d)
    rewards = reward.reshape(len(counts), -1)  # (N, d)
    D = pair_transitions(shares, policy)
    # The next features after (s, a, s') are zero except on the pairs of s', so E has one block for each state.
    arrivals = np.einsum("nsaj->nj", shares)
    E = np.einsum("nj,nja,njb,jk->njakb", arrivals, policy, policy, np.eye(policy.shape[1])).reshape(D.shape)
    b, d = (visits * rewards)[..., None], np.vecmat(rewards, D)[..., None]
    square = (visits * rewards**2).sum(axis=-1)[..., None, None]
    G = np.block([[diagonal(visits), D, b], [D.mT, E, d], [b.mT, d.mT, square]])
    return Context(np.rint(length).astype(int), G)


def transformer(
    counts, reward, policy, discount, *, weights: Weights, depth: int, grouped: bool = False, pseudo_counts: float = 0.0
) -> np.ndarray:
    """Estimate q by the Transformer TF_L.

    Parameters
    ----------
    counts, reward, policy, discount : as of all critics
    weights : Weights of d = SA pairs
    depth : int, number of layers L
    grouped : bool
        Whether the prompt has a column for each observed pair, with the mean of its next features
        (``ictd.context.Context.grouped``), in place of a column for each transition.
    pseudo_counts : float
        Transitions that are added to the prompt from each pair, spread evenly over all next states.
    """
    context = pair_context(counts + pseudo_counts / counts.shape[-1], reward, policy)
    context = context.grouped() if grouped else context
    with np.errstate(over="ignore", invalid="ignore"):
        return estimates(weights, context.gram_matrix(discount), depth).reshape(policy.shape)


def theta_td(counts, reward, policy, discount, *, step_size: float, updates: int) -> np.ndarray:
    """Estimate q by theta^TD, whose layers are updates of batch TD."""
    weights = theta_preconditioned_td(step_size * np.eye(policy[0].size))
    return transformer(counts, reward, policy, discount, weights=weights, depth=updates)


def observed_rewards(counts, reward, policy, discount) -> np.ndarray:
    """Estimate q by the observed rewards alone, without values of next states."""
    return reward


def lstd(counts, reward, policy, discount, *, ridge: float) -> np.ndarray:
    """Estimate q by LSTD on pairs, with a ridge.

    The estimates are the values in the maximum likelihood model with additional steps, as many from each pair as the
    ridge.  The additional steps have the reward 0 and end the episode.  Policy iteration with LSTD is LSPI (Lagoudakis
    and Parr, Journal of Machine Learning Research 4, 2003).
    """
    visits = counts.sum(axis=-1)
    total = visits + ridge
    return Processes(counts / total[..., None], visits * reward / total).values(policy, discount)


def smoothed_model(counts, reward, policy, discount, *, pseudo_counts: float) -> np.ndarray:
    """Compute q in the maximum likelihood model with pseudo-counts, which is LSTD with these pseudo-counts.

    ``pseudo_counts`` transitions are added from each pair, spread evenly over all next states.
    """
    total = counts + pseudo_counts / counts.shape[-1]
    return Processes(total / total.sum(axis=-1, keepdims=True), reward).values(policy, discount)


def iterate(critic: Critic, counts: np.ndarray, reward: np.ndarray, discount: float, iterations: int) -> np.ndarray:
    """Iterate evaluation and improvement from the uniform policy.

    The critic gets the rewards of observed pairs only.  Estimates that are not finite count as zero.

    Parameters
    ----------
    critic : Critic
    counts : (N, S, A, S) array
    reward : (N, S, A) array
    discount : float, gamma
    iterations : int, K

    Returns
    -------
    policies : (K+1, N, S, A) array
    """
    observed_reward = np.where(counts.sum(axis=-1) > 0, reward, 0.0)
    policies = [uniform(reward.shape)]
    for _ in range(iterations):
        q = critic(counts, observed_reward, policies[-1], discount)
        policies.append(greedy(np.where(np.isfinite(q), q, 0.0)))
    return np.stack(policies)
