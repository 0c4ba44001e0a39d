"""The floor of in-context policy evaluation on Boyan's chains: Bayes' rule under the distribution of tasks.

Given a context S_0, ..., S_m with C_ij steps from i to j, the prior of Algorithm 3 has the posterior

    epsilon_i ~ Beta(1 + C_{i,i+1}, 1 + C_{i,i+2}),
    last row x of p: density proportional to prod_j x_j^{C_nj} (max_j x_j)^{-n},

times pi(S_0), as a context starts from the stationary distribution.  (x is U / sum(U) with U_j uniform on [0, 1]; its
density is the integral of s^{n-1} over the s for which all s x_j <= 1, that is (max_j x_j)^{-n} / n.)

Last rows are sampled from two distributions by halves and weighted by the density over the mean of theirs: Dirichlet's
with parameters 1 + C_nj, which has no factor (max_j x_j)^{-n} and is near where C_n = sum_j C_nj is large, and that of
U / sum(U) with U_j ~ Beta(1 + C_nj, 1), which has (max_j x_j)^{-n-C_n} in its place and is the prior where C_n = 0.
Rewards are uniform on [-1, 1] and known where visited; elsewhere their mean is zero, and v is linear in them.
"""

import math
from dataclasses import dataclass

import numpy as np

from ictd.mrp import stationary_distribution, value_function


@dataclass(frozen=True)
class Posterior:
    """Weighted samples of the transition matrices that a context leaves possible.

    Parameters
    ----------
    transition : (K, n, n) array
    stationary : (K, n) array
    weights : (K,) array, with sum one
    """

    transition: np.ndarray
    stationary: np.ndarray
    weights: np.ndarray

    @property
    def effective_size(self) -> float:
        """How many samples of equal weight would be worth as much."""
        return float(1 / (self.weights**2).sum())


def boyan_posterior(path: np.ndarray, states: int, samples: int, rng: np.random.Generator) -> Posterior:
    """K samples of the posterior of a Boyan's chain of n states given one context.

    ``path`` is the context's (m+1,) int array of states S_0, ..., S_m.
    """
    counts = np.zeros((states, states))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    transition, inner = np.zeros((samples, states, states)), np.arange(states - 2)
    epsilon = rng.beta(1 + counts[inner, inner + 1], 1 + counts[inner, inner + 2], (samples, states - 2))
    transition[:, inner, inner + 1], transition[:, inner, inner + 2] = epsilon, 1 - epsilon
    transition[:, states - 2, states - 1] = 1
    transition[:, -1], log_weights = _latest(counts[-1], samples, rng)
    stationary = stationary_distribution(transition)
    weights = np.exp(log_weights - log_weights.max()) * stationary[:, path[0]]
    return Posterior(transition, stationary, weights / weights.sum())


def _latest(counts: np.ndarray, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples (K, n) of p's last row given the successors of its state, and the logarithms (K,) of their weights.

    The densities' common factor, the product of all x_j^{C_nj}, is left out.
    """
    states, total = len(counts), len(counts) + counts.sum()
    U = rng.beta(1 + counts, 1, (samples - samples // 2, states))
    rows = np.concatenate([rng.dirichlet(1 + counts, samples // 2), U / U.sum(axis=-1, keepdims=True)])
    largest = np.log(rows.max(axis=-1))
    dirichlet = math.lgamma(total) - sum(math.lgamma(1 + count) for count in counts)
    scaled = np.log1p(counts).sum() - math.log(total) - total * largest
    return rows, -states * largest - np.logaddexp(dirichlet, scaled)


def posterior_values(posterior: Posterior, known_reward: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """The posterior mean of v, and the estimate with the least expected MSVE, E[pi v] / E[pi] for each state.

    Both are (n,).  ``known_reward`` (n,) is r(s) where s was left in the context, else 0; ``discount`` is gamma.
    """
    rewards = np.broadcast_to(known_reward, posterior.stationary.shape)
    values = value_function(posterior.transition, rewards, discount)
    by_state = posterior.weights @ (posterior.stationary * values) / (posterior.weights @ posterior.stationary)
    return posterior.weights @ values, by_state
