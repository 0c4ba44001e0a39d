"""The floor of in-context policy evaluation on Boyan's chains: Bayes' rule under the distribution of tasks.

Given a context S_0, ..., S_m with C_ij steps from i to j, the prior of Algorithm 3 has the posterior

    epsilon_i ~ Beta(1 + C_{i,i+1}, 1 + C_{i,i+2}),
    last row x of p: density proportional to prod_j x_j^{C_nj} (max_j x_j)^{-n},

times pi(S_0), as a context starts from the stationary distribution.  (x is U / sum(U) with U_j uniform on [0, 1]; its
density is the integral of s^{n-1} over the s for which all s x_j <= 1, that is (max_j x_j)^{-n} / n.)  Samples come
from the Beta distributions and from a Dirichlet distribution with parameters 1 + C_nj, and are weighted by
(max_j x_j)^{-n} pi(S_0).  Rewards are uniform on [-1, 1] and known where visited; elsewhere their mean is zero, and v
is linear in them.
"""

from dataclasses import dataclass

import numpy as np

from ictd.mrp import stationary_distribution


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
    """Posterior of a Boyan's chain given one context.

    Parameters
    ----------
    path : (m+1,) int array of states S_0, ..., S_m
    states : int, n
    samples : int, K
    rng : numpy.random.Generator
    """
    counts = np.zeros((states, states))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    transition, inner = np.zeros((samples, states, states)), np.arange(states - 2)
    epsilon = rng.beta(1 + counts[inner, inner + 1], 1 + counts[inner, inner + 2], (samples, states - 2))
    transition[:, inner, inner + 1], transition[:, inner, inner + 2] = epsilon, 1 - epsilon
    transition[:, states - 2, states - 1] = 1
    transition[:, -1] = rng.dirichlet(1 + counts[-1], samples)
    stationary = stationary_distribution(transition)
    weights = transition[:, -1].max(axis=-1) ** -states * stationary[:, path[0]]
    return Posterior(transition, stationary, weights / weights.sum())


def posterior_values(posterior: Posterior, known_reward: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """The posterior mean of v, and the estimate with the least expected MSVE, E[pi v] / E[pi] for each state.

    Parameters
    ----------
    posterior : Posterior
    known_reward : (n,) array, r(s) where s was left in the context, else 0
    discount : float, gamma

    Returns
    -------
    two (n,) arrays
    """
    identity = np.eye(len(known_reward))
    rewards = np.broadcast_to(known_reward, posterior.stationary.shape)[..., None]
    values = np.linalg.solve(identity - discount * posterior.transition, rewards)[..., 0]
    by_state = posterior.weights @ (posterior.stationary * values) / (posterior.weights @ posterior.stationary)
    return posterior.weights @ values, by_state
