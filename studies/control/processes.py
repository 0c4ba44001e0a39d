"""Markov decision processes, their policies, and their true values.

A process has S states, A actions, transitions p (S, A, S) and rewards r (S, A).  A policy pi (S, A) makes it a Markov
reward process on the d = SA pairs x = (s, a), numbered s A + a, whose value function is q:

    p_pi((s', a') | (s, a)) = p(s' | s, a) pi(a' | s'),    q = (I - gamma p_pi)^{-1} r.

Arrays have a leading axis of N processes.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from ictd import sampling
from ictd.kernels import kernel, size
from ictd.mrp import ENVIRONMENTS
from ictd.rng import generator

# Upper limit of the number of steps of policy iteration, which this study does not reach.
POLICY_ITERATIONS = 20
# Actions are tied if their values differ by less than this.
TIE = 1e-10
# Number of processes whose paths are drawn at once, so that arrays fit into the processor's cache.
BLOCK = 200


@dataclass(frozen=True)
class Place:
    """A family of random processes, the settings of one of ``places``.

    Parameters
    ----------
    family : str
        "dirichlet" for transition probabilities from Dirichlet distributions, or an environment of ``ictd.mrp``, from
        which each action gets a random chain.
    states, actions : int, S and A
    discount : float, gamma
    concentrations : list of float
        Concentrations of the Dirichlet distributions.  Each process uses one of these.
    """

    family: str
    states: int
    actions: int
    discount: float
    concentrations: list[float] = ()

    def generator(self, seed: int, purpose: str) -> np.random.Generator:
        """Make the random generator of a purpose."""
        return generator(seed, f"{self.family}-{self.actions}", self.states, f"control {purpose}")


class Processes(NamedTuple):
    """N processes: transitions (N, S, A, S) and rewards (N, S, A)."""

    transition: np.ndarray
    reward: np.ndarray

    def values(self, policy: np.ndarray, discount: float) -> np.ndarray:
        """Compute q (N, S, A) of policies (N, S, A).

        Probabilities may sum to less than one: with the remaining probability, an episode ends.
        """
        transition = np.einsum("nsa,nsaj->nsj", policy, self.transition)
        reward = (policy * self.reward).sum(axis=-1)
        v = np.linalg.solve(np.eye(reward.shape[-1]) - discount * transition, reward[..., None])[..., 0]
        return self.reward + discount * np.einsum("nsaj,nj->nsa", self.transition, v)

    def optimal(self, discount: float) -> np.ndarray:
        """Compute optimal policies (N, S, A) by policy iteration."""
        policy = uniform(self.reward.shape)
        for _ in range(POLICY_ITERATIONS):
            previous = policy
            policy = greedy(self.values(policy, discount))
            if np.array_equal(policy, previous):
                break
        return policy

    def mean_value(self, policy: np.ndarray, discount: float) -> np.ndarray:
        """Compute the mean (N,) over states of v of policies (N, S, A)."""
        v = (self.values(policy, discount) * policy).sum(axis=-1)
        return v.mean(axis=-1)


def uniform(shape: tuple[int, ...]) -> np.ndarray:
    """Make uniform policies of a shape (..., S, A)."""
    return np.full(shape, 1 / shape[-1])


def greedy(q: np.ndarray) -> np.ndarray:
    """Make the policies (..., S, A) that take the action with the greatest value of q (..., S, A).

    Ties are broken at random, in the same way at every call.
    """
    tied = q >= q.max(axis=-1, keepdims=True) - TIE
    action = (_priorities(q.shape) * tied).argmax(axis=-1)
    return np.eye(q.shape[-1])[action]


@cache
def _priorities(shape: tuple[int, ...]) -> np.ndarray:
    """Random positive priorities of tied actions, the same at every call."""
    return 1 + generator(0, "greedy", shape[-2], "control ties").random(shape)


def draw_processes(place: Place, size: int, rng: np.random.Generator) -> Processes:
    """Draw random processes of a place, with rewards uniform in [-1, 1]."""
    states, actions = place.states, place.actions
    if place.family == "dirichlet":
        concentration = rng.choice(place.concentrations, (size, 1, 1, 1))
        gammas = rng.standard_gamma(concentration, (size, states, actions, states))
        transition = gammas / gammas.sum(axis=-1, keepdims=True)
        return Processes(transition, rng.uniform(-1, 1, (size, states, actions)))
    chains, reward = ENVIRONMENTS[place.family](states, size * actions, rng)
    chains = chains.reshape(size, actions, states, states).swapaxes(1, 2)
    return Processes(np.ascontiguousarray(chains), reward.reshape(size, actions, states).swapaxes(1, 2))


def draw_policies(shape: tuple[int, int, int], soft_share: float, rng: np.random.Generator) -> np.ndarray:
    """Draw random policies (N, S, A).

    A policy is soft with the probability ``soft_share``: its action probabilities are uniform on the simplex.  Other
    policies take one random action in each state.
    """
    soft_policy = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    greedy_policy = greedy(rng.random(shape))
    is_soft = rng.random((shape[0], 1, 1)) < soft_share
    return np.where(is_soft, soft_policy, greedy_policy)


def pair_transitions(transition: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """Compute p_pi (N, d, d) from transitions (N, S, A, S) and policies (N, S, A).

    With shares of transitions instead of probabilities, the result is the expected shares of transitions between pairs.
    """
    size, states, actions = policy.shape
    pairs = states * actions
    # Rows of all next pairs are several times as fast as an ``einsum`` with a short last axis.
    product = np.repeat(transition, actions, axis=-1) * policy.reshape(size, 1, 1, pairs)
    return product.reshape(size, pairs, pairs)


@kernel
def follow(d, cumulative, uniforms, paths):
    """Fill paths (N, W, T+1) of walkers from their first pairs.

    ``cumulative`` (N, d, d) has the sums along the rows of p_pi, and ``uniforms`` (N, W, T) numbers from [0, 1).  The
    next pair is the number of sums that are not above the uniform number: a count takes no branch, and a branch would
    often be mispredicted.  Walkers advance together, so that the processor overlaps their steps.
    """
    tasks, walkers, length = paths.shape
    for i in range(tasks):
        for t in range(1, length):
            for w in range(walkers):
                x = paths[i, w, t - 1]
                # The sum of a row can be below one by rounding.
                u = min(uniforms[i, w, t - 1], cumulative[i, x, -1] * (1 - 1e-15))
                y = 0
                for k in range(len(d)):
                    y += u >= cumulative[i, x, k]
                paths[i, w, t] = y


def pair_paths(
    processes: Processes, policy: np.ndarray, walkers: int, steps: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw paths of pairs under policies, from first pairs that are uniform.

    Parameters
    ----------
    processes : Processes, N of them
    policy : (N, S, A) array
    walkers : int, number W of paths in each process
    steps : int, T
    rng : numpy.random.Generator

    Returns
    -------
    paths : (N, W, T+1) int array of pairs
    """
    number, states, actions = policy.shape
    pairs = states * actions
    paths = np.empty((number, walkers, steps + 1), np.uint16)
    paths[..., 0] = rng.integers(pairs, size=(number, walkers))
    cumulative = pair_transitions(processes.transition, policy).cumsum(axis=-1)
    for block in blocks(number):
        uniforms = rng.random((len(paths[block]), walkers, steps))
        follow(size(pairs), cumulative[block], uniforms, paths[block])
    return paths


def blocks(number: int) -> list[slice]:
    """Split N processes into slices of ``BLOCK``."""
    return [slice(first, first + BLOCK) for first in range(0, number, BLOCK)]


def transition_counts(paths: np.ndarray, lengths: np.ndarray | int, states: int, actions: int) -> np.ndarray:
    """Count the transitions (s, a, s') among the first steps of paths of pairs.

    Parameters
    ----------
    paths : (N, T+1) int array of pairs
    lengths : int or (N,) array, numbers of steps that count
    states, actions : int, S and A

    Returns
    -------
    counts : (N, S, A, S) array of floats
    """
    lengths = np.broadcast_to(lengths, len(paths))
    pair_counts = sampling.transition_counts(paths[:, :-1], paths[:, 1:], lengths, states * actions)
    return pair_counts.reshape(-1, states, actions, states, actions).sum(axis=-1).astype(float)
