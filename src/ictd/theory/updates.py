"""The expected update and its norm (NEU), J and J' of section "Global Minimizer of Pretraining Loss".

    J(theta)  = || E[(r(s_q) + gamma TF_L(Z_0') - TF_L(Z_0)) grad TF_L(Z_0)] ||_1,
    J'(theta) = || E[(G(s_q) - TF_L(Z_0)) grad TF_L(Z_0)] ||_1,

where ||.||_1 of an update is the sum of its absolute entries.  Expectations over s_q, s_q' and G are exact.  The
expectation over tasks is a mean over a sample.  The sample is split into groups of equal size, and the spread of their
mean updates gives a standard error.

There are three ways to an expected update.  ``sweep_gradients`` goes forward through the gradients and gives the update
in Theta^looped for every depth up to L.  ``looped_updates`` and ``layer_updates`` go backward through the layers and
give the update for one depth, in Theta^looped and in Theta, where each layer has its own parameters.
"""

from dataclasses import dataclass

import numpy as np

from ictd.theory.recursion import (
    ALGOS,
    Embeddings,
    Gradients,
    gradients,
    krylov,
    times_X_transposed,
)

# Number of groups of tasks.
GROUPS = 20
# Norms of gradients are computed for every layer up to this one, the depth of the paper's main setting, and for every
# tenth layer after it.
EVERY_LAYER_TO = 30
# Number of layers whose updates a sweep computes at once.
AT_ONCE = 10


def norm_of_mean(updates: np.ndarray) -> np.ndarray:
    """Norm (...) of the mean of the updates (G, ..., k) of G groups of tasks, along the last axis."""
    return np.abs(updates.mean(axis=0)).sum(axis=-1)


def estimate_norm(updates: np.ndarray) -> dict[str, np.ndarray]:
    """Estimate the norm of the expected update.

    Parameters
    ----------
    updates : (G, ..., k) array, mean updates of G groups of tasks

    Returns
    -------
    dict of (...) arrays, "norm" and "standard_error", which is to first order

    Raises
    ------
    ValueError
        If there are fewer than two groups.
    """
    groups = len(updates)
    if groups < 2:
        raise ValueError("there is one group of tasks; a standard error needs at least two.")
    # The norm is sum_i sign(mean_i) mean_i, and near the mean the signs are constant.
    linearised = np.vecdot(updates, np.sign(updates.mean(axis=0)))
    return {"norm": norm_of_mean(updates), "standard_error": linearised.std(axis=0, ddof=1) / np.sqrt(groups)}


def layer_updates(
    Z: Embeddings, errors: np.ndarray, depth: int, scale: float = 1.0, groups: int = GROUPS
) -> np.ndarray:
    """Compute the expected update in Theta, at the weights of a looped Transformer, by an adjoint sweep.

    With the state weights e = mu times the expected errors, and with

        lam_L = 0,    lam_l = sum_q e_q g^q + f lam_{l+1},

    which is the gradient of sum_q e_q y_L^q with respect to Y_l, the update is

        -X (lam_l - lam_{l+1}) for u_l,    -X k_l' (sum_q e_q x^q + X lam_{l+1})' for A_l.

    Parameters
    ----------
    Z : Embeddings of N tasks, up to layer L or further
    errors : (N, n) array, expected errors of TF_L
    depth : int, L
    scale : float
        The factor of A in these embeddings: 1 in the theory, 1/n where attention is divided by n.  The update is that
        of A without the factor.
    groups : int, number of groups of equal size; the N tasks are split into these

    Returns
    -------
    updates : (groups, L, 2n + 4n^2) array
        Mean over each group of tasks of the update of (u_l, A_l), u before A.  The sum over l is the update in
        Theta^looped.

    Raises
    ------
    ValueError
        If N is not a multiple of the number of groups.
    """
    e, lam = _adjoint(Z, errors, depth)
    tasks, states = e.shape
    if tasks % groups or not tasks:
        raise ValueError(f"there are {tasks} tasks; give a multiple of {groups}, so that groups are of one size.")
    gamma_P = Z.X[:, states:].mT
    group_size = tasks // groups
    width = 2 * states
    updates = np.empty((groups, depth, width + width**2))
    for group, update in enumerate(updates):
        members = slice(group * group_size, (group + 1) * group_size)
        # The factors k_l X' and sum_q e_q x^q' + lam_l' X'.
        left = _factor(Z.k[members, :depth], gamma_P[members])
        right = _factor(lam[members], gamma_P[members])
        right[..., :states] += e[members]
        update[:, :width] = np.diff(right.mean(axis=1), axis=0)
        dA = update[:, width:].reshape(depth, width, width)
        np.matmul(left.mT, right[1:], out=dA)
        dA *= -scale / group_size
    return updates


def _factor(rows: np.ndarray, gamma_P: np.ndarray) -> np.ndarray:
    """Rows b X' for K rows b of each task, (N, K, n), as (K, N, 2n).  The left half of X' = [I, gamma P] is I."""
    tasks, layers, states = rows.shape
    factor = np.empty((layers, tasks, 2 * states))
    factor[..., :states] = rows.swapaxes(0, 1)
    np.matmul(rows, gamma_P, out=factor[..., states:].swapaxes(0, 1))
    return factor


def looped_updates(Z: Embeddings, errors: np.ndarray, depth: int) -> np.ndarray:
    """Compute the expected update in Theta^looped, the sum over layers of ``layer_updates``.

    The factors X and X' are the same in all layers, so only the factors in between are summed over layers.

    Parameters
    ----------
    Z : Embeddings of N tasks, up to layer L or further
    errors : (N, n) array, expected errors of TF_L
    depth : int, L

    Returns
    -------
    update : (2n + 4n^2,) array, mean over tasks, u before A
    """
    e, lam = _adjoint(Z, errors, depth)
    k = Z.k[:, :depth]
    middle = k.mT @ lam[:, 1:]  # sum_l k_l' lam_{l+1}', (N, n, n)
    dA = _mean_of_products(Z.X, middle[:, :, None], 1)[0, 0]
    dA[:, : Z.tasks.states] += np.matvec(Z.X, k.sum(axis=1)).T @ e / len(e)
    du = np.matvec(Z.X, lam[:, 0]).mean(axis=0)
    return -np.concatenate([du, dA.ravel()])


def _mean_of_products(X: np.ndarray, middle: np.ndarray, groups: int) -> np.ndarray:
    """Means over groups of tasks of X M X', for k matrices M (N, n, k, n) with k on the third axis.

    The result is a (groups, k, 2n, 2n) array.
    """
    right = times_X_transposed(X, middle)
    lower = X[:, X.shape[-1] :] @ right.reshape(len(X), X.shape[-1], -1)
    shape = (groups, -1, *right.shape[1:])
    means = [half.reshape(shape).mean(axis=1) for half in (right, lower)]
    return np.concatenate(means, axis=1).swapaxes(1, 2)


def _adjoint(Z: Embeddings, errors: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """State weights e (N, n) and lam_0, ..., lam_L (N, L+1, n) of ``layer_updates``."""
    e = Z.tasks.stationary * errors
    lam = np.zeros((*e.shape, depth + 1)).mT
    # lam_{L-l}' is the sum of (eg)' (f')^j over j < l.
    terms = krylov(np.matvec(Z.g, e), Z.f.mT, depth)
    np.cumsum(terms.mT, axis=2, out=lam.mT[..., depth - 1 :: -1])
    return e, lam


@dataclass(frozen=True)
class GradientSweep:
    """Results of a pass through the gradients at layers 0, ..., L.

    Parameters
    ----------
    layers : (K,) int array, layers for which norms are computed
    norms : dict of (N, K) arrays
        Largest over i or q: induced norms of grad_A y_l^(i) ("A_context") and of grad_A y_l^q ("A_query"), norms of
        grad_u Y_l ("u_context") and of grad_u y_l^q ("u_query"), and the sum of the absolute entries of
        grad_theta TF_l ("theta").
    updates : dict of (groups, L+1, 2n + 4n^2) arrays
        By "td" and "mc", mean over each group of tasks of the expected update in Theta^looped at theta_l^TD, u
        before A.
    """

    layers: np.ndarray
    norms: dict[str, np.ndarray]
    updates: dict[str, np.ndarray]


def sweep_gradients(Z: Embeddings, groups: int = 1) -> GradientSweep:
    """Compute norms of the gradients and, with the errors of ``Embeddings.theta_td_errors``, the expected updates.

    Parameters
    ----------
    Z : Embeddings of N tasks at theta^TD
    groups : int, number of groups of equal size; the N tasks are split into these

    Returns
    -------
    GradientSweep
    """
    errors = np.stack([Z.theta_td_errors(algo) for algo in ALGOS], axis=2)
    e = Z.tasks.stationary[:, None, None] * errors  # (N, L+1, 2, n)
    tasks, _, algos, states = e.shape
    g_e = (e.reshape(tasks, -1, states) @ Z.g.mT).reshape(e.shape)  # sum_q e_q g^q
    width = 2 * states
    layers = [layer for layer in range(Z.depth + 1) if layer <= EVERY_LAYER_TO or layer % 10 == 0]
    norms = []
    updates = np.empty((groups, Z.depth + 1, algos, width + width**2))
    middle = np.empty((tasks, states, AT_ONCE, algos, states))
    for layer, gradient in enumerate(gradients(Z)):
        if layer in layers:
            norms.append(gradient_norms(gradient))
        du = e[:, layer] @ gradient.V.mT
        updates[:, layer, :, :width] = du.reshape(groups, -1, algos, width).mean(axis=1)
        # sum_q e_q grad_A y_l^q = X (sum_j (ge)_j C^(j) X' + a e'), whose first term is computed for several layers at
        # once, which makes the matrix products larger.
        place = layer % AT_ONCE
        middle[:, :, place] = gradient.weighted(g_e[:, layer]).swapaxes(1, 2)
        X_a = np.matvec(Z.X, gradient.a).reshape(groups, -1, width)
        direct = X_a.mT @ e[:, layer].reshape(groups, -1, algos * states) / (tasks // groups)
        dA = updates[:, layer, :, width:].reshape(groups, algos, width, width)
        dA[...] = 0
        dA[..., :states] = direct.reshape(groups, width, algos, states).swapaxes(1, 2)
        if place == AT_ONCE - 1 or layer == Z.depth:
            pairs = middle[:, :, : place + 1].reshape(tasks, states, -1, states)
            of_layers = slice(layer - place, layer + 1)
            updates[:, of_layers, :, width:] += _mean_of_products(Z.X, pairs, groups).reshape(
                groups, place + 1, algos, -1
            )
    np.negative(updates, out=updates)
    return GradientSweep(
        np.array(layers),
        {name: np.stack([of_layer[name] for of_layer in norms], axis=1) for name in norms[0]},
        {algo: updates[:, :, i] for i, algo in enumerate(ALGOS)},
    )


def gradient_norms(gradient: Gradients) -> dict[str, np.ndarray]:
    """Norms (N,) of the gradients at one layer, as ``GradientSweep.norms`` has them."""
    A_context = column_sums(gradient.X, gradient.context_right())  # (N, n, 2n)
    A_query = column_sums(gradient.X, gradient.query_right())
    u_context = np.abs(gradient.U).sum(axis=-2)  # (N, n)
    u_query = np.abs(gradient.V).sum(axis=-2)
    return {
        "A_context": A_context.max(axis=-1).max(axis=-1),
        "A_query": A_query.max(axis=-1).max(axis=-1),
        "u_context": u_context.max(axis=-1),
        "u_query": u_query.max(axis=-1),
        "theta": (A_query.sum(axis=-1) + u_query).max(axis=-1),
    }


def column_sums(X: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sums (N, n, 2n) of the absolute entries of the columns of X M, for M (N, n, n, 2n) with n matrices on axis 2."""
    tasks, states = right.shape[:2]
    rows = right.reshape(tasks, states, -1)
    lower = X[:, states:] @ rows
    sums = np.abs(rows, out=rows).sum(axis=1) + np.abs(lower, out=lower).sum(axis=1)
    return sums.reshape(tasks, states, -1)
