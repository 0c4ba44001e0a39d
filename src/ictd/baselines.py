"""Known algorithms of policy evaluation, as baselines for the Transformer.

From the averages C, D and b of a context (``ictd.context.Context``):

- batch TD, w_{l+1} = w_l + alpha (b + gamma D w_l - C w_l): ``batch_td``
- LSTD, which solves (C - gamma D) w = b: ``lstd``
- certainty equivalence, also with pseudo-counts: ``certainty_equivalence``
- one value for all states: ``constant_estimate``

The discount may be 1 if every visited state can reach the end of an episode.  ``ictd.traces`` has TD(lambda) and
LSTD(lambda).

``theta_preconditioned_td`` makes a Transformer whose layers are updates of batch TD with a preconditioner.

BASELINES are those that the workflow evaluates.

Estimates are weights w (..., d) of the features, with the values w phi(s).  With one-hot features they are the values
of all states.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from ictd.checks import (
    LARGEST_DISCOUNT,
    ROW_SUM_TOLERANCE,
    ArrayLike,
    Count,
    Positive,
    UpToOne,
    array,
    either,
    instance,
    number,
    refuse,
    validate,
)
from ictd.context import Context
from ictd.transformer import Weights, estimates, preconditioned_td

# Largest rounding error of a solution of linear equations, relative to its norm, that is not looked at.
LARGEST_ERROR = 1e-10

# Problem and remedy in the warning of LSTD.
NEARLY_SINGULAR = "has larger values than rewards allow, with a nearly singular matrix,", "give a larger ridge"

# From a context


@validate
def batch_td(
    context: Context,
    discount: UpToOne,
    step_size: Annotated[float | ArrayLike, either(number(), array("K"))],
    depth: Count,
) -> np.ndarray:
    """Estimate values by batch TD, w += alpha (b + gamma D w - C w).

    An update is the one that a layer of theta^TD makes, eq. (tf sampled TD update) with the sum read as a mean.

    Parameters
    ----------
    context : Context of (..., d)
    discount : float, gamma
    step_size : float, alpha, or a (K,) array of them
    depth : int, number of updates L, which start from w = 0

    Returns
    -------
    estimates : (..., d) array, or (..., d, K) for K step sizes

    Raises
    ------
    ValueError
        If the discount or the depth is out of range, a step size is not finite, or the discount is 1 and no episode
        ends.

    Warns
    -----
    RuntimeWarning
        If the updates diverge: estimates are not finite, or the mean update b + gamma D w - C w has grown and more
        updates let it grow without limit.  ``with np.errstate(over="ignore")`` turns the warning off.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -1.0], n=2)
    >>> ictd.batch_td(context, discount=0.9, step_size=0.5, depth=200).round(2)
    array([-2.39, -3.77])
    """
    context.refuse_endless(discount)
    step_sizes = np.atleast_1d(step_size)
    b = context.b[..., None]
    w = np.zeros((*context.b.shape, len(step_sizes)))
    C, D = np.ascontiguousarray(context.C), np.ascontiguousarray(context.D)
    # Reuse two arrays in all updates, because allocating new ones takes longer than the sums.
    change, decay = np.empty_like(w), np.empty_like(w)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            np.matmul(D, w, out=change)
            change *= discount
            change += b
            change -= np.matmul(C, w, out=decay)
            change *= step_sizes
            w += change
    if np.geterr()["over"] != "ignore":
        warn_of_divergence("batch_td", _diverged(context, discount, step_sizes, w))
    return w if np.ndim(step_size) else w[..., 0]


def _diverged(context: Context, discount: float, step_sizes: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Whether estimates (..., d, K) of batch TD have diverged, (..., K).

    An update multiplies the mean update b + gamma D w - C w by I - alpha (C - gamma D).  It grows without limit if the
    spectral radius of this matrix exceeds 1.
    """
    A = context.C - discount * context.D
    with np.errstate(over="ignore", invalid="ignore"):
        update = np.linalg.norm(context.b[..., None] - A @ w, axis=-2)
        diverged = ~np.isfinite(w).all(axis=-2)
        grown = ~diverged & (update > np.linalg.norm(context.b, axis=-1)[..., None])
    for *i, k in np.argwhere(grown):
        eigenvalues = 1 - step_sizes[k] * np.linalg.eigvals(A[*i])
        diverged[*i, k] = np.abs(eigenvalues).max() > 1 + ROW_SUM_TOLERANCE
    return diverged


def warn_of_divergence(
    name: str, diverged: np.ndarray, problem: str = "diverged", remedy: str = "give a smaller step size"
) -> None:
    """Warn if estimates of a function have diverged, unless ``np.errstate`` ignores overflow."""
    if diverged.any() and np.geterr()["over"] != "ignore":
        warnings.warn(
            f"{name} {problem} for {diverged.sum()} of {diverged.size} estimates; {remedy}.",
            RuntimeWarning,
            stacklevel=4,  # The caller of the function behind its validation.
        )


@validate
def lstd(context: Context, discount: UpToOne, ridge: Positive) -> np.ndarray:
    """Estimate values by least-squares TD, (m C - gamma m D + ridge I)^{-1} m b.

    Source: Bradtke and Barto, Machine Learning 22, 1996.

    Parameters
    ----------
    context : Context of (..., d), of m steps
    discount : float, gamma
    ridge : float, positive, because a context may lack states

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        If the discount is out of range, the ridge is not positive, the discount is 1 and no episode ends, or
        m C - gamma m D + ridge I is singular up to rounding, as with collinear features and a tiny ridge.

    Warns
    -----
    RuntimeWarning
        If this matrix is so close to a singular one that values exceed the largest reward divided by 1 - gamma.
        ``with np.errstate(over="ignore")`` turns the warning off.
    """
    context.refuse_endless(discount)
    ridge_share = ridge / np.asarray(context.length)[..., None, None] * np.eye(context.dimension)
    matrix = context.C + ridge_share - discount * context.D
    terms = np.abs(context.C) + ridge_share + discount * np.abs(context.D)
    w = solved(matrix, terms, context.b)
    squares = (1 - discount) ** 2 * np.vecdot(w, np.matvec(context.C, w))
    most = context.length * context.reward_square  # At least the square of the largest reward.
    large = squares > most * (1 + ROW_SUM_TOLERANCE)
    warn_of_divergence("lstd", large & (not context.one_hot), *NEARLY_SINGULAR)
    return w


def solved(matrix: np.ndarray, terms: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Solve linear equations with matrices (..., d, d).

    ``terms`` has the sums (..., d, d) of the absolute terms of each entry, which rounding errors are relative to.
    Before the comparison with rounding, rows and columns are divided by their largest terms, because features of small
    numbers are not collinear.

    If features are collinear, the solution is in the span of the features, and so is ``vector``.  A small ridge divides
    the rounding error of its part outside the span, which is left out.

    Raises a ValueError if a matrix is singular up to rounding, or a number exceeds the range of floats.
    """
    too_large = "of LSTD is not finite; divide rewards or features by a number"
    refuse("equation", ~np.isfinite(matrix.sum(axis=-1) + vector), too_large)
    rounding = matrix.shape[-1] * np.finfo(float).eps
    scaled, largest = matrix, terms
    for axis in (-1, -2):
        scale = largest.max(axis=axis, keepdims=True)
        scaled, largest = scaled / scale, largest / scale
    with np.errstate(divide="ignore"):
        inverse = np.linalg.cond(scaled, 1) / np.linalg.norm(scaled, 1, axis=(-2, -1))  # Norm of the inverse.
    error = inverse * rounding
    singular = "of LSTD is not determined, because m C - gamma m D + ridge I is singular up to rounding"
    refuse("estimate", ~(error < 1), f"{singular}; give a larger ridge")
    solutions = np.linalg.solve(matrix, vector[..., None])[..., 0]
    for place in map(tuple, np.argwhere(error > LARGEST_ERROR)):
        u, _, v = np.linalg.svd(matrix[place])
        parts = vector[place] @ u
        outside = v[np.abs(parts) <= rounding * np.linalg.norm(parts)]
        solutions[place] -= outside @ solutions[place] @ outside
    refuse("estimate", np.isinf(solutions).any(axis=-1), too_large)
    return solutions


@validate
def certainty_equivalence(
    context: Annotated[Context, instance(Context, b="..., n")],
    discount: UpToOne,
    pseudo_counts: Annotated[ArrayLike, array("*, n, n", least=0)] | None = None,
) -> np.ndarray:
    """Compute the values of the maximum likelihood model of a context, with pseudo-counts of transitions.

    With positive pseudo-counts this is LSTD with these steps added to the context, each with the mean reward that the
    context shows in its state.

    Parameters
    ----------
    context : Context of (..., n), with one-hot features
    discount : float, gamma
    pseudo_counts : (n, n) or (..., n, n) array, from state to state, optional

    Returns
    -------
    estimates : (..., n) array, values of the states
        States that no step starts from have the reward 0.

    Raises
    ------
    ValueError
        If the features of the context are not one-hot, shapes do not match, a pseudo-count is negative, the discount
        is out of range, or it is 1 and no episode ends.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -1.0], n=3)
    >>> ictd.certainty_equivalence(context, discount=0.5).round(2)
    array([ 0.4, -1.2,  0. ])
    """
    context.refuse_endless(discount, pseudo_counts)
    p, r, _ = context.empirical_model(pseudo_counts)
    return np.linalg.solve(np.eye(context.dimension) - discount * p, r[..., None])[..., 0]


@validate
def constant_estimate(context: Context, discount: UpToOne) -> np.ndarray:
    """Estimate the same value for all states, the mean observed reward divided by 1 - gamma.

    If steps end episodes, it is divided by one minus gamma times the share of those that do not.

    Parameters
    ----------
    context : Context of (..., n), with one-hot features
    discount : float, gamma

    Returns
    -------
    estimates : (..., n) array, values of the states

    Raises
    ------
    ValueError
        If the features of the context are not one-hot, the discount is out of range, or it is 1 and no step ends an
        episode.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -0.75], n=2)
    >>> ictd.constant_estimate(context, discount=0.5)
    array([-0.5, -0.5])
    """
    if not context.one_hot:
        raise ValueError("the features of the context are not one-hot; make the context without features.")
    steps = context.visits.sum(axis=-1)
    ended = context.ended.sum(axis=-1)
    if discount > LARGEST_DISCOUNT:
        refuse("context", ended == 0, "has no step that ends an episode; give a discount below 1")
    value = context.b.sum(axis=-1) / steps / (1 - discount * (1 - ended / steps))
    return np.broadcast_to(value[..., None], context.b.shape).copy()


# As a Transformer


@validate
def theta_preconditioned_td(preconditioner: Annotated[ArrayLike, array("..., d, d")]) -> Weights:
    """Make theta^TD with a preconditioner, with which a layer is w += H (b + gamma D w - C w), one update of batch TD.

    It has u = 0 and A = [H'; 0] [-I, I] (arXiv 2405.13861, code).  A step size alpha is H = alpha I.

    Parameters
    ----------
    preconditioner : (..., d, d) array, H

    Returns
    -------
    Weights of d features

    Raises
    ------
    ValueError
        If H is not square, or an entry is not finite.

    Examples
    --------
    >>> import ictd
    >>> ictd.theta_preconditioned_td([[0.5]]).A
    array([[-0.5,  0.5],
           [-0. ,  0. ]])
    """
    K = np.concatenate([preconditioner.mT, np.zeros_like(preconditioner)], axis=-2)
    return Weights(np.zeros(K.shape[:-1]), preconditioned_td(K))


# Those that the workflow evaluates


@dataclass(frozen=True)
class Given:
    """What a baseline gets beside a context.

    Parameters
    ----------
    discount : float, gamma
    depth : int, number of layers L
    ridge : float, of ``lstd``
    scaled : bool
        Whether attention is divided by the context length.
    factors : dict of the tuned factors, by the names of baselines
    run : function that runs a Transformer, as ``ictd.transformer.estimates``
    """

    discount: float
    depth: int
    ridge: float
    scaled: bool
    factors: dict[str, float]
    run: Callable = estimates


class Baseline(NamedTuple):
    """A baseline, which estimates the values of all states from a context.

    Parameters
    ----------
    estimate : function of a Context of (k, n) and ``Given``, which returns (k, n) estimates
    layered : bool
        Whether estimates depend on the number of layers.
    tuned : function, optional
        Takes the same and an array of K factors, and returns (k, n, K) estimates.  The factor that is best on other
        tasks is then in ``Given.factors``.
    by_length : bool
        Whether the factor is tuned for each context length, as a step size; otherwise one serves all lengths.
    drawn : bool
        Whether figures show it.
    """

    estimate: Callable
    layered: bool = False
    tuned: Callable | None = None
    by_length: bool = False
    drawn: bool = True


BASELINES: dict[str, Baseline] = {}


def tuned_baselines() -> list[str]:
    """Names of the baselines that have a factor."""
    return [name for name, one in BASELINES.items() if one.tuned]


def best_factors(factors: np.ndarray, scores: np.ndarray) -> list[dict[str, float]]:
    """Choose one of K factors for each context length, by the names of ``tuned_baselines``.

    The factor is the one with the least mean score over all lengths.  With ``Baseline.by_length`` it may be another one
    with a smaller score at this length, if the next larger candidate has a smaller score as well.

    Parameters
    ----------
    factors : (K,) array, ascending
    scores : (baselines, 1 + lengths, K) array; the first row of a baseline, for enumerated contexts, is not in the mean
    """
    best = {}
    for name, score in zip(tuned_baselines(), scores, strict=True):
        joint = score[1:].mean(axis=0).argmin()
        chosen = np.full(len(score), joint)
        if BASELINES[name].by_length:
            # The best step size is close to divergence: 1 of 2,000 unseen tasks may diverge where none of 1,000 tuning
            # tasks does, and decides the mean.  So the next larger candidate counts, too.
            cautious = np.maximum(score, np.append(score[:, 1:], np.full((len(score), 1), np.inf), axis=1))
            cautious[:, joint] = score[:, joint]
            chosen = cautious.argmin(axis=1)
        best[name] = factors[chosen].tolist()
    return [dict(zip(best, of_length, strict=True)) for of_length in zip(*best.values(), strict=True)]


def shown_baselines() -> list[str]:
    """Names of the baselines that figures show."""
    return [name for name, one in BASELINES.items() if one.drawn]


def baseline(name: str, **properties) -> Callable[[Callable], Callable]:
    """Register a function as a baseline, with properties of ``Baseline``."""

    def register(estimate: Callable) -> Callable:
        BASELINES[name] = Baseline(estimate, **properties)
        return estimate

    return register


def _batch_td(context: Context, given: Given, factors: np.ndarray) -> np.ndarray:
    # Without the division of attention, a layer sums over the context.
    steps = factors * (1 if given.scaled else context.length)
    # The step size with the least mean error may let single estimates grow, which is no reason for a warning.
    with np.errstate(over="ignore"):
        return batch_td(context, given.discount, steps, given.depth)


@baseline("theta_td", layered=True, tuned=_batch_td, by_length=True)
def _(context, given):
    """The Transformer with the paper's parameters, with A multiplied by the best step size."""
    weights = theta_preconditioned_td(given.factors["theta_td"] * np.eye(context.dimension))
    return given.run(weights, context.gram_matrix(given.discount, given.scaled), given.depth)


@baseline("lstd")
def _(context, given):
    return lstd(context, given.discount, given.ridge)


def _lstd_pseudo_steps(context: Context, given: Given, counts: np.ndarray) -> np.ndarray:
    uniform = np.full((context.dimension, context.dimension), 1 / context.dimension)
    return np.stack([certainty_equivalence(context, given.discount, k * uniform) for k in counts], axis=-1)


@baseline("lstd_pseudo_steps", tuned=_lstd_pseudo_steps, drawn=False)
def _(context, given):
    """LSTD with k more steps from each state, to all states equally; k is the factor."""
    return _lstd_pseudo_steps(context, given, [given.factors["lstd_pseudo_steps"]])[..., 0]


@baseline("zero")
def _(context, given):
    return np.zeros_like(context.b)


@baseline("constant")
def _(context, given):
    return constant_estimate(context, given.discount)


def _constant_tuned(context: Context, given: Given, counts: np.ndarray) -> np.ndarray:
    length = np.asarray(context.length)[..., None, None]
    return constant_estimate(context, given.discount)[..., None] * (length / (length + counts))


@baseline("constant_tuned", tuned=_constant_tuned, drawn=False)
def _(context, given):
    """The constant of the mean of m observed rewards and k zeros, so times m / (m + k); k is the factor."""
    return _constant_tuned(context, given, np.array([given.factors["constant_tuned"]]))[..., 0]
