"""Tasks with features, prompts and held-out tasks of a setting; all questions of the study share them.

A setting is a dict with the keys of ``main`` in ``config.yaml``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from ictd.mrp import Environment, TaskDistribution, Tasks, sample_tasks, stationary_distribution, value_function
from ictd.prompt import Context
from ictd.rng import generator
from ictd.sampling import sample_paths
from ictd.training_data import EnumeratedPrompts, SampledPrompts


def dense(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random chains: each row of the transition matrix is uniform on the simplex; rewards are uniform in [-1, 1]."""
    return rng.dirichlet(np.ones(states), (size, states)), rng.uniform(-1, 1, (size, states))


def centred(env: str | Environment) -> Environment:
    """An environment whose rewards have a stationary mean of zero, and so have the true values."""

    def draw(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        tasks = sample_tasks(env, states, size, rng)
        mean = (tasks.stationary * tasks.reward).sum(axis=1, keepdims=True)
        return tasks.transition, tasks.reward - mean

    return draw


ENVIRONMENTS: dict[str, str | Environment] = {"boyan": "boyan", "loop": "loop", "dense": dense}
ENVIRONMENTS |= {f"{name}_centred": centred(env) for name, env in ENVIRONMENTS.items()}


def normal(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Independent normal entries; the mean square of a state's features is 1."""
    return rng.normal(0, 1 / np.sqrt(d), (size, states, d))


def scaled(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Normal features, the columns multiplied by numbers from 1/2 to 2, the same in all tasks."""
    return normal(size, states, d, rng) * np.geomspace(0.5, 2, d)


def constant(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Normal features, of which the last one is replaced by 1 in all states."""
    features = normal(size, states, d, rng)
    features[..., -1] = 1
    return features


def binary(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Independent entries 0 and 1, divided by sqrt(d); each feature is on in at least one state."""
    on = rng.uniform(size=(size, states, d)) < 0.5
    chosen = rng.integers(states, size=(size, 1, d))
    np.put_along_axis(on, chosen, True, axis=1)
    return on / np.sqrt(d)


def aggregated(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Groups of states as equal in size as possible, at random in each task; a feature is 1 in its group."""
    group = rng.permuted(np.broadcast_to(np.arange(states) % d, (size, states)), axis=1)
    return np.eye(d)[group]


def hat(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Linear interpolation between d states, as in Boyan (Machine Learning 49, 2002); the same in all tasks."""
    position = np.linspace(0, d - 1, states)[:, None]
    return np.broadcast_to(np.maximum(0, 1 - np.abs(position - np.arange(d))), (size, states, d))


def rotated(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """One-hot features in a random orthonormal basis, so that values are represented exactly; needs d = n."""
    q, r = np.linalg.qr(rng.normal(size=(size, states, states)))
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[:, None]


def one_hot(size: int, states: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """One-hot features; needs d = n."""
    return np.broadcast_to(np.eye(states), (size, states, states))


FEATURES = {
    function.__name__: function for function in (normal, scaled, constant, binary, aggregated, hat, rotated, one_hot)
}
# Features that all tasks of a seed share.
SHARED = ("fixed", "hat", "one_hot")


def draw_features(setting: dict, size: int, rng: np.random.Generator, seed: int) -> np.ndarray:
    """Features (size, n, d) of a setting.  "fixed" are normal, and the same in all tasks of a seed."""
    kind, states, d = (setting[key] for key in ("features", "states", "dimension"))
    if kind == "fixed":
        own = generator(seed, setting["env"], states, "fixed features")
        return np.broadcast_to(normal(1, states, d, own), (size, states, d))
    return FEATURES[kind](size, states, d, rng)


def distribution(setting: dict, seed: int) -> TaskDistribution:
    """Distribution of the tasks of a setting; columns are weighted by mu if its prompts are "weighted"."""
    return TaskDistribution(
        ENVIRONMENTS[setting["env"]],
        setting["states"],
        features=lambda size, states, rng: draw_features(setting, size, rng, seed),
        behaviour=_stationary if setting["prompts"] == "weighted" else None,
    )


def _stationary(transition: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return stationary_distribution(transition)


@dataclass(frozen=True)
class ShuffledPrompts:
    """Enumerated prompts whose next features come from other states: a negative control."""

    def contexts(self, tasks: Tasks, rng: np.random.Generator) -> Context:
        """Averages over the context of each of N tasks, (N, d), with the rows of p in random order."""
        return Context.enumerated(shuffled_rows(tasks.transition, rng), tasks.reward, tasks.features)


def prompts_of(setting: dict) -> EnumeratedPrompts | SampledPrompts | ShuffledPrompts:
    """Prompts of pretraining: "enumerated", "weighted", "shuffled", or a number of steps of sampled contexts."""
    kind = setting["prompts"]
    if isinstance(kind, int):
        return SampledPrompts(kind, kind)
    return ShuffledPrompts() if kind == "shuffled" else EnumeratedPrompts()


@dataclass(frozen=True)
class HeldOut:
    """Tasks that no model was pretrained on, with the columns of their prompts.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    phi, phi_next : (N, m, d) arrays, the features and next features of the columns
    reward : (N, m) array
    weight : (N, m) array, weights of the columns, which sum to one
    chain : (N, n, n) array, the transitions that enumerated prompts show; None for trajectories
    paths : (N, m+1) int array, states of trajectories; None for enumerated prompts
    discount : float
    """

    tasks: Tasks
    phi: np.ndarray
    phi_next: np.ndarray
    reward: np.ndarray
    weight: np.ndarray
    chain: np.ndarray | None
    paths: np.ndarray | None
    discount: float

    @classmethod
    def enumerated(cls, tasks: Tasks, chain: np.ndarray, weight: np.ndarray, discount: float) -> Self:
        """Tasks whose prompts have a column for each state, with its next features under a chain (N, n, n)."""
        return cls(tasks, tasks.features, chain @ tasks.features, tasks.reward, weight, chain, None, discount)

    @cached_property
    def value(self) -> np.ndarray:
        """True values v (N, n)."""
        return value_function(self.tasks.transition, self.tasks.reward, self.discount)

    @cached_property
    def context(self) -> Context:
        """The averages over the columns of each prompt."""
        root = np.sqrt(self.weight * self.weight.shape[1])[..., None]
        return Context.from_features(root * self.phi, root * self.phi_next, root[..., 0] * self.reward)

    @cached_property
    def gram(self) -> np.ndarray:
        """The matrix G (N, 2d+1, 2d+1) of each prompt (``Context.gram_matrix``)."""
        return self.context.gram_matrix(self.discount)

    def gram_of(self, *blocks: np.ndarray) -> np.ndarray:
        """G (N, D, D) of prompts whose columns [blocks; r] have other blocks (N, m, d)."""
        root = np.sqrt(self.weight * self.weight.shape[1])[..., None]
        columns = root * np.concatenate([*blocks, self.reward[..., None]], axis=-1)
        return columns.mT @ columns / columns.shape[1]

    def msve(self, w: np.ndarray) -> np.ndarray:
        """MSVE (..., N) of the estimates Phi w, for w (..., N, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (self.tasks.stationary * (self.value - np.matvec(self.tasks.features, w)) ** 2).sum(axis=-1)


def held_out(setting: dict, size: int, seed: int, purpose: str) -> HeldOut:
    """Draw held-out tasks of a setting.

    Parameters
    ----------
    setting : dict
    size : int, number of tasks N
    seed : int, of the random numbers, and of features that all tasks of a seed share
    purpose : str, name of the random number stream, such as "test"
    """
    rng = generator(seed, setting["env"], setting["states"], f"features {purpose}")
    tasks = distribution(setting, seed).sample(size, rng)
    kind = setting["prompts"]
    if isinstance(kind, int):
        paths = sample_paths(tasks, kind, rng)
        visited = np.take_along_axis(tasks.features, paths[..., None], axis=1)
        reward = np.take_along_axis(tasks.reward, paths[:, :-1], axis=1)
        weight = np.full_like(reward, 1 / kind)
        return HeldOut(tasks, visited[:, :-1], visited[:, 1:], reward, weight, None, paths, setting["discount"])
    chain = shuffled_rows(tasks.transition, rng) if kind == "shuffled" else tasks.transition
    weight = tasks.stationary if kind == "weighted" else np.full_like(tasks.reward, 1 / tasks.states)
    return HeldOut.enumerated(tasks, chain, weight, setting["discount"])


def shuffled_rows(transition: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows of each chain (N, n, n) in random order."""
    states = transition.shape[-1]
    order = rng.permuted(np.broadcast_to(np.arange(states), transition.shape[:2]), axis=1)
    return np.take_along_axis(transition, order[..., None], axis=1)
