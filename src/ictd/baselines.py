"""Known algorithms of policy evaluation, as baselines for the Transformer: from a context, or from its trajectory.

With the averages C, D and b of a context (``ictd.prompt.Context``), batch TD iterates

    w_{l+1} = w_l + alpha (b + gamma D w_l - C w_l),

and LSTD solves (C - gamma D) w = b.  Both also work with other vectors z_t in place of
phi_t.  The averages are then

    C = (1/m) sum_t z_t phi_t',    D = (1/m) sum_t z_t phi_{t+1}',    b = (1/m) sum_t R_{t+1} z_t

(``Instruments``).  Eligibility traces z_t = gamma lambda z_{t-1} + phi_t make them TD(lambda) and LSTD(lambda), and
z_t = phi_t - gamma phi_{t+1} makes batch TD the residual gradient algorithm.

- batch TD with any preconditioner: ``batch_td``
- LSTD: ``lstd``
- TD(lambda) and LSTD(lambda): ``batch_td`` and ``lstd`` of ``eligibility_traces``, or of ``expected_traces``
- TD(lambda) with an update in each step: ``td_lambda``
- the residual gradient: ``residual_gradient``
- GTD2 and TDC: ``gtd2``, ``tdc``
- certainty equivalence, also with pseudo-counts: ``certainty_equivalence``
- the Bayes estimate on Boyan's chains: ``boyan_posterior``, ``posterior_values``
- the projection of the true values, which is the floor of the MSVE: ``project_values``
- Transformers whose layers are such updates: ``theta_preconditioned_td``, ``theta_residual_gradient``

Estimates are weights w (..., d) of the features, with the values w phi(s).  With one-hot features they are the values
of all states.

Iterations that diverge give a RuntimeWarning: if estimates are not finite, or if they are larger than values can be and
their mean update is larger than that of w = 0.  ``with np.errstate(over="ignore")`` turns the warning off.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from ictd.checks import (
    DISCOUNT,
    GENERATOR,
    POSITIVE,
    ArrayLike,
    array,
    either,
    instance,
    integer,
    integers,
    number,
    optional,
    probabilities,
    refuse,
    validate,
    validate_fields,
)
from ictd.mrp import value_function
from ictd.prompt import Context, features_of, state_features
from ictd.transformer import Weights, preconditioned_td

DECAY = number(0, 1, "from 0 to 1")


# Averages with other vectors than the features


@dataclass(frozen=True)
class Instruments:
    """Averages over the steps of a context with a vector z_t in place of phi_t.

    ``batch_td`` and ``lstd`` take them in place of a ``Context``.  LSTD then solves sum_t z_t delta_t = 0 for the TD
    errors delta_t, with z_t as instrumental variables (Bradtke and Barto, Machine Learning 22, 1996).
    ``eligibility_traces`` and ``expected_traces`` compute them.  The arrays are copied.

    Parameters
    ----------
    context : Context of (..., d), the averages with phi_t
    C : (..., d, d) array, mean of z_t phi_t'
    D : (..., d, d) array, mean of z_t phi_{t+1}'
    b : (..., d) array, mean of R_{t+1} z_t

    Raises
    ------
    ValueError
        If shapes do not match, or an entry is not finite.
    """

    context: Context
    C: np.ndarray
    D: np.ndarray
    b: np.ndarray

    def __post_init__(self):
        validate_fields(
            self,
            context=instance(Context, b="..., d"),
            C=array("..., d, d"),
            D=array("..., d, d"),
            b=array("..., d"),
        )

    @property
    def dimension(self) -> int:
        """Number of features d."""
        return self.b.shape[-1]

    @property
    def length(self) -> int | np.ndarray:
        """Number of steps m, or an array (...) of them."""
        return self.context.length


@validate(
    states=integers("..., m+1", 0),
    rewards=array("..., m"),
    discount=DISCOUNT,
    decay=DECAY,
    n=optional(integer(1)),
    features=optional(array("*, n, d")),
)
def eligibility_traces(
    states: ArrayLike,
    rewards: ArrayLike,
    discount: float,
    decay: float,
    n: int | None = None,
    features: ArrayLike | None = None,
) -> Instruments:
    """Average over the steps of trajectories with accumulating eligibility traces in place of the features.

    With the traces z_t = gamma lambda z_{t-1} + phi_t, ``batch_td`` is offline TD(lambda) (Sutton, Machine Learning 3,
    1988) with a mean in place of the sum over steps, and ``lstd`` is LSTD(lambda) (Boyan, Machine Learning 49, 2002).

    Parameters
    ----------
    states : (..., m+1) int array, S_0, ..., S_m
    rewards : (..., m) array, R_1, ..., R_m
    discount : float, gamma
    decay : float, lambda, from 0 to 1
    n : int, number of states
        May be left out if features are given.
    features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default

    Returns
    -------
    Instruments of (..., d)

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, shapes do not match, or lambda or the discount is out of range.

    Examples
    --------
    >>> import ictd
    >>> traces = ictd.eligibility_traces([0, 1, 1, 0], [1.0, -1.0, -1.0], discount=0.9, decay=0.8, n=2)
    >>> ictd.lstd(traces, discount=0.9, ridge=0.01).round(2)
    array([-2.48, -3.59])
    """
    context = Context.from_trajectory(states, rewards, n, features)
    phi = features_of(states, state_features(n, features))  # (..., m+1, d)
    now, following = phi[..., :-1, :], phi[..., 1:, :]
    m = rewards.shape[-1]
    traces = np.array(now)
    for t in range(1, m):
        traces[..., t, :] += discount * decay * traces[..., t - 1, :]
    C, D, b = traces.mT @ now / m, traces.mT @ following / m, np.vecmat(rewards, traces) / m
    return Instruments(context, C, D, b)


@validate(
    transition=probabilities("..., n, n"),
    reward=array("..., n"),
    discount=DISCOUNT,
    decay=DECAY,
    features=optional(array("*, n, d")),
    weights=optional(probabilities("*, n")),
)
def expected_traces(
    transition: ArrayLike,
    reward: ArrayLike,
    discount: float,
    decay: float,
    features: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Instruments:
    """Compute the averages with eligibility traces for known chains, in closed form.

    With a diagonal matrix W of weights and T = (I - gamma lambda P)^{-1}, they are C = Phi' W T Phi, D = Phi' W T P Phi
    and b = Phi' W T r (Tsitsiklis and Van Roy, IEEE Transactions on Automatic Control 42, 1997).  ``lstd`` then
    projects the lambda-returns from states that have these weights.  With the stationary distribution as weights, they
    are the limit of ``eligibility_traces`` for long trajectories.

    Parameters
    ----------
    transition : (..., n, n) array, P, row-stochastic
    reward : (..., n) array, r(s)
    discount : float, gamma
    decay : float, lambda, from 0 to 1
    features : (n, d) or (..., n, d) array, Phi with phi(s) in row s; one-hot by default
    weights : (n,) or (..., n) array, which sum to one, optional
        1/n by default, as for the enumerated context.

    Returns
    -------
    Instruments of (..., d), with the length n

    Raises
    ------
    ValueError
        If a row is not a distribution, shapes do not match, or lambda or the discount is out of range.
    """
    context = Context.enumerated(transition, reward, features, weights)
    n = reward.shape[-1]
    weights = np.full(n, 1 / n) if weights is None else weights
    C = weights[..., None] * np.linalg.inv(np.eye(n) - discount * decay * transition)
    D, b = C @ transition, np.matvec(C, reward)
    if features is not None:
        C, D, b = features.mT @ C @ features, features.mT @ D @ features, np.vecmat(b, features)
    return Instruments(context, C, D, b)


def _residual_instruments(context: Context, discount: float) -> Instruments:
    """The averages with z_t = phi_t - gamma phi_{t+1}."""
    C, D = context.C - discount * context.D.mT, context.D - discount * context.E
    return Instruments(context, C, D, context.b - discount * context.d)


# Updates


@validate(
    context=instance(Context, Instruments, b="..., d"),
    discount=DISCOUNT,
    step_size=either(number(), array("K")),
    depth=integer(1),
    start=optional(array("*")),
    preconditioner=optional(array("*, d, d")),
)
def batch_td(
    context: Context | Instruments,
    discount: float,
    step_size: float | ArrayLike,
    depth: int,
    start: ArrayLike | None = None,
    preconditioner: ArrayLike | None = None,
) -> np.ndarray:
    """Estimate values by batch TD, w += alpha H (b + gamma D w - C w).

    An update is the one that a layer of theta^TD makes, eq. (tf sampled TD update) with the sum read as a mean.  With
    eligibility traces (``Instruments``) it is TD(lambda).

    Parameters
    ----------
    context : Context or Instruments of (..., d)
    discount : float, gamma
    step_size : float, alpha, or a (K,) array of them
    depth : int, number of updates L
    start : array of the shape of the estimates, w_0; zero by default
    preconditioner : (d, d) or (..., d, d) array, H; the identity by default
        ``np.diag(h)`` gives each feature a step size of its own.

    Returns
    -------
    estimates : (..., d) array, or (..., d, K) for K step sizes

    Raises
    ------
    ValueError
        If the discount or the depth is out of range, a step size is not finite, or shapes do not match.

    Warns
    -----
    RuntimeWarning
        If the updates diverge.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -1.0], n=2)
    >>> ictd.batch_td(context, discount=0.9, step_size=0.5, depth=200).round(2)
    array([-2.39, -3.77])
    """
    w = _updates(context, discount, step_size, depth, start, preconditioner)
    _warn_of_divergence("batch_td", context, discount, w)
    return w if np.ndim(step_size) else w[..., 0]


def _updates(
    context: Context | Instruments,
    discount: float,
    step_size: float | np.ndarray,
    depth: int,
    start: np.ndarray | None,
    preconditioner: np.ndarray | None,
) -> np.ndarray:
    """Estimates (..., d, K) of ``batch_td``, with K = 1 for one step size."""
    step_sizes = np.atleast_1d(step_size)
    b = context.b[..., None]
    shape = context.b.shape
    if preconditioner is not None:
        shape = np.broadcast_shapes(shape, preconditioner.shape[:-1])
    w = np.zeros((*shape, len(step_sizes)))
    if start is not None:
        expected = w.shape if np.ndim(step_size) else shape
        if start.shape != expected:
            raise ValueError(f"start has shape {start.shape}; give {expected}, the shape of the estimates.")
        w += start.reshape(w.shape)
    # Reuse two arrays in all updates, because allocating new ones takes longer than the sums.
    change, decay = np.empty_like(w), np.empty_like(w)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            np.matmul(context.D, w, out=change)
            change *= discount
            change += b
            change -= np.matmul(context.C, w, out=decay)
            change *= step_sizes
            w += change if preconditioner is None else np.matmul(preconditioner, change, out=decay)
    return w


def _mean_update(context: Context | Instruments, discount: float, w: np.ndarray) -> np.ndarray:
    """b + gamma D w - C w (..., d, K) of estimates w (..., d, K)."""
    return context.b[..., None] + discount * (context.D @ w) - context.C @ w


def _warn_of_divergence(name: str, context: Context | Instruments, discount: float, w: np.ndarray) -> None:
    """Warn if estimates (..., d, K) have diverged, unless ``np.errstate`` ignores overflow.

    Estimates have diverged if they are not finite.  They have also diverged if both are true: their mean square over
    the steps is larger than m times that of the rewards over (1 - gamma)^2, which no values exceed if steps count
    equally; and their mean update b + gamma D w - C w is larger than that of w = 0, so that they are not close to a
    solution.
    """
    if np.geterr()["over"] == "ignore":
        return
    steps = context.context if isinstance(context, Instruments) else context
    with np.errstate(over="ignore", invalid="ignore"):
        mean_square = (w * (steps.C @ w)).sum(axis=-2)  # (..., K)
        largest = (steps.length * steps.reward_square / (1 - discount) ** 2)[..., None]
        update = np.linalg.norm(_mean_update(context, discount, w), axis=-2)
        not_solved = ~(update <= np.linalg.norm(context.b, axis=-1)[..., None])
    diverged = ~np.isfinite(w).all(axis=-2) | (~(mean_square <= largest) & not_solved)
    if diverged.any():
        warnings.warn(
            f"{name} diverged for {diverged.sum()} of {diverged.size} estimates, which are larger than values can be;"
            " give a smaller step size.",
            RuntimeWarning,
            stacklevel=4,  # The caller of the function behind its validation.
        )


@validate(
    context=instance(Context, b="..., d"),
    discount=DISCOUNT,
    step_size=either(number(), array("K")),
    depth=integer(1),
    start=optional(array("*")),
    preconditioner=optional(array("*, d, d")),
)
def residual_gradient(
    context: Context,
    discount: float,
    step_size: float | ArrayLike,
    depth: int,
    start: ArrayLike | None = None,
    preconditioner: ArrayLike | None = None,
) -> np.ndarray:
    """Estimate values by the residual gradient algorithm, gradient descent on half the mean of delta_t^2.

    Source: Baird, "Residual algorithms", ICML 1995.  An update is w += alpha H (1/m) sum_t delta_t (phi_t - gamma
    phi_{t+1}).  On enumerated contexts, phi_{t+1} is the expected next feature, and delta_t is the Bellman residual of
    a state, so that this is Baird's algorithm.  On sampled contexts, one sample of the next state is in both factors,
    and the updates minimise the mean square TD error in place of the mean square Bellman residual: they need two
    independent samples to be unbiased (double sampling; "naive residual gradient" in Sutton and Barto, *Reinforcement
    Learning*, 2018, section 11.5).

    Parameters
    ----------
    context : Context of (..., d)
    discount : float, gamma
    step_size : float, alpha, or a (K,) array of them
    depth : int, number of updates L
    start : array of the shape of the estimates, w_0; zero by default
    preconditioner : (d, d) or (..., d, d) array, H; the identity by default

    Returns
    -------
    estimates : (..., d) array, or (..., d, K) for K step sizes

    Raises
    ------
    ValueError
        If the discount or the depth is out of range, a step size is not finite, or shapes do not match.

    Warns
    -----
    RuntimeWarning
        If the updates diverge.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.enumerated([[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0])
    >>> ictd.residual_gradient(context, discount=0.5, step_size=1.0, depth=100).round(3)
    array([1.846, 0.308])
    """
    instruments = _residual_instruments(context, discount)
    w = _updates(instruments, discount, step_size, depth, start, preconditioner)
    _warn_of_divergence("residual_gradient", instruments, discount, w)
    return w if np.ndim(step_size) else w[..., 0]


@validate(
    context=instance(Context), discount=DISCOUNT, step_size=number(), correction_step_size=number(), depth=integer(1)
)
def gtd2(context: Context, discount: float, step_size: float, correction_step_size: float, depth: int) -> np.ndarray:
    """Estimate values by GTD2, a gradient method for TD's fixed point that is stable off-policy.

    Source: Sutton et al., "Fast gradient-descent methods for temporal-difference learning with linear function
    approximation", ICML 2009, with means over the context in place of samples.  Both updates use the old y:

        y += beta (b + gamma D w - C w - C y),    w += alpha (C - gamma D)' y.

    Parameters
    ----------
    context : Context of (..., d)
    discount : float, gamma
    step_size : float, alpha
    correction_step_size : float, beta
    depth : int, number of updates L; w and y start from zero

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        If the discount or the depth is out of range, or a step size is not finite.

    Warns
    -----
    RuntimeWarning
        If the updates diverge.
    """
    w = y = np.zeros((*context.b.shape, 1))
    adjoint = (context.C - discount * context.D).mT
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            y_change = _mean_update(context, discount, w) - context.C @ y
            w, y = w + step_size * (adjoint @ y), y + correction_step_size * y_change
    _warn_of_divergence("gtd2", context, discount, w)
    return w[..., 0]


@validate(
    context=instance(Context), discount=DISCOUNT, step_size=number(), correction_step_size=number(), depth=integer(1)
)
def tdc(context: Context, discount: float, step_size: float, correction_step_size: float, depth: int) -> np.ndarray:
    """Estimate values by TDC, TD with a gradient correction, which is stable off-policy.

    Source: Sutton et al., ICML 2009, as ``gtd2``.  Both updates use the old y:

        y += beta (b + gamma D w - C w - C y),    w += alpha (b + gamma D w - C w - gamma D' y).

    Parameters
    ----------
    context : Context of (..., d)
    discount : float, gamma
    step_size : float, alpha
    correction_step_size : float, beta
    depth : int, number of updates L; w and y start from zero

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        If the discount or the depth is out of range, or a step size is not finite.

    Warns
    -----
    RuntimeWarning
        If the updates diverge.
    """
    w = y = np.zeros((*context.b.shape, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            update = _mean_update(context, discount, w)
            correction = discount * (context.D.mT @ y)
            w, y = w + step_size * (update - correction), y + correction_step_size * (update - context.C @ y)
    _warn_of_divergence("tdc", context, discount, w)
    return w[..., 0]


@validate(
    states=integers("..., m+1", 0),
    rewards=array("..., m"),
    discount=DISCOUNT,
    decay=array("K"),
    step_size=array("K"),
    lengths=integers("j", 1),
    n=optional(integer(1)),
    features=optional(array("*, n, d")),
    ratios=optional(array("..., m")),
)
def td_lambda(
    states: ArrayLike,
    rewards: ArrayLike,
    discount: float,
    decay: ArrayLike,
    step_size: ArrayLike,
    lengths: list[int],
    n: int | None = None,
    features: ArrayLike | None = None,
    ratios: ArrayLike | None = None,
) -> np.ndarray:
    """Estimate values by online TD(lambda) with accumulating traces, in one pass through each trajectory.

    Source: Sutton, Machine Learning 3, 1988.  With importance ratios rho_t the trajectories may be off-policy.  The
    traces are then z_t = rho_t (gamma lambda z_{t-1} + phi_t) (Sutton and Barto, *Reinforcement Learning*, 2018,
    section 12.9).

    Parameters
    ----------
    states : (..., M+1) int array, S_0, ..., S_M
    rewards : (..., M) array, R_1, ..., R_M
    discount : float, gamma
    decay : (K,) array, lambdas
    step_size : (K,) array, the step size that belongs to each lambda
    lengths : ascending list of int
        Numbers of steps after which estimates are kept.
    n : int, number of states
        May be left out if features are given.
    features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default
    ratios : (..., M) array, rho_0, ..., rho_{M-1}, optional
        Probability of step t under the process that is evaluated, divided by that under the process that the
        trajectory comes from: p(S_{t+1} | S_t) / q(S_{t+1} | S_t) for two chains p and q.  1 by default (on-policy).

    Returns
    -------
    estimates : (lengths, K, ..., d) array

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, lengths do not ascend from 1 to at most M, shapes do not match, or the discount
        is out of range.

    Examples
    --------
    >>> import ictd
    >>> ictd.td_lambda([0, 1, 1, 0], [1.0, -1.0, -1.0], 0.9, decay=[0.0, 0.8], step_size=[0.5, 0.5], lengths=[3], n=2)
    array([[[ 0.5      , -0.525    ],
            [ 0.0430592, -0.82164  ]]])
    """
    features = state_features(n, features)
    n, steps = features.shape[-2], rewards.shape[-1]
    refuse("states", states >= n, f"is not one of {n} states, which are 0 to {n - 1}")
    refuse("lengths", lengths > steps, f"is more than {steps}, the number of steps")
    refuse("lengths", lengths <= np.append(0, lengths[:-1]), "is not more than the length before it")
    lead = (len(step_size), *[1] * (rewards.ndim - 1))
    step_size, decay = step_size.reshape(lead), discount * decay.reshape(*lead, 1)
    following = features_of(states[..., :1], features)[..., 0, :]  # (..., d)
    w = np.zeros((len(step_size), *following.shape))
    trace, product = np.zeros_like(w), np.empty_like(w)
    ones = np.ones(features.shape[-1])
    kept = []
    for t in range(lengths.max()):
        phi, following = following, features_of(states[..., t + 1 : t + 2], features)[..., 0, :]
        # A product with ones is a faster sum over few features than np.vecdot.
        error = rewards[..., t] + np.multiply(w, discount * following - phi, out=product) @ ones  # (K, ...)
        trace *= decay
        trace += phi
        if ratios is not None:
            trace *= ratios[..., t, None]
        w += np.multiply((step_size * error)[..., None], trace, out=product)
        if t + 1 in lengths:
            kept.append(w.copy())
    return np.stack(kept)


# Solutions


@validate(context=instance(Context, Instruments), discount=DISCOUNT, ridge=POSITIVE)
def lstd(context: Context | Instruments, discount: float, ridge: float) -> np.ndarray:
    """Estimate values by least-squares TD, (m C - gamma m D + ridge I)^{-1} m b.

    Source: Bradtke and Barto, Machine Learning 22, 1996.  With eligibility traces (``Instruments``) it is LSTD(lambda)
    (Boyan, Machine Learning 49, 2002).

    Parameters
    ----------
    context : Context or Instruments of (..., d), of m steps
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


@validate(
    context=instance(Context, b="..., n"), discount=DISCOUNT, pseudo_counts=optional(array("*, n, n")), reward=number()
)
def certainty_equivalence(
    context: Context, discount: float, pseudo_counts: ArrayLike | None = None, reward: float = 0.0
) -> np.ndarray:
    """Compute the values of the maximum likelihood model of a context, with pseudo-counts of transitions.

    With positive pseudo-counts this is LSTD with these steps added to the context, each with the mean reward that the
    context shows in its state.  ``project_values`` turns the values into weights of features.

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


@validate(value=array("*, n"), features=array("*, n, d"), weights=probabilities("*, n"))
def project_values(value: ArrayLike, features: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Fit values by a linear function of features, with the least weighted squared error.

    For the true values, with the stationary distribution as weights, no weights w of the features have a lower MSVE
    (section "Policy Evaluation"; Tsitsiklis and Van Roy, IEEE Transactions on Automatic Control 42, 1997).

    Parameters
    ----------
    value : (..., n) array, v
    features : (n, d) or (..., n, d) array, phi(s) in row s
    weights : (n,) or (..., n) array, which sum to one

    Returns
    -------
    w : (..., d) array
        It minimises sum_s weights(s) (v(s) - w phi(s))^2.  Of several minimisers it is the shortest.

    Raises
    ------
    ValueError
        If shapes do not match, a number is not finite, or the weights are not a distribution.

    Examples
    --------
    >>> import ictd
    >>> ictd.project_values([1.0, 2.0, 6.0], features=[[1.0], [1.0], [2.0]], weights=[0.5, 0.25, 0.25])
    array([2.28571429])
    """
    root = np.sqrt(weights)
    return np.matvec(np.linalg.pinv(root[..., None] * features), root * value)


# Transformers whose layers are updates of known algorithms


@validate(preconditioner=array("..., d, d"))
def theta_preconditioned_td(preconditioner: ArrayLike) -> Weights:
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
    return _theta(np.concatenate([preconditioner.mT, np.zeros_like(preconditioner)], axis=-2))


@validate(preconditioner=array("..., d, d"))
def theta_residual_gradient(preconditioner: ArrayLike) -> Weights:
    """Make weights with which a layer is one update of the residual gradient algorithm, ``residual_gradient``.

    They have u = 0 and A = [H'; -H'] [-I, I] (arXiv 2405.13861, code).  A layer is Baird's update on enumerated
    contexts.  On sampled contexts it has one sample of the next state in both factors: see ``residual_gradient``.

    Parameters
    ----------
    preconditioner : (..., d, d) array, H
        A step size alpha is H = alpha I.

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
    >>> ictd.theta_residual_gradient([[0.5]]).A
    array([[-0.5,  0.5],
           [ 0.5, -0.5]])
    """
    return _theta(np.concatenate([preconditioner.mT, -preconditioner.mT], axis=-2))


def _theta(K: np.ndarray) -> Weights:
    """Weights with u = 0 and A = K [-I, I], from K (..., 2d, d)."""
    return Weights(np.zeros(K.shape[:-1]), preconditioned_td(K))


# The Bayes estimate


@dataclass(frozen=True)
class Posterior:
    """Weighted samples of transition matrices from the posterior given a context.

    Parameters
    ----------
    transition : (K, n, n) array
    stationary : (K, n) array, stationary distributions mu
    weights : (K,) array, with sum one
    """

    transition: np.ndarray
    stationary: np.ndarray
    weights: np.ndarray

    @property
    def effective_size(self) -> float:
        """Number of samples of equal weight with the same variance, 1 / sum_k weight_k^2."""
        return float(1 / (self.weights**2).sum())


@validate(path=integers("m", 0), states=integer(2), samples=integer(1), rng=GENERATOR)
def boyan_posterior(path: ArrayLike, states: int, samples: int, rng: np.random.Generator) -> Posterior:
    """Draw samples from the posterior of a Boyan's chain given one context, under the distribution of Algorithm 3.

    Let C_ij be the number of steps from i to j in the context.  In the posterior, epsilon_i is Beta(1 + C_{i,i+1}, 1 +
    C_{i,i+2}), and the last row x of p has a density in proportion to prod_j x_j^{C_nj} (max_j x_j)^{-n}.  The whole is
    multiplied by mu(S_0), because a context starts from the stationary distribution mu.  (In the prior, x is U / sum(U)
    with U_j uniform on [0, 1].  Its density is the integral of s^{n-1} over the s for which all s x_j <= 1, which is
    (max_j x_j)^{-n} / n.)

    Last rows are drawn by importance sampling from a mixture of two distributions, half of the samples from each:

    - the Dirichlet distribution with parameters 1 + C_nj.  It lacks the factor (max_j x_j)^{-n}, and is close to the
      posterior if C_n = sum_j C_nj is large.
    - the distribution of U / sum(U) with U_j ~ Beta(1 + C_nj, 1).  It has (max_j x_j)^{-n-C_n} in place of that factor,
      and is the prior if C_n = 0.

    Parameters
    ----------
    path : (m+1,) int array, S_0, ..., S_m
    states : int, n
    samples : int, K
    rng : numpy.random.Generator

    Returns
    -------
    Posterior of K samples

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, a step is impossible in a Boyan's chain, or a number is out of range.
    """
    refuse("path", path >= states, f"is not one of {states} states, which are 0 to {states - 1}")
    inside, ahead = path[:-1] < states - 1, np.diff(path)
    refuse("path", inside & (ahead != 1) & (ahead != 2), "starts a step that no Boyan's chain makes")
    counts = np.zeros((states, states))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    inner = np.arange(states - 2)
    epsilon = rng.beta(1 + counts[inner, inner + 1], 1 + counts[inner, inner + 2], (samples, states - 2))
    transition = np.zeros((samples, states, states))
    transition[:, inner, inner + 1] = epsilon
    transition[:, inner, inner + 2] = 1 - epsilon
    transition[:, states - 2, states - 1] = 1
    transition[:, -1], log_weights = _last_rows(counts[-1], samples, rng)
    stationary = _boyan_stationary(transition)
    weights = np.exp(log_weights - log_weights.max()) * stationary[:, path[0]]
    return Posterior(transition, stationary, weights / weights.sum())


def _boyan_stationary(transition: np.ndarray) -> np.ndarray:
    """Stationary distributions (K, n) of chains (K, n, n) whose states, except the last, lead to later states only.

    From the last state on, mu(s) = mu(n) p(s | n) + sum_{i < s} mu(i) p(s | i).  This is faster than
    ``stationary_distribution`` and as accurate, because it adds and multiplies non-negative numbers only.
    """
    last = transition.shape[-1] - 1
    mu = np.ones(transition.shape[:-1])
    for s in range(last):
        mu[:, s] = transition[:, last, s] + (mu[:, :s] * transition[:, :s, s]).sum(axis=-1)
    return mu / mu.sum(axis=-1, keepdims=True)


def _last_rows(counts: np.ndarray, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw last rows x (K, n) of p, given the counts C_nj (n,), with the logarithms (K,) of their weights.

    The factor prod_j x_j^{C_nj}, which all three densities share, is left out.
    """
    states = len(counts)
    total = states + counts.sum()
    U = rng.beta(1 + counts, 1, (samples - samples // 2, states))
    x = np.concatenate([rng.dirichlet(1 + counts, samples // 2), U / U.sum(axis=-1, keepdims=True)])
    largest = np.log(x.max(axis=-1))
    log_dirichlet = math.lgamma(total) - sum(math.lgamma(1 + count) for count in counts)
    log_scaled = np.log1p(counts).sum() - math.log(total) - total * largest
    return x, -states * largest - np.logaddexp(log_dirichlet, log_scaled)


@validate(posterior=instance(Posterior, stationary="K, n"), known_reward=array("n"), discount=DISCOUNT)
def posterior_values(posterior: Posterior, known_reward: ArrayLike, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """Compute the posterior mean of v, and the estimate with the least expected MSVE.

    The least expected MSVE is the Bayes error.  Its estimate of v(s) is E[mu(s) v(s)] / E[mu(s)].  The best estimate
    that is linear in features is ``project_values`` of that estimate, with the weights E[mu].

    Rewards are uniform on [-1, 1], and known for visited states.  The expected reward of other states is zero, and v is
    linear in the rewards.

    Parameters
    ----------
    posterior : Posterior of n states
    known_reward : (n,) array, r(s) of states that steps of the context start from, 0 for other states
    discount : float, gamma

    Returns
    -------
    mean : (n,) array
    estimate : (n,) array

    Raises
    ------
    ValueError
        If the numbers of states differ, a reward is not finite, or the discount is out of range.

    Examples
    --------
    >>> import ictd, numpy
    >>> posterior = ictd.boyan_posterior([0, 1, 0, 1, 1], states=2, samples=20_000, rng=numpy.random.default_rng(0))
    >>> mean, estimate = ictd.posterior_values(posterior, known_reward=[0.5, -1.0], discount=0.9)
    >>> mean.round(1)
    array([-4.1, -5.2])
    """
    rewards = np.broadcast_to(known_reward, posterior.stationary.shape)
    values = value_function(posterior.transition, rewards, discount)
    weights, mu = posterior.weights, posterior.stationary
    estimate = weights @ (mu * values) / (weights @ mu)
    return weights @ values, estimate
