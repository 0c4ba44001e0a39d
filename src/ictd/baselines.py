"""Known algorithms of policy evaluation, as baselines for the Transformer.

From the averages C, D and b of a context (``ictd.prompt.Context``):

- batch TD, w_{l+1} = w_l + alpha (b + gamma D w_l - C w_l): ``batch_td``
- LSTD, which solves (C - gamma D) w = b: ``lstd``
- certainty equivalence, also with pseudo-counts: ``certainty_equivalence``
- one value for all states: ``constant_estimate``

From a trajectory, with eligibility traces z_t = gamma lambda z_{t-1} + phi_t:

- TD(lambda): ``td_lambda``
- LSTD(lambda): ``lstd_lambda``

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
    ArrayLike,
    Count,
    Discount,
    Features,
    Positive,
    array,
    either,
    instance,
    integers,
    number,
    validate,
)
from ictd.prompt import Context, visited_features
from ictd.transformer import Weights, estimates, preconditioned_td

Decay = Annotated[float, number(0, 1, "from 0 to 1")]


# From a context


@validate
def batch_td(
    context: Context,
    discount: Discount,
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
        If the discount or the depth is out of range, or a step size is not finite.

    Warns
    -----
    RuntimeWarning
        If the updates diverge: estimates are not finite, or they are larger than values can be and their mean update is
        larger than that of w = 0.  ``with np.errstate(over="ignore")`` turns the warning off.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -1.0], n=2)
    >>> ictd.batch_td(context, discount=0.9, step_size=0.5, depth=200).round(2)
    array([-2.39, -3.77])
    """
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
    _warn_of_divergence(context, discount, w)
    return w if np.ndim(step_size) else w[..., 0]


def _warn_of_divergence(context: Context, discount: float, w: np.ndarray) -> None:
    """Warn if estimates (..., d, K) of batch TD have diverged, unless ``np.errstate`` ignores overflow.

    Estimates have diverged if they are not finite.  They have also diverged if both are true: their mean square over
    the steps is larger than m times that of the rewards over (1 - gamma)^2, which no values exceed if steps count
    equally; and their mean update b + gamma D w - C w is larger than that of w = 0, so that they are not close to a
    solution.
    """
    if np.geterr()["over"] == "ignore":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        mean_square = (w * (context.C @ w)).sum(axis=-2)  # (..., K)
        largest = (context.length * context.reward_square / (1 - discount) ** 2)[..., None]
        update = context.b[..., None] + discount * (context.D @ w) - context.C @ w
        solved = np.linalg.norm(update, axis=-2) <= np.linalg.norm(context.b, axis=-1)[..., None]
    diverged = ~np.isfinite(w).all(axis=-2) | (~(mean_square <= largest) & ~solved)
    if diverged.any():
        warnings.warn(
            f"batch_td diverged for {diverged.sum()} of {diverged.size} estimates, which are larger than values can be;"
            " give a smaller step size.",
            RuntimeWarning,
            stacklevel=4,  # The caller of batch_td behind its validation.
        )


@validate
def lstd(context: Context, discount: Discount, ridge: Positive) -> np.ndarray:
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
        If the discount is out of range, or the ridge is not positive.
    """
    identity = np.eye(context.dimension)
    ridge_share = ridge / np.asarray(context.length)[..., None, None]
    matrix = context.C + ridge_share * identity - discount * context.D
    return np.linalg.solve(matrix, context.b[..., None])[..., 0]


@validate
def certainty_equivalence(
    context: Annotated[Context, instance(Context, b="..., n")],
    discount: Discount,
    pseudo_counts: Annotated[ArrayLike, array("*, n, n")] | None = None,
    reward: Annotated[float, number()] = 0.0,
) -> np.ndarray:
    """Compute the values of the maximum likelihood model of a context, with pseudo-counts of transitions.

    With positive pseudo-counts this is LSTD with these steps added to the context, each with the mean reward that the
    context shows in its state.

    Parameters
    ----------
    context : Context of (..., n), with one-hot features
    discount : float, gamma
    pseudo_counts : (n, n) or (..., n, n) array, from state to state, optional
    reward : float
        Reward of states that no step starts from.  Without pseudo-counts from them it is also their value.

    Returns
    -------
    estimates : (..., n) array, values of the states

    Raises
    ------
    ValueError
        If the features of the context are not one-hot, shapes do not match, or the discount is out of range.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -1.0], n=3)
    >>> ictd.certainty_equivalence(context, discount=0.5).round(2)
    array([ 0.4, -1.2,  0. ])
    """
    p, r, _ = context.empirical_model(pseudo_counts)
    r = np.where(context.visits > 0, r, reward)
    return np.linalg.solve(np.eye(context.dimension) - discount * p, r[..., None])[..., 0]


@validate
def constant_estimate(context: Context, discount: Discount) -> np.ndarray:
    """Estimate the same value for all states, the mean observed reward divided by 1 - gamma.

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
        If the features of the context are not one-hot, or the discount is out of range.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -0.75], n=2)
    >>> ictd.constant_estimate(context, discount=0.5)
    array([-0.5, -0.5])
    """
    if not context.one_hot:
        raise ValueError("the features of the context are not one-hot; make the context without features.")
    mean_reward = context.b.sum(axis=-1) / context.visits.sum(axis=-1)
    return np.broadcast_to(mean_reward[..., None] / (1 - discount), context.b.shape).copy()


# From a trajectory


@validate
def td_lambda(
    states: Annotated[ArrayLike, integers("..., m+1", 0)],
    rewards: Annotated[ArrayLike, array("..., m")],
    discount: Discount,
    decay: Decay,
    step_size: Annotated[float, number()],
    n: Count | None = None,
    features: Features | None = None,
) -> np.ndarray:
    """Estimate values by online TD(lambda) with accumulating traces, in one pass through each trajectory.

    Source: Sutton, Machine Learning 3, 1988.

    Parameters
    ----------
    states : (..., m+1) int array, S_0, ..., S_m
    rewards : (..., m) array, R_1, ..., R_m
    discount : float, gamma
    decay : float, lambda, from 0 to 1
    step_size : float, alpha
    n : int, number of states
        May be left out if features are given.
    features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, shapes do not match, or lambda or the discount is out of range.

    Examples
    --------
    >>> import ictd
    >>> ictd.td_lambda([0, 1, 1, 0], [1.0, -1.0, -1.0], discount=0.9, decay=0.8, step_size=0.5, n=2)
    array([ 0.0430592, -0.82164  ])
    """
    visited = visited_features("states", states, n, features)  # (..., m+1, d)
    w, trace = np.zeros((2, *visited[..., 0, :].shape))
    for t in range(rewards.shape[-1]):
        phi, following = visited[..., t, :], visited[..., t + 1, :]
        error = rewards[..., t] + np.vecdot(w, discount * following - phi)
        trace = discount * decay * trace + phi
        w = w + step_size * error[..., None] * trace
    return w


@validate
def lstd_lambda(
    states: Annotated[ArrayLike, integers("..., m+1", 0)],
    rewards: Annotated[ArrayLike, array("..., m")],
    discount: Discount,
    decay: Decay,
    ridge: Positive,
    n: Count | None = None,
    features: Features | None = None,
) -> np.ndarray:
    """Estimate values by LSTD(lambda), the solution w of sum_t z_t delta_t = ridge w with accumulating traces z_t.

    Source: Boyan, Machine Learning 49, 2002.  delta_t = R_{t+1} + gamma w phi_{t+1} - w phi_t is the TD error of step
    t.  With lambda = 0 it is ``lstd`` of the trajectory's context.

    Parameters
    ----------
    states : (..., m+1) int array, S_0, ..., S_m
    rewards : (..., m) array, R_1, ..., R_m
    discount : float, gamma
    decay : float, lambda, from 0 to 1
    ridge : float, positive, because a trajectory may lack states
    n : int, number of states
        May be left out if features are given.
    features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, shapes do not match, the ridge is not positive, or lambda or the discount is
        out of range.

    Examples
    --------
    >>> import ictd
    >>> ictd.lstd_lambda([0, 1, 1, 0], [1.0, -1.0, -1.0], discount=0.9, decay=0.8, ridge=0.01, n=2).round(2)
    array([-2.48, -3.59])
    """
    phi = visited_features("states", states, n, features)  # (..., m+1, d)
    now, following = phi[..., :-1, :], phi[..., 1:, :]
    traces = np.array(now)
    for t in range(1, rewards.shape[-1]):
        traces[..., t, :] += discount * decay * traces[..., t - 1, :]
    matrix = traces.mT @ (now - discount * following) + ridge * np.eye(phi.shape[-1])
    return np.linalg.solve(matrix, np.vecmat(rewards, traces)[..., None])[..., 0]


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
    check : bool
        Whether the baseline is only compared with another one that must agree with it.
    """

    estimate: Callable
    layered: bool = False
    tuned: Callable | None = None
    check: bool = False


BASELINES: dict[str, Baseline] = {}


def tuned_baselines() -> list[str]:
    """Names of the baselines that have a factor."""
    return [name for name, one in BASELINES.items() if one.tuned]


def shown_baselines() -> list[str]:
    """Names of the baselines that figures, and tables of errors, show."""
    return [name for name, one in BASELINES.items() if not one.check]


def baseline(name: str, **properties) -> Callable[[Callable], Callable]:
    """Register a function as a baseline, with properties of ``Baseline``."""

    def register(estimate: Callable) -> Callable:
        BASELINES[name] = Baseline(estimate, **properties)
        return estimate

    return register


def _batch_td(context: Context, given: Given, factors: np.ndarray) -> np.ndarray:
    # Without the division of attention, a layer sums over the context.
    steps = factors * (1 if given.scaled else context.length)
    return batch_td(context, given.discount, steps, given.depth)


@baseline("theta_td", layered=True, tuned=_batch_td)
def _(context, given):
    """The Transformer with the paper's parameters, with A multiplied by the best step size."""
    weights = theta_preconditioned_td(given.factors["theta_td"] * np.eye(context.dimension))
    return given.run(weights, context.gram_matrix(given.discount, given.scaled), given.depth)


@baseline("batch_td", layered=True, check=True)
def _(context, given):
    """The algorithm that this Transformer carries out."""
    return _batch_td(context, given, np.array([given.factors["theta_td"]]))[..., 0]


@baseline("lstd")
def _(context, given):
    return lstd(context, given.discount, given.ridge)


@baseline("zero")
def _(context, given):
    return np.zeros_like(context.b)


@baseline("constant")
def _(context, given):
    return constant_estimate(context, given.discount)
