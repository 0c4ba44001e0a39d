"""The expected update and its norm (NEU), J and J' of section "Global Minimizer of Pretraining Loss".

    J(theta)  = || E[(r(s_q) + gamma TF_L(Z_0') - TF_L(Z_0)) grad TF_L(Z_0)] ||_1,
    J'(theta) = || E[(G(s_q) - TF_L(Z_0)) grad TF_L(Z_0)] ||_1,

where ||.||_1 of an update is the sum of its absolute entries.  Expectations over s_q, s_q' and G are exact.  The
expectation over tasks is a mean over a sample.  The sample is split into groups of equal size, and the spread of their
mean updates gives a standard error.

There are two ways to an expected update.  ``sweep_gradients`` goes forward through the gradients and gives the update
in Theta^looped for every depth up to L.  ``layer_updates`` goes backward through the layers and gives the update in
Theta, where each layer has its own parameters, for one depth.
"""

from dataclasses import dataclass

import numpy as np

from ictd.theory.recursion import ALGOS, Embeddings, Gradients, gradients, krylov

# Number of groups of tasks.
GROUPS = 20
# Norms of gradients are computed for every layer up to this one, the depth of the paper's main setting, and for every
# tenth layer after it.
EVERY_LAYER_TO = 30


@dataclass(frozen=True)
class NormEstimate:
    """Estimates of norms of expected updates.

    Parameters
    ----------
    norm : (...) array
    standard_error : (...) array, to first order
    noise : (...) array
        The mean of the norm if the true update were zero.
    """

    norm: np.ndarray
    standard_error: np.ndarray
    noise: np.ndarray


def norm_of_mean(updates: np.ndarray) -> np.ndarray:
    """Norm (...) of the mean of the updates (G, ..., k) of G groups of tasks, along the last axis."""
    return np.abs(updates.mean(axis=0)).sum(axis=-1)


def estimate_norm(updates: np.ndarray) -> NormEstimate:
    """Estimate the norm of the expected update.

    Parameters
    ----------
    updates : (G, ..., k) array, mean updates of G groups of tasks

    Returns
    -------
    NormEstimate of (...) arrays

    Raises
    ------
    ValueError
        If there are fewer than two groups.
    """
    groups = len(updates)
    if groups < 2:
        raise ValueError("there is one group of tasks; a standard error needs at least two.")
    mean = updates.mean(axis=0)
    # The norm is sum_i sign(mean_i) mean_i, and near the mean the signs are constant.
    linearised = (np.sign(mean) * updates).sum(axis=-1)
    errors = updates.std(axis=0, ddof=1) / np.sqrt(groups)
    return NormEstimate(
        norm=norm_of_mean(updates),
        standard_error=linearised.std(axis=0, ddof=1) / np.sqrt(groups),
        # The mean absolute value of a normal variable is sqrt(2 / pi) standard deviations.
        noise=np.sqrt(2 / np.pi) * errors.sum(axis=-1),
    )


def layer_updates(Z: Embeddings, errors: np.ndarray, depth: int, scale: float = 1.0) -> np.ndarray:
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

    Returns
    -------
    updates : (GROUPS, L, 2n + 4n^2) array
        Mean over each group of tasks of the update of (u_l, A_l), u before A.  Its sum over l is the update in
        Theta^looped.

    Raises
    ------
    ValueError
        If N is not a multiple of GROUPS.
    """
    tasks, states = Z.tasks.reward.shape
    if tasks % GROUPS or not tasks:
        raise ValueError(f"there are {tasks} tasks; give a multiple of {GROUPS}, so that groups are of one size.")
    e = (Z.tasks.stationary * errors)[:, None]  # (N, 1, n)
    eg = (e @ Z.g.mT)[:, 0]
    lam = np.zeros((tasks, depth + 1, states))
    # lam_{L-l}' is the sum of (eg)' (f')^j over j < l.
    lam[:, depth - 1 :: -1] = np.cumsum(krylov(eg, Z.f.mT, depth), axis=1)
    # The factors k_l X' and sum_q e_q x^q' + lam_l' X' of each group.  X' = [I, gamma P], so that the first half needs
    # no product.
    gamma_P = Z.X[:, states:].mT
    group_size = tasks // GROUPS
    width = 2 * states
    updates = np.empty((GROUPS, depth, width + width**2))
    for group, update in enumerate(updates):
        members = slice(group * group_size, (group + 1) * group_size)
        k = Z.k[members, :depth]
        left = np.concatenate([k, k @ gamma_P[members]], axis=2)
        right = np.concatenate([lam[members] + e[members], lam[members] @ gamma_P[members]], axis=2)
        update[:, :width] = (right[:, 1:] - right[:, :-1]).mean(axis=0)
        dA = update[:, width:].reshape(depth, width, width)
        np.matmul(left.transpose(1, 2, 0), right[:, 1:].transpose(1, 0, 2), out=dA)
        dA *= -scale / group_size
    return updates


@dataclass(frozen=True)
class GradientSweep:
    """Results of a pass through the gradients at layers 0, ..., L.

    Parameters
    ----------
    layers : (K,) int array, those for which norms are computed
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


def layers_of_norms(depth: int) -> list[int]:
    """Layers up to ``depth`` for which norms of gradients are computed."""
    return [layer for layer in range(depth + 1) if layer <= EVERY_LAYER_TO or layer % 10 == 0]


def sweep_gradients(Z: Embeddings, groups: int = 1) -> GradientSweep:
    """Compute norms of the gradients and, with the errors of ``Embeddings.theta_td_errors``, the expected updates.

    Parameters
    ----------
    Z : Embeddings of N tasks at theta^TD
    groups : int, number of groups of equal size that N tasks are split into

    Returns
    -------
    GradientSweep
    """
    errors = np.stack([Z.theta_td_errors(algo) for algo in ALGOS], axis=2)
    e = Z.tasks.stationary[:, None, None] * errors  # (N, L+1, 2, n)
    layers = layers_of_norms(Z.depth)
    norms, updates = [], []
    for layer, gradient in enumerate(gradients(Z)):
        task_updates = gradient.looped_updates(e[:, layer])
        updates.append(task_updates.reshape(groups, -1, *task_updates.shape[1:]).mean(axis=1))
        if layer in layers:
            norms.append(gradient_norms(gradient))
    return GradientSweep(
        np.array(layers),
        {name: np.stack([of_layer[name] for of_layer in norms], axis=1) for name in norms[0]},
        {algo: np.stack([update[:, i] for update in updates], axis=1) for i, algo in enumerate(ALGOS)},
    )


def gradient_norms(gradient: Gradients) -> dict[str, np.ndarray]:
    """Norms (N,) of the gradients at one layer, as ``GradientSweep.norms`` has them."""
    A_context = np.abs(gradient.context_A()).sum(axis=-2)  # (N, n, 2n), sums of columns
    A_query = np.abs(gradient.query_A()).sum(axis=-2)
    u_context = np.abs(gradient.U).sum(axis=-2)  # (N, n)
    u_query = np.abs(gradient.V).sum(axis=-2)
    return {
        "A_context": A_context.max(axis=-1).max(axis=-1),
        "A_query": A_query.max(axis=-1).max(axis=-1),
        "u_context": u_context.max(axis=-1),
        "u_query": u_query.max(axis=-1),
        "theta": (A_query.sum(axis=-1) + u_query).max(axis=-1),
    }
