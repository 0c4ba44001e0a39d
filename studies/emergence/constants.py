"""Constants: the answer to rewards of one pins one combination of the eight numbers.

Let s and t be what K and N of A = K [-I, I] + N [I, I] do to constants,

    s = alpha + n beta + gamma h,    t = a + n b + gamma c,

for attention divided by n.  A layer multiplies constants by lambda = 1 - s (1 - gamma) + t (1 + gamma), and L layers
answer rewards of one with (s - t) (1 + lambda + ... + lambda^(L-1)).  The *law of constants* is that this answer is the
value, 1 / (1 - gamma).  docs/theory.md (section "Constants pin one number") has the derivation.
"""

from functools import cache

import numpy as np

from ictd.context import Context
from ictd.mrp import Tasks
from ictd.transformer import Model
from studies.emergence.few_numbers import basis, nearest_numbers, without_u
from studies.emergence.symmetry import label_mean

# Factors lambda of the table of the law; those of pretrained weights are between 0.9 and 1.4.
FACTORS = np.linspace(0, 4, 40_001)
# Step of the differences that stand for derivatives, over the largest number.
STEP = 1e-5


def eight_numbers(A: np.ndarray, discount: float) -> np.ndarray:
    """alpha, beta, a, b, h and c (..., 6) of the mean over labels of A (..., 2n, 2n), for attention divided by n."""
    n = A.shape[-1] // 2
    return nearest_numbers(label_mean(A), basis(8, n), discount) / n


def on_constants(numbers: np.ndarray, states: int, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """s and t (...) of ``eight_numbers`` (..., 6)."""
    alpha, beta, a, b, h, c = np.moveaxis(numbers, -1, 0)
    return alpha + states * beta + discount * h, a + states * b + discount * c


def matrix_of(numbers: np.ndarray, states: int) -> np.ndarray:
    """A (..., 2n, 2n) with these ``eight_numbers`` (..., 6)."""
    return states * np.tensordot(numbers, basis(8, states), axes=1)


def layer_factor(s: np.ndarray, t: np.ndarray, discount: float) -> np.ndarray:
    """The factor lambda (...) by which a layer multiplies constants."""
    return 1 - s * (1 - discount) + t * (1 + discount)


def powers(factor: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of lambda^l over l < L, and its derivative, for factors lambda (...)."""
    layers = np.arange(depth)
    factor = np.asarray(factor)[..., None]
    slopes = layers[1:] * factor ** (layers[1:] - 1)
    return (factor**layers).sum(axis=-1), slopes.sum(axis=-1)


@cache
def law(discount: float, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Ascending s, and the factors lambda (...) with which L > 1 layers are exact for constants.

    From the law follow s = (2 gamma / (1 - gamma) + lambda^L) / (2 gamma sum_{l<L} lambda^l) and t = (lambda - 1 + s (1
    - gamma)) / (1 + gamma).  Of two solutions with one s this is the one with the smaller lambda.
    """
    total, _ = powers(FACTORS, depth)
    by_factor = (2 * discount / (1 - discount) + FACTORS**depth) / (2 * discount * total)
    falling = slice(np.argmin(by_factor), None, -1)
    return by_factor[falling], FACTORS[falling]


def outside_by_law(s: np.ndarray, discount: float, depth: int) -> np.ndarray:
    """The t (...) with which L > 1 layers are exact for constants, NaN if there is none."""
    return outside(s, np.interp(s, *law(discount, depth), left=np.nan, right=np.nan), discount)


def outside(s: np.ndarray, factor: np.ndarray, discount: float) -> np.ndarray:
    """The t (...) with which a layer multiplies constants by a factor lambda (...)."""
    return (factor - 1 + s * (1 - discount)) / (1 + discount)


def two_by_law(numbers: np.ndarray, states: int, discount: float, depth: int) -> np.ndarray:
    """``eight_numbers`` (..., 6) with their alpha and beta, the a of the law, NaN if there is none, and zeros."""
    two = numbers * [1, 1, 0, 0, 0, 0]
    s, _ = on_constants(two, states, discount)
    two[..., 2] = outside_by_law(s, discount, depth)
    return two


def stiffness(s: np.ndarray, t: np.ndarray, discount: float, depth: int) -> np.ndarray:
    """How many times as much the answer to rewards of one changes with t as with s."""
    total, slope = powers(layer_factor(s, t, discount), depth)
    by_s = total - (s - t) * (1 - discount) * slope
    by_t = -total + (s - t) * (1 + discount) * slope
    return by_t / by_s


def hessian(numbers: np.ndarray, tasks: Tasks, discount: float, depth: int) -> np.ndarray:
    """The Gauss-Newton Hessian (6, 6) of half the MSVE in the numbers, on enumerated prompts: the mean of J' D_mu J."""
    context = Context.enumerated(tasks.transition, tasks.reward)
    bases = tasks.states * basis(8, tasks.states)

    def values(numbers: np.ndarray) -> np.ndarray:
        return Model(without_u(np.tensordot(numbers, bases, axes=1)), depth, discount).values(context)

    step = STEP * np.abs(numbers).max()
    slopes = [(values(numbers + one) - values(numbers - one)) / (2 * step) for one in step * np.eye(6)]
    J = np.stack(slopes, axis=-1)  # (N, n, 6)
    return np.einsum("ts,tsi,tsj->ij", tasks.stationary, J, J) / len(tasks)
