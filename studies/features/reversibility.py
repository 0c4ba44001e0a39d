"""Why eta is positive: test functions stand for eligibility, as far as the chain is like its time reversal.

With columns weighted by mu, the test functions z that give the least MSVE are the rows of (I - gamma p~)^{-1} Phi, with
the reversed chain p~(s' | s) = mu(s') p(s | s') / mu(s) (Scherrer, ICML 2010).  To first order they are
phi + gamma P~ phi, and prompts show P phi in place of P~ phi.  The family of chains

    p_x = (1 + x)/2 p + (1 - x)/2 p~,    x from 0 (reversible) to 1 (p itself),

has the same mu for all x (additive reversibilisation, Fill, Annals of Applied Probability 1(1), 1991).  For small
gamma and random features the regression of P~ phi on P phi has the coefficient

    sum_ij mu_i p_ij p~_ij / sum_ij mu_i p_ij^2,

which is 1 for a reversible chain and 0 for a directed ring.

Features that all states share give another reason for a positive eta, because p and p~ both keep constants: "centred"
features are normal ones without their mean sum_s mu(s) phi(s).  "rotated" features are those of tabular tasks.
A control are test functions with the rows of p in random order: they have the mean feature, and no eligibility.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from ictd.mrp import Environment, Tasks, sample_tasks, stationary_distribution
from ictd.rng import generator
from ictd.storage import save_table
from ictd.training_data import EnumeratedPrompts
from studies.features.algorithms import best_limit, limit_error, projection, trimmed_mean
from studies.features.coefficients import measures
from studies.features.pretrain import pretrained_towards_values
from studies.features.symmetric import FAMILIES, best_of_starts
from studies.features.tasks import ENVIRONMENTS, HeldOut, normal, rotated, shuffled_rows

# Directions of B, as in ``symmetric``, for prompts with the blocks phi, gamma P phi and gamma P~ phi.
THREE_BLOCKS = np.eye(3)[:, :, None] * np.array([-1.0, 1.0, 0.0])
# Values of alpha and eta from which descents start.
STARTS = (0.3, 0.0), (1.5, 0.5)
KINDS = "normal", "centred", "rotated"
AXES = "chain", "features", "discount", "drift", "seed", "method"
COLUMNS = (*AXES, "eta", "zeta", "error", "cosine")


def ring(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Directed rings: each state leads to the next one; rewards are uniform in [-1, 1]."""
    transition = np.broadcast_to(np.roll(np.eye(states), 1, axis=1), (size, states, states))
    return transition, rng.uniform(-1, 1, (size, states))


CHAINS: dict[str, str | Environment] = {"ring": ring, **ENVIRONMENTS}


def reversed_chain(transition: np.ndarray, stationary: np.ndarray) -> np.ndarray:
    """p~(s' | s) = mu(s') p(s | s') / mu(s), for p (N, n, n) and mu (N, n)."""
    return transition.mT * stationary[:, None, :] / stationary[:, :, None]


@dataclass(frozen=True)
class MixedChains:
    """Distribution of tasks with the chains p_x and with columns weighted by mu.

    Parameters
    ----------
    chain : str, a key of ``CHAINS``
    drift : float, x
    features : str, one of ``KINDS``
    states, dimension : int, n and d; rotated features have d = n
    """

    chain: str
    drift: float
    features: str
    states: int
    dimension: int

    @property
    def name(self) -> str:
        """Name of the random number streams."""
        return f"features {self.chain} {self.features}"

    def sample(self, size: int, rng: np.random.Generator) -> Tasks:
        """Draw ``size`` tasks."""
        own = sample_tasks(CHAINS[self.chain], self.states, size, rng)
        mu = own.stationary
        backward = reversed_chain(own.transition, mu)
        transition = (1 + self.drift) / 2 * own.transition + (1 - self.drift) / 2 * backward
        transition /= transition.sum(axis=-1, keepdims=True)
        draw = rotated if self.features == "rotated" else normal
        features = draw(size, self.states, self.dimension, rng)
        if self.features == "centred":
            features = features - (mu[..., None] * features).sum(axis=1, keepdims=True)
        return Tasks(transition, own.reward, features=features, behaviour=stationary_distribution(transition))


def draw_held_out(distribution: MixedChains, size: int, discount: float, seed: int, purpose: str) -> HeldOut:
    """Draw held-out tasks of these chains."""
    rng = generator(seed, distribution.name, distribution.states, f"features {purpose}")
    tasks = distribution.sample(size, rng)
    return HeldOut.enumerated(tasks, tasks.transition, tasks.stationary, discount)


def third_block(data: HeldOut, kind: str) -> np.ndarray:
    """P~ phi (N, n, d) if the kind is "reversed", and P phi with the rows of P in random order if it is "shuffled"."""
    if kind == "reversed":
        return reversed_chain(data.chain, data.tasks.stationary) @ data.phi
    rng = generator(0, "features", data.tasks.states, "third block")
    return shuffled_rows(data.chain, rng) @ data.phi


def three_block_gram(data: HeldOut, kind: str) -> np.ndarray:
    """G (N, 3d+1, 3d+1) of prompts with columns [phi; gamma P phi; gamma third block; r]."""
    return data.gram_of(data.phi, data.discount * data.phi_next, data.discount * third_block(data, kind))


def three_block_functions(data: HeldOut, eta: float, zeta: float, kind: str) -> np.ndarray:
    """Test functions phi + eta gamma P phi + zeta gamma (third block) (N, n, d)."""
    return data.phi + data.discount * (eta * data.phi_next + zeta * third_block(data, kind))


def span_cosine(data: HeldOut, z: np.ndarray) -> float:
    """Mean squared cosine of the angles between the spans of z and (I - gamma p~)^{-1} Phi, in the norm of mu."""
    identity, root = np.eye(data.tasks.states), np.sqrt(data.tasks.stationary)[..., None]
    backward = reversed_chain(data.chain, data.tasks.stationary)
    best = np.linalg.solve(identity - data.discount * backward, data.phi)
    bases = [np.linalg.qr(root * functions)[0] for functions in (z, best)]
    return float(((bases[0].mT @ bases[1]) ** 2).sum(axis=(1, 2)).mean() / z.shape[-1])


def first_order(data: HeldOut) -> float:
    """Regression coefficient of P~ phi on P phi, sum mu_i p_ij p~_ij / sum mu_i p_ij^2 over tasks."""
    weight, backward = data.tasks.stationary[..., None], reversed_chain(data.chain, data.tasks.stationary)
    return float((weight * data.chain * backward).sum() / (weight * data.chain**2).sum())


def multiples_of_alpha(data: HeldOut, directions: np.ndarray, G: np.ndarray, depth: int) -> np.ndarray:
    """The other numbers over alpha, (K - 1,), for the numbers (K,) with the least mean MSVE."""
    starts = [np.pad([alpha, alpha * eta], (0, len(directions) - 2)) for alpha, eta in STARTS]
    numbers = best_of_starts(starts, directions, data, G, depth)
    return numbers[1:] / numbers[0]


def main(
    chain: str,
    setting: dict,
    drifts: list[float],
    discounts: list[float],
    tasks: int,
    seeds: int,
    pretrained_drifts: list[float],
    pretrained_seeds: int,
    updates: int,
    batch_size: int,
    learning_rate: float,
    output: Path,
) -> None:
    """Write eta, zeta, and how good their test functions are, for each kind of features, discount, drift and seed.

    ``error`` is the trimmed mean of the MSVE in the limit of many layers, and ``cosine`` that of ``span_cosine``, on
    other tasks.  The methods are

    - ``first_order``: the coefficient that is expected for small gamma;
    - ``features``: TD's test functions phi;
    - ``limit``, ``limit_reversed``, ``limit_shuffled``: the best eta, or zeta, in the limit of many layers;
    - ``two_numbers``: alpha and eta with the least mean MSVE at the depth of the setting;
    - ``three_numbers``, ``three_shuffled``: alpha, eta and zeta, for prompts with a third block, gamma P~ phi or, as a
      control, next features of other states;
    - ``pretrained``: all of u and A, pretrained towards true values;
    - ``projection``: the least MSVE.

    For other discounts than that of the setting only the limits are computed.  With rotated features all errors are
    rounding errors.
    """
    rows = []
    for kind, discount, drift, seed in product(KINDS, discounts, drifts, range(seeds)):
        own = setting | {"env": chain, "discount": discount}
        if kind == "rotated":
            own["dimension"] = own["states"]
        distribution = MixedChains(chain, drift, kind, own["states"], own["dimension"])
        tuning, test = (draw_held_out(distribution, tasks, discount, seed, purpose) for purpose in ("tuning", "test"))
        found = limits(tuning, kind)
        if discount == setting["discount"]:
            found |= fits(tuning, kind, drift, own["depth"])
            if drift in pretrained_drifts and seed < pretrained_seeds:
                weights = pretrained_towards_values(
                    distribution, EnumeratedPrompts(), own, updates, seed, batch_size, learning_rate
                )
                if weights is not None:
                    found["pretrained"] = float(measures(weights.u, weights.A)["eta"]), 0.0
        place = chain, kind, discount, drift, seed
        for method, (eta, zeta) in found.items():
            z = three_block_functions(test, eta, zeta, "shuffled" if method.endswith("shuffled") else "reversed")
            rows.append((*place, method, eta, zeta, limit_error(test, z), span_cosine(test, z)))
        least = float(trimmed_mean(test.msve(projection(test))))
        rows.append((*place, "projection", np.nan, np.nan, least, 1.0))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def limits(tuning: HeldOut, kind: str) -> dict[str, tuple[float, float]]:
    """eta and zeta in the limit of many layers, by the names of the methods of ``main``."""
    found = {"first_order": (first_order(tuning), 0.0), "features": (0.0, 0.0)}
    # In tabular tasks all test functions give the true values.
    if kind != "rotated":
        found["limit"] = best_limit(tuning, tuning.phi_next), 0.0
        for third in ("reversed", "shuffled"):
            found[f"limit_{third}"] = 0.0, best_limit(tuning, third_block(tuning, third))
    return found


def fits(tuning: HeldOut, kind: str, drift: float, depth: int) -> dict[str, tuple[float, float]]:
    """eta and zeta with the least mean MSVE at L layers, by the names of the methods of ``main``."""
    (eta,) = multiples_of_alpha(tuning, FAMILIES["two_numbers"], tuning.gram, depth)
    found = {"two_numbers": (float(eta), 0.0)}
    # The blocks of a reversible chain are equal, so that its numbers are not determined.
    if kind != "rotated" and drift > 0:
        for method, third in {"three_numbers": "reversed", "three_shuffled": "shuffled"}.items():
            found[method] = multiples_of_alpha(tuning, THREE_BLOCKS, three_block_gram(tuning, third), depth)
    return found
