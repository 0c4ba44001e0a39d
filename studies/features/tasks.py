"""Tasks with features of a setting, and held-out tasks with their prompts."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ictd.mrp import Environment, TaskDistribution, Tasks, sample_tasks, value_function
from ictd.rng import generator
from studies.features.setting import Setting


def dense(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random chains: each row of the transition matrix is uniform on the simplex; rewards are uniform in [-1, 1]."""
    return rng.dirichlet(np.ones(states), (size, states)), rng.uniform(-1, 1, (size, states))


ENVIRONMENTS: dict[str, str | Environment] = {"boyan": "boyan", "loop": "loop", "dense": dense}


def reversible(env: str | Environment) -> Environment:
    """An environment with the reversible chains (p + p~) / 2 in place of p, which have the same mu.

    In reversed time, the chain has p~(s' | s) = mu(s') p(s | s') / mu(s).
    Source: additive reversibilisation, Fill, Annals of Applied Probability 1(1), 1991.
    """

    def draw(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        tasks = sample_tasks(env, states, size, rng)
        p, mu = tasks.transition, tasks.stationary
        mixed = (p + p.mT * mu[:, None, :] / mu[:, :, None]) / 2
        return mixed / mixed.sum(axis=-1, keepdims=True), tasks.reward

    return draw


def draw_features(setting: Setting, size: int, rng: np.random.Generator) -> np.ndarray:
    """Features (size, n, d) of a setting.

    "normal" features have independent normal entries, with a mean square of 1 in each state.  With "constant" features
    the last one is 1 in all states.  "orthonormal" features are one-hot ones in a random basis, with d = n.
    """
    n, d = setting.states, setting.dimension
    if setting.features == "orthonormal":
        q, r = np.linalg.qr(rng.normal(size=(size, n, n)))
        return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[:, None]
    features = rng.normal(0, 1 / np.sqrt(d), (size, n, d))
    if setting.features == "constant":
        features[..., -1] = 1
    return features


def distribution(setting: Setting, is_reversible: bool = False) -> TaskDistribution:
    """Distribution of the tasks of a setting."""
    env = ENVIRONMENTS[setting.env]
    return TaskDistribution(
        reversible(env) if is_reversible else env,
        setting.states,
        features=lambda size, states, rng: draw_features(setting, size, rng),
    )


@dataclass(frozen=True)
class HeldOut:
    """Tasks that no Transformer was pretrained on, with enumerated prompts.

    Parameters
    ----------
    tasks : Tasks, N of them with n states and d features
    weight : (N, n) array, weights of the columns of each prompt, which sum to one
    discount : float, gamma
    """

    tasks: Tasks
    weight: np.ndarray
    discount: float

    @property
    def phi(self) -> np.ndarray:
        """Features (N, n, d)."""
        return self.tasks.features

    @cached_property
    def following(self) -> np.ndarray:
        """Discounted expected next features gamma P phi (N, n, d)."""
        return self.discount * (self.tasks.transition @ self.phi)

    @cached_property
    def value(self) -> np.ndarray:
        """True values v (N, n)."""
        return value_function(self.tasks.transition, self.tasks.reward, self.discount)

    def mean(self, blocks: np.ndarray) -> np.ndarray:
        """Mean (N, 1, d) of (N, n, d) arrays over the columns."""
        return (self.weight[..., None] * blocks).sum(axis=1, keepdims=True)

    def msve(self, w: np.ndarray) -> np.ndarray:
        """MSVE (..., N) of the estimates Phi w, for w (..., N, d); infinite after an overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            errors = (self.tasks.stationary * (self.value - np.matvec(self.phi, w)) ** 2).sum(axis=-1)
        return np.where(np.isnan(errors), np.inf, errors)


def held_out(setting: Setting, size: int, seed: int, purpose: str, columns: str = "equal") -> HeldOut:
    """Draw held-out tasks of a setting.

    Parameters
    ----------
    setting : Setting
    size : int, number of tasks N
    seed : int
    purpose : str, name of the random number stream, such as "test"
    columns : str
        "equal" weights of the columns, as in pretraining; weights mu, "weighted"; or weights mu and "reversible"
        chains, which have the same mu.
    """
    stream = setting.env if columns == "equal" else f"features {setting.env} {setting.features}"
    rng = generator(seed, stream, setting.states, f"features {purpose}")
    tasks = distribution(setting, columns == "reversible").sample(size, rng)
    weight = np.full_like(tasks.reward, 1 / tasks.states) if columns == "equal" else tasks.stationary
    return HeldOut(tasks, weight, setting.discount)
