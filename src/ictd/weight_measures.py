"""What pretrained weights consist of, in comparison with theta^TD (section "Weight Convergence").

Not every entry of the weights is identifiable.  A column of a context, without its reward, is x = [phi(s); gamma p(. |
s)] or [phi(S_t); gamma phi(S_{t+1})].  The entries of its halves sum to 1 and to gamma.  So for

    a = [-gamma 1; 1],    a' x = -gamma + gamma = 0

for every column x of every context, enumerated or sampled.  Adding a z' to A for any z (2n,), or a multiple of a' to u,
changes no output: X'A X, X'A x^q and u X stay the same.  (On the right, b' X = 0 does not help, because a' x^q =
-gamma.) With two layers or more, gamma above 0 and n at least 3, Boyan's chain and Loop have no other such direction;
the tests count them.  Weights are compared after projection: of all weights with the same outputs,
``project_identifiable`` returns those whose lower half has columns that sum to zero. theta^TD is one of them.

The projected A is split by its nearest matrix K [-I, I], with the preconditioner K = [G; H].  For that matrix,

    A x = K (gamma p_s - phi_s),    A x^q = -K phi_q:

columns form the TD error, and K determines which entries it changes.  theta^TD is the case G = I, H = 0.
"""

import numpy as np

from ictd.checks import validate
from ictd.statistics import correlation
from ictd.transformer import Weights, preconditioned_td, theta_td

BLOCKS = ("A11", "A12", "A21", "A22")


def squared_norm(matrices: np.ndarray) -> np.ndarray:
    """Squared Frobenius norm (...) of matrices (..., k, l)."""
    return (matrices**2).sum(axis=(-2, -1))


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine (...) of the angle between matrices (..., k, l)."""
    return (first * second).sum(axis=(-2, -1)) / np.sqrt(squared_norm(first) * squared_norm(second))


@validate
def cosine_to_theta_td(weights: Weights) -> np.ndarray:
    """Compute the cosine of the angle between A and that of theta^TD, the share of the pattern in trained weights.

    With one-hot features, directions of A that change no output take part; ``project_identifiable`` removes them.

    Parameters
    ----------
    weights : Weights with any leading axes

    Returns
    -------
    cosine : (...) array, from -1 to 1; NaN if A is zero

    Examples
    --------
    >>> import ictd
    >>> float(ictd.cosine_to_theta_td(ictd.theta_td(4)))
    1.0
    """
    return cosine(weights.A, theta_td(weights.dimension).A)


def residual(A: np.ndarray) -> np.ndarray:
    """A (..., 2n, 2n) minus its projection on theta^TD, which the paper calls noise."""
    pattern = theta_td(A.shape[-1] // 2).A
    coefficient = (A * pattern).sum(axis=(-2, -1)) / (pattern**2).sum()
    return A - coefficient[..., None, None] * pattern


def pattern_measures(weights: Weights) -> dict[str, np.ndarray]:
    """Compare weights with theta^TD.

    Parameters
    ----------
    weights : Weights with any leading axes

    Returns
    -------
    dict of arrays with these leading axes
        cosine, cosine_top : cosine of A, and of its upper half, to that of theta^TD
        cosine_A11, cosine_A12 : cosine of these blocks to -I and I
        alpha : step size, the coefficient of theta^TD in A over n, for attention divided by n
        bootstraps : ratio of the coefficient of I in A12 to that of -I in A11; 1 for theta^TD
        share_A11, ..., share_A22 : share of each block in the squared norm of A
        largest_u : largest absolute entry of u, whose row of P ends with 1
    """
    A, n = weights.A, weights.dimension
    pattern = theta_td(n).A
    halves = (slice(None, n), slice(n, None))
    blocks = dict(zip(BLOCKS, (A[..., rows, columns] for rows in halves for columns in halves), strict=True))
    diagonals = (np.diagonal(block, axis1=-2, axis2=-1) for block in (-blocks["A11"], blocks["A12"]))
    diagonal = np.concatenate([*diagonals], axis=-1)  # (..., 2n)
    norms = {name: squared_norm(block) for name, block in blocks.items()}
    return {
        "cosine": cosine(A, pattern),
        "cosine_top": cosine(A[..., :n, :], pattern[:n]),
        "cosine_A11": cosine(blocks["A11"], -np.eye(n)),
        "cosine_A12": cosine(blocks["A12"], np.eye(n)),
        "alpha": diagonal.mean(axis=-1) / n,
        "bootstraps": diagonal[..., n:].sum(axis=-1) / diagonal[..., :n].sum(axis=-1),
        **{f"share_{name}": norm / sum(norms.values()) for name, norm in norms.items()},
        "largest_u": np.abs(weights.u).max(axis=-1),
    }


def pattern_shares(A: np.ndarray) -> dict[str, np.ndarray]:
    """Compute what decides whether A has the pattern of theta^TD.

    Parameters
    ----------
    A : (..., 2n, 2n) array

    Returns
    -------
    dict of (...) arrays
        pattern : squared cosine to theta^TD, zero if the cosine is negative
        pattern_A11, pattern_A12 : the same of these blocks to -I and I
        pattern_A21, pattern_A22 : squared norm of these blocks over that of A11 and A12
        bootstraps : of ``pattern_measures``
    """
    measures = pattern_measures(Weights(np.zeros(A.shape[:-1]), A))
    top = measures["share_A11"] + measures["share_A12"]
    return {
        "pattern": np.maximum(0, measures["cosine"]) ** 2,
        "pattern_A11": np.maximum(0, measures["cosine_A11"]) ** 2,
        "pattern_A12": np.maximum(0, measures["cosine_A12"]) ** 2,
        "pattern_A21": measures["share_A21"] / top,
        "pattern_A22": measures["share_A22"] / top,
        "bootstraps": measures["bootstraps"],
    }


def representative_shares(A: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """Compute ``pattern`` for other representatives of the matrices that have the same outputs.

    Parameters
    ----------
    A : (..., 2n, 2n) array
    discount : float, gamma

    Returns
    -------
    dict of (...) arrays
        pattern_shortest : of the matrices of least norm with the outputs of A and of theta^TD
        pattern_full : of A and theta^TD themselves
    """
    pattern = theta_td(A.shape[-1] // 2).A
    cosines = {
        "pattern_shortest": cosine(shortest_identifiable(A, discount), shortest_identifiable(pattern, discount)),
        "pattern_full": cosine(A, pattern),
    }
    return {name: np.maximum(0, value) ** 2 for name, value in cosines.items()}


def agreement_measures(td: np.ndarray, mc: np.ndarray) -> dict[str, np.ndarray]:
    """Compare the weights of multi-task TD with those of multi-task MC.

    Parameters
    ----------
    td, mc : (..., 2n, 2n) arrays, A of each

    Returns
    -------
    dict of (...) arrays
        correlation : Pearson's, of the entries of A
        residual_correlation : Pearson's, of the entries of the residuals, "their noise patterns"
        distance : norm of the difference over the mean of the two norms
    """
    pairs = {"correlation": (td, mc), "residual_correlation": (residual(td), residual(mc))}
    flat = (*td.shape[:-2], -1)
    norms = np.sqrt(squared_norm(td)) + np.sqrt(squared_norm(mc))
    return {
        **{name: correlation(first.reshape(flat), second.reshape(flat)) for name, (first, second) in pairs.items()},
        "distance": 2 * np.sqrt(squared_norm(td - mc)) / norms,
    }


def unidentifiable_direction(states: int, discount: float | np.ndarray) -> np.ndarray:
    """The direction a = [-gamma 1; 1], (2n,), with a' x = 0 for every column x of a context.

    ``discount`` is gamma, or an array (n,) of a discount for each state.
    """
    return np.concatenate([np.full(states, -discount), np.ones(states)])


def project_identifiable(weights: Weights, discount: float | np.ndarray) -> Weights:
    """Find the weights with the same outputs for which the lower half of each column of A, and of u, sums to zero.

    ``discount`` is that of ``unidentifiable_direction``.
    """
    a, n = unidentifiable_direction(weights.dimension, discount), weights.dimension
    u = weights.u - weights.u[..., n:].mean(axis=-1)[..., None] * a
    return Weights(u, weights.A - a[:, None] * weights.A[..., n:, :].mean(axis=-2)[..., None, :])


def shortest_identifiable(A: np.ndarray, discount: float) -> np.ndarray:
    """The matrix (..., 2n, 2n) of least norm that has the outputs of A: A without its component along a."""
    a = unidentifiable_direction(A.shape[-1] // 2, discount)
    return A - a[:, None] * (a @ A)[..., None, :] / (a @ a)


def preconditioner(A: np.ndarray) -> np.ndarray:
    """K (..., 2n, n) of the matrix K [-I, I] nearest to A (..., 2n, 2n)."""
    states = A.shape[-1] // 2
    return (A[..., states:] - A[..., :states]) / 2


def share_outside(A: np.ndarray) -> np.ndarray:
    """Share (...) of the squared norm of A (..., 2n, 2n) that is outside K [-I, I], for the nearest K."""
    return 1 - squared_norm(preconditioned_td(preconditioner(A))) / squared_norm(A)


def identifiable_measures(weights: Weights, discount: float) -> dict[str, np.ndarray]:
    """Measure the part of weights that outputs identify; the weights have any leading axes (...).

    Returns
    -------
    dict of (...) arrays
        ``pattern_measures`` and ``pattern_shares`` of the projected weights, ``representative_shares`` of A, and
        ``raw_cosine``, the cosine of A before projection to that of theta^TD.
    """
    projected = project_identifiable(weights, discount)
    raw_cosine = cosine_to_theta_td(weights)
    shares = pattern_shares(projected.A) | representative_shares(weights.A, discount)
    return {**pattern_measures(projected), **shares, "raw_cosine": raw_cosine}
