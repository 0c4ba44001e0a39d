"""Markov decision processes, their policies, and what is true of them.

A set of N has ``transition`` p (N, S, A, S) and ``reward`` r (N, S, A).  A policy pi (N, S, A) makes of each a Markov
reward process on its d = SA pairs x = (s, a), whose value function is q:

    p_pi((s', a') | (s, a)) = p(s' | s, a) pi(a' | s'),    q = (I - gamma p_pi)^{-1} r.
"""

from typing import NamedTuple

import numpy as np

from ictd.kernels import kernel
from ictd.mrp import ENVIRONMENTS, value_function
from ictd.rng import generator

ENOUGH = 20  # More steps than policy iteration takes on as few pairs as there are here.
TIE = 1e-10  # Values that differ by less are alike.


class Processes(NamedTuple):
    """Transitions (N, S, A, S) and rewards (N, S, A)."""

    transition: np.ndarray
    reward: np.ndarray

    def values(self, policy: np.ndarray, discount: float) -> np.ndarray:
        """q (N, S, A) of policies (N, S, A)."""
        of_states = np.einsum("nsa,nsaj->nsj", policy, self.transition)
        v = value_function(of_states, (policy * self.reward).sum(axis=-1), discount)
        return self.reward + discount * np.einsum("nsaj,nj->nsa", self.transition, v)

    def optimal(self, discount: float) -> np.ndarray:
        """An optimal policy (N, S, A), by policy iteration."""
        policy = uniform(self.reward.shape)
        for _ in range(ENOUGH):
            policy = greedy(self.values(policy, discount))
        return policy

    def worth(self, policy: np.ndarray, discount: float) -> np.ndarray:
        """Value (N,) of policies, the mean of v over states."""
        return (self.values(policy, discount) * policy).sum(axis=-1).mean(axis=-1)


def uniform(shape: tuple[int, ...]) -> np.ndarray:
    """Policies of this shape that take each action alike."""
    return np.full(shape, 1 / shape[-1])


def greedy(q: np.ndarray) -> np.ndarray:
    """Policies that take the action of the greatest value; of several it is a random one, the same at each call."""
    order = 1 + generator(0, "greedy", q.shape[-2], "control ties").random(q.shape)
    return np.eye(q.shape[-1])[(order * (q >= q.max(axis=-1, keepdims=True) - TIE)).argmax(axis=-1)]


def draw_processes(family: str, size: int, states: int, actions: int, concentrations: list[float], rng) -> Processes:
    """Random processes: of the family "dirichlet" with Dirichlet rows, of one of these concentrations for each process;
    of others each action is a random chain of the environment of that name.  Rewards are uniform in [-1, 1]."""
    shape = (size, states, actions)
    if family == "dirichlet":
        gammas = rng.standard_gamma(rng.choice(concentrations, (size, 1, 1, 1)), (*shape, states))
        return Processes(gammas / gammas.sum(axis=-1, keepdims=True), rng.uniform(-1, 1, shape))
    chains, reward = ENVIRONMENTS[family](states, size * actions, rng)
    chains = chains.reshape(size, actions, states, states)
    return Processes(np.ascontiguousarray(chains.swapaxes(1, 2)), reward.reshape(size, actions, states).swapaxes(1, 2))


def draw_policies(kind: str, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    """Random policies (N, S, A): "soft" ones, uniform among all, "greedy" ones, or for "both" either by a coin."""
    soft, one = rng.dirichlet(np.ones(shape[-1]), shape[:-1]), greedy(rng.random(shape))
    return np.where(rng.random((shape[0], 1, 1)) < {"soft": 1, "greedy": 0, "both": 0.5}[kind], soft, one)


def pair_transitions(transition: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """p_pi (N, d, d) of pairs; shares of transitions in place of p give those of pairs that are expected."""
    size, states, actions = policy.shape
    return np.einsum("nsaj,njb->nsajb", transition, policy).reshape(size, states * actions, states * actions)


@kernel
def follow(cumulative, uniforms, paths):
    """Go on from paths[i, w, 0] for each walker w of chain i; ``cumulative`` (N, d, d) are sums along rows of p."""
    for i, w in np.ndindex(paths.shape[:2]):
        x = paths[i, w, 0]
        for t in range(1, paths.shape[2]):
            u, y = min(uniforms[i, w, t - 1], cumulative[i, x, -1] * (1 - 1e-15)), 0
            while u >= cumulative[i, x, y]:
                y += 1
            x = y
            paths[i, w, t] = x


def pair_paths(processes: Processes, policy: np.ndarray, walkers: int, steps: int, rng: np.random.Generator):
    """Pairs (N, W, steps + 1) that walkers go through under policies, from pairs drawn uniformly."""
    size, states, actions = policy.shape
    paths = np.empty((size, walkers, steps + 1), np.int64)
    paths[..., 0] = rng.integers(states * actions, size=(size, walkers))
    cumulative = pair_transitions(processes.transition, policy).cumsum(axis=-1)
    follow(cumulative, rng.random((size, walkers, steps)), paths)
    return paths


def transition_counts(paths: np.ndarray, lengths: np.ndarray | int, states: int, actions: int) -> np.ndarray:
    """How often (N, S, A, S) each transition is among the first steps, ``lengths``, of paths (N, 1, steps + 1)."""
    size, steps, paths = len(paths), paths.shape[-1] - 1, paths[:, 0]
    place = (np.arange(size)[:, None] * states * actions + paths[:, :-1]) * states + paths[:, 1:] // actions
    within = np.broadcast_to(np.arange(steps) < np.reshape(lengths, (-1, 1)), place.shape)
    counts = np.bincount(place[within], minlength=size * states * actions * states)
    return counts.reshape(size, states, actions, states).astype(float)


def unseen_processes(place: dict, size: int, concentrations: list[float], purpose: str):
    """Processes of a place for a purpose, none of them seen in pretraining, and the generator for what they do."""
    rng = generator(0, f"{place['family']}-{place['actions']}", place["states"], f"control {purpose}")
    return draw_processes(place["family"], size, place["states"], place["actions"], concentrations, rng), rng
