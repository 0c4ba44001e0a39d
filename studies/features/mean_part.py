"""Is eta for the mean TD error, or for the TD errors of single states?  Both parts of gamma P phi get a coefficient.

With weights c of the columns, next features are their mean and a rest whose mean is zero,

    gamma P phi = gamma m + gamma (P phi - m),    m = sum_s c(s) (P phi)(s).

With test functions phi + eta_m gamma m + eta_r gamma (P phi - m), an update of ``symmetric`` is

    w <- w + alpha (mean of delta phi) + alpha gamma (eta_m (mean of delta) m + eta_r cov(delta, P phi)),

with means and the covariance over the columns: eta_m weighs the mean TD error and nothing else, and eta_r weighs only
deviations from it.  Prompts of the paper do not show the parts, so that their coefficients are equal, eta.

What eligibility predicts: with c = mu, the test functions of the least MSVE are (I - gamma P~)^{-1} phi (Scherrer, ICML
2010; ``reversibility``).  P~ keeps the mean, so that their mean is m / (1 - gamma) for any chain, that is eta_m =
1 / (1 - gamma) (the constant in the value function is the average reward over 1 - gamma: Tsitsiklis and Van Roy,
Machine Learning 49, 2002).  Their rest is P~ phi - m to first order, so that eta_r is about 1 for a reversible chain.
A first-order step of eligibility, phi + gamma P phi, has eta_m = eta_r = 1.

Controls of the rest are next features of other columns; their mean is the same.  A control of the mean is that of
another task, "exchanged".
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import Tasks
from ictd.prompt import Gram
from ictd.rng import generator
from ictd.storage import load_arrays, save_table
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, estimates, initial_weights
from studies.features.algorithms import projection, trimmed_mean
from studies.features.coefficients import measures, permutation_fit
from studies.features.reversibility import MixedChains, draw_held_out
from studies.features.symmetric import least_squares, resting_point
from studies.features.tasks import HeldOut, distribution, held_out

# What a block holds, in the order of a column: phi, gamma m, gamma (P phi - m), and a control times gamma.
BLOCKS = "phi", "mean", "rest", "control"
# The TD error in terms of the blocks, without the reward.
TD_ERROR = np.array([-1.0, 1.0, 1.0, 0.0])
PHI, MEAN, REST, CONTROL = np.eye(4)[:, :, None] * TD_ERROR
# Directions of B, as in ``symmetric``, of each fit; its numbers are alpha, and alpha times the other coefficients.
FITS = {
    "td": np.stack([PHI]),
    "tied": np.stack([PHI, MEAN + REST]),
    "mean": np.stack([PHI, MEAN]),
    "rest": np.stack([PHI, REST]),
    "split": np.stack([PHI, MEAN, REST]),
    "other_states": np.stack([PHI, MEAN, CONTROL]),
}
# The fit whose control is the mean of another task.
EXCHANGED = np.stack([PHI, REST, CONTROL])
# Fits at which TD rests; one number has no use, because its resting point is TD.
RESTING = "tied", "split"
# Alphas from which descents start.
ALPHAS = 0.3, 1.5
# Candidates of eta_m and eta_r in the limit of many layers.
MEANS, RESTS = np.linspace(-4, 20, 25), np.linspace(-2, 2, 21)
AXES = "setting", "case", "target", "seed", "method"
COLUMNS = (*AXES, "alpha", "mean", "rest", "control", "error", "share")


def parts(data: HeldOut, mean: str = "columns") -> tuple[np.ndarray, np.ndarray]:
    """The mean m (N, 1, d) and the rest P phi - m (N, m, d) of the next features of the columns.

    The mean is that over "columns", with their weights, or the one under the "stationary" distribution, sum_s mu(s)
    phi(s).
    """
    if mean == "stationary":
        m = (data.tasks.stationary[..., None] * data.tasks.features).sum(axis=1, keepdims=True)
    else:
        m = (data.weight[..., None] * data.phi_next).sum(axis=1, keepdims=True)
    return m, data.phi_next - m


def other_states(data: HeldOut, seed: int) -> np.ndarray:
    """The rest (N, m, d) with next features of other columns: a random order of the columns, without its mean."""
    rng = generator(seed, "features", data.tasks.states, "mean part control")
    order = rng.permuted(np.broadcast_to(np.arange(data.phi.shape[1]), data.phi.shape[:2]), axis=1)
    shuffled = np.take_along_axis(data.phi_next, order[..., None], axis=1)
    return shuffled - (data.weight[..., None] * shuffled).sum(axis=1, keepdims=True)


def blocks_gram(data: HeldOut, mean: np.ndarray, rest: np.ndarray, control: np.ndarray) -> Gram:
    """Averages over columns [phi; gamma m; gamma (P phi - m); gamma control; r] in the form that TF_L depends on."""
    root = np.sqrt(data.weight * data.weight.shape[1])[..., None]
    discounted = [data.discount * np.broadcast_to(block, data.phi.shape) for block in (mean, rest, control)]
    columns = root * np.concatenate([data.phi, *discounted, data.reward[..., None]], axis=-1)
    return replace(Gram.of_columns(columns.mT), queries=data.tasks.features)


def doubled(gram: Gram) -> Gram:
    """The same prompts for weights of 2d features [phi; gamma m], whose next ones are [gamma rest; gamma control].

    Queries are [phi; 0].  A Transformer of 2d features then reads all four blocks.
    """
    d = gram.queries.shape[-1]
    return replace(gram, queries=np.pad(gram.queries, [(0, 0), (0, 0), (0, d)]))


def on_blocks(weights: Weights, in_tests: np.ndarray) -> Weights:
    """Weights of 2d features on four blocks, with the same estimates as weights of d features on [phi; gamma P phi].

    With [phi; gamma P phi] = S (blocks), they are u S and S' A S.  ``in_tests`` (4,) multiplies the blocks in the test
    functions: with ones the estimates are the same, and a zero takes a block out.
    """
    d = weights.dimension
    S = np.kron([[1, 0, 0, 0], [0, 1, 1, 0]], np.eye(d))
    return Weights(weights.u @ S, np.repeat(in_tests, d)[:, None] * (S.T @ weights.A @ S))


def block_fit(A: np.ndarray, d: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of the nearest (k TD_ERROR') x I to weights A (4D, 4D), over the first d of D features.

    Each D x D block is fitted by multiples of I and 11', as in ``coefficients``.  The share is that of the squared
    norm of A, over these features, in (k TD_ERROR') x I.
    """
    D = len(A) // 4
    by_blocks = A.reshape(4, D, 4, D)[:, :d, :, :d].swapaxes(1, 2)
    k = permutation_fit(by_blocks)[0] @ TD_ERROR / (TD_ERROR**2).sum()
    return k, float(d * (TD_ERROR**2).sum() * (k**2).sum() / (by_blocks**2).sum())


@dataclass(frozen=True)
class Case:
    """Tasks and prompts of one kind, and the mean that is split off.

    Parameters
    ----------
    setting : dict, as in ``config.yaml``
    chains : MixedChains of columns weighted by mu, in place of the setting's own distribution; None for that one
    mean : str, as in ``parts``
    seeded : str, name of the random number streams
    """

    setting: dict
    chains: MixedChains | None = None
    mean: str = "columns"

    def draw(self, size: int, seed: int, purpose: str) -> HeldOut:
        """Draw held-out tasks."""
        if self.chains is None:
            return held_out(self.setting, size, seed, purpose)
        return draw_held_out(self.chains, size, self.setting["discount"], seed, purpose)


def cases_of(setting: dict) -> dict[str, Case]:
    """Cases by name: the setting's own prompts, and others to compare.

    With normal features and enumerated prompts there are the stationary mean in place of that over columns, columns
    that are weighted by mu, and the same with reversible chains.  With a constant feature there are features without
    it.
    """
    found = {"own": Case(setting)}
    if setting["features"] == "constant":
        found["without_constant"] = Case(setting | {"features": "normal", "dimension": setting["dimension"] - 1})
    if (setting["features"], setting["prompts"]) == ("normal", "enumerated") and "_centred" not in setting["env"]:
        found["stationary"] = Case(setting, mean="stationary")
        for name, drift in {"weighted": 1.0, "reversible": 0.0}.items():
            chains = MixedChains(setting["env"], drift, "normal", setting["states"], setting["dimension"])
            found[name] = Case(setting, chains)
    return found


def fit_numbers(data: HeldOut, gram: Gram, directions: np.ndarray, depth: int, alphas: tuple) -> np.ndarray:
    """Numbers of a fit with the least mean MSVE at L layers, by descents from TD with each of the alphas."""
    starts = [np.pad([alpha], (0, len(directions) - 1)) for alpha in alphas]
    ends = [least_squares(start, directions, data, gram, depth) for start in starts]
    return min(ends, key=lambda end: end[1])[0]


def error_of(numbers: np.ndarray, directions: np.ndarray, data: HeldOut, gram: Gram, depth: int) -> float:
    """Trimmed mean of the MSVE of weights with few numbers."""
    A = np.kron(np.tensordot(numbers, directions, axes=1), np.eye(data.phi.shape[-1]))
    return error_of_weights(Weights(np.zeros(len(A)), A), data, gram, depth)


def error_of_weights(weights: Weights, data: HeldOut, gram: Gram, depth: int) -> float:
    """Trimmed mean of the MSVE of weights on four blocks."""
    with np.errstate(over="ignore", invalid="ignore"):
        w = estimates(weights, gram, depth)
    return float(trimmed_mean(data.msve(w[..., : data.phi.shape[-1]])))


def limits(data: HeldOut, mean: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Trimmed mean (25, 21) of the MSVE in the limit of many layers, for each pair of ``MEANS`` and ``RESTS``.

    The limit is LSTD with the test functions phi + eta_m gamma m + eta_r gamma (P phi - m), whose averages are linear
    in both coefficients.
    """
    matrices, sides = [], []
    difference = data.phi - data.discount * data.phi_next
    for z in (data.phi, data.discount * np.broadcast_to(mean, data.phi.shape), data.discount * rest):
        weighted = (data.weight[..., None] * z).mT
        matrices.append(weighted @ difference)
        sides.append(np.matvec(weighted, data.reward))
    errors = np.empty((len(MEANS), len(RESTS)))
    for i, a in enumerate(MEANS):
        b = RESTS[:, None, None]
        matrix = matrices[0] + a * matrices[1] + b[..., None] * matrices[2]
        side = sides[0] + a * sides[1] + b * sides[2]
        errors[i] = trimmed_mean(data.msve(np.linalg.solve(matrix, side[..., None])[..., 0]))
    return errors


def pretrained(
    setting: dict, target: str, updates: int, seed: int, batch_size: int, learning_rate: float
) -> Weights | None:
    """Weights of 2d features after pretraining all of u and A on enumerated prompts with the four blocks.

    The target is "td" or "values".  None if pretraining diverges.
    """
    d, discount = setting["dimension"], setting["discount"]
    rng = generator(seed, setting["env"], setting["states"], f"features weights {2 * d}")
    first = initial_weights(2 * d, setting["initial_gain"], rng)
    engine = Engine(first, "td" if target == "td" else "mc", setting["depth"], discount, learning_rate)
    blocks = training_blocks(
        distribution(setting, seed), EnumeratedPrompts(), target, discount, updates, seed, batch_size, rollout_steps=1
    )
    for number, block in enumerate(blocks):
        data = enumerated(block.tasks, discount)
        gram = blocks_gram(data, *parts(data), other_states(data, 1 + number))
        _, done = engine.train(block.tasks.reward, block.batches, doubled(gram))
        if done < len(block.tasks):
            return None
    return engine.weights()


def enumerated(tasks: Tasks, discount: float) -> HeldOut:
    """Tasks of pretraining with the columns of their enumerated prompts; values are not needed and NaN."""
    weight = np.full_like(tasks.reward, 1 / tasks.states)
    following, unknown = tasks.transition @ tasks.features, np.full_like(tasks.reward, np.nan)
    return HeldOut(
        tasks, unknown, tasks.features, following, tasks.reward, weight, tasks.transition, None, discount
    )
