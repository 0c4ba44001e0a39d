"""The Bayes estimate of the values of a Boyan's chain, given one context."""

import math
from dataclasses import dataclass

import numpy as np

from ictd.mrp import value_function


@dataclass(frozen=True)
class Posterior:
    """Weighted samples of transition matrices from the posterior given a context.

    Parameters
    ----------
    transition : (K, n, n) array
    stationary : (K, n) array, stationary distributions mu
    weights : (K,) array, with sum one
    """

    transition: np.ndarray
    stationary: np.ndarray
    weights: np.ndarray

    @property
    def effective_size(self) -> float:
        """Number of samples of equal weight with the same variance, 1 / sum_k weight_k^2."""
        return float(1 / (self.weights**2).sum())


def boyan_posterior(path: np.ndarray, states: int, samples: int, rng: np.random.Generator) -> Posterior:
    """Draw samples from the posterior of a Boyan's chain given one context, under the distribution of Algorithm 3.

    Let C_ij be the number of steps from i to j in the context.  In the posterior, epsilon_i is Beta(1 + C_{i,i+1}, 1 +
    C_{i,i+2}), and the last row x of p has a density in proportion to prod_j x_j^{C_nj} (max_j x_j)^{-n}.  The whole is
    multiplied by mu(S_0), because a context starts from the stationary distribution mu.  (In the prior, x is U / sum(U)
    with U_j uniform on [0, 1].  Its density is the integral of s^{n-1} over the s for which all s x_j <= 1, which is
    (max_j x_j)^{-n} / n.)

    Last rows are drawn by importance sampling from a mixture of two distributions, half of the samples from each:

    - the Dirichlet distribution with parameters 1 + C_nj.  It lacks the factor (max_j x_j)^{-n}, and is close to the
      posterior if C_n = sum_j C_nj is large.
    - the distribution of U / sum(U) with U_j ~ Beta(1 + C_nj, 1).  It has (max_j x_j)^{-n-C_n} in place of that factor,
      and is the prior if C_n = 0.

    Parameters
    ----------
    path : (m+1,) int array, S_0, ..., S_m
    states : int, n
    samples : int, K
    rng : numpy.random.Generator

    Returns
    -------
    Posterior of K samples
    """
    counts = np.zeros((states, states))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    inner = np.arange(states - 2)
    epsilon = rng.beta(1 + counts[inner, inner + 1], 1 + counts[inner, inner + 2], (samples, states - 2))
    transition = np.zeros((samples, states, states))
    transition[:, inner, inner + 1] = epsilon
    transition[:, inner, inner + 2] = 1 - epsilon
    transition[:, states - 2, states - 1] = 1
    transition[:, -1], log_weights = _last_rows(counts[-1], samples, rng)
    stationary = _boyan_stationary(transition)
    weights = np.exp(log_weights - log_weights.max()) * stationary[:, path[0]]
    return Posterior(transition, stationary, weights / weights.sum())


def _boyan_stationary(transition: np.ndarray) -> np.ndarray:
    """Stationary distributions (K, n) of chains (K, n, n) whose states, except the last, lead to later states only.

    From the last state on, mu(s) = mu(n) p(s | n) + sum_{i < s} mu(i) p(s | i).  This is faster than
    ``stationary_distribution`` and as accurate, because it adds and multiplies non-negative numbers only.
    """
    last = transition.shape[-1] - 1
    mu = np.ones(transition.shape[:-1])
    for s in range(last):
        mu[:, s] = transition[:, last, s] + (mu[:, :s] * transition[:, :s, s]).sum(axis=-1)
    return mu / mu.sum(axis=-1, keepdims=True)


def _last_rows(counts: np.ndarray, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw last rows x (K, n) of p, given the counts C_nj (n,), with the logarithms (K,) of their weights.

    The factor prod_j x_j^{C_nj}, which all three densities share, is left out.
    """
    states = len(counts)
    total = states + counts.sum()
    U = rng.beta(1 + counts, 1, (samples - samples // 2, states))
    x = np.concatenate([rng.dirichlet(1 + counts, samples // 2), U / U.sum(axis=-1, keepdims=True)])
    largest = np.log(x.max(axis=-1))
    log_dirichlet = math.lgamma(total) - sum(math.lgamma(1 + count) for count in counts)
    log_scaled = np.log1p(counts).sum() - math.log(total) - total * largest
    return x, -states * largest - np.logaddexp(log_dirichlet, log_scaled)


def posterior_values(posterior: Posterior, known_reward: np.ndarray, discount: float) -> np.ndarray:
    """Compute the estimate (n,) with the least expected MSVE, E[mu(s) v(s)] / E[mu(s)] over the posterior.

    Its expected MSVE is the Bayes error.  Rewards are uniform on [-1, 1], and known for visited states.  The expected
    reward of other states is zero, and v is linear in the rewards.

    Parameters
    ----------
    posterior : Posterior of n states
    known_reward : (n,) array, r(s) of states that steps of the context start from, 0 for other states
    discount : float, gamma
    """
    rewards = np.broadcast_to(known_reward, posterior.stationary.shape)
    values = value_function(posterior.transition, rewards, discount)
    weights, mu = posterior.weights, posterior.stationary
    return weights @ (mu * values) / (weights @ mu)
