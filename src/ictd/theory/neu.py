"""The norm of the expected update (NEU), J and J' of section "Global Minimizer of Pretraining Loss".

    J(theta)  = || E[(r(s_q) + gamma TF_L(Z_0') - TF_L(Z_0)) grad TF_L(Z_0)] ||_1,
    J'(theta) = || E[(G(s_q) - TF_L(Z_0)) grad TF_L(Z_0)] ||_1,

the norm being the sum of absolute entries.  The expectations over s_q, s_q' and G are exact; that over tasks is a mean
over a sample, cut into groups that give its standard error.
"""

from dataclasses import dataclass

import numpy as np

from ictd.theory.embeddings import Embeddings


@dataclass(frozen=True)
class Neu:
    """Norms of expected updates.

    Parameters
    ----------
    norm : (...) array
    standard_error : (...) array, to first order
    noise : (...) array, what the norm would be on average, were the true update zero
    """

    norm: np.ndarray
    standard_error: np.ndarray
    noise: np.ndarray


# Tasks are cut into this many groups, whose spread gives the standard error.
GROUPS = 20


def norm(updates: np.ndarray) -> np.ndarray:
    """Norm (...) over the last axis of the mean update, from the mean updates (G, ..., k) of G groups of tasks."""
    return np.abs(updates.mean(axis=0)).sum(axis=-1)


def neu(updates: np.ndarray) -> Neu:
    """The norm with its standard error and noise, from the same.

    ValueError for fewer than two groups, which show no error.
    """
    groups = len(updates)
    if groups < 2:
        raise ValueError("there is one group of tasks; a standard error needs at least two.")
    mean = updates.mean(axis=0)
    along = (np.sign(mean) * updates).sum(axis=-1)
    errors = updates.std(axis=0, ddof=1) / np.sqrt(groups)
    return Neu(
        norm(updates),
        along.std(axis=0, ddof=1) / np.sqrt(groups),
        np.sqrt(2 / np.pi) * errors.sum(axis=-1),
    )


def expected_updates(rows: Embeddings, errors: np.ndarray, depth: int, scale: float = 1.0) -> np.ndarray:
    """Means over groups of tasks of the expected update at a looped Transformer's weights, by an adjoint sweep.

    The result is a (GROUPS, L, 2n + 4n^2) array.  Row l is the part of (u, A) of layer l, u before A, the gradient
    being in Theta; the sum of the rows is that in Theta^looped.  ValueError if N is not a multiple of GROUPS.

    With state weights e = mu times the expected errors, and with

        lam_L = 0,    lam_l = sum_q e_q g^q + f lam_{l+1},

    which is the gradient of sum_q e_q y_L^q for Y_l, it is

        -X (lam_l - lam_{l+1}) for u_l,    -X k_l' (sum_q e_q x^q + X lam_{l+1})' for A_l.

    Parameters
    ----------
    rows : Embeddings of N tasks, up to layer L at least
    errors : (N, n) array, expected errors of TF_L
    depth : int, L
    scale : float
        What A was multiplied by for these embeddings: 1 in the theory, 1/n where attention is divided by n.
    """
    tasks, states = rows.tasks.reward.shape
    if tasks % GROUPS or not tasks:
        raise ValueError(f"there are {tasks} tasks; give a multiple of {GROUPS}, so that groups are of one size.")
    e = (rows.tasks.stationary * errors)[:, None]
    eg = e @ rows.g.mT
    lam = np.zeros((tasks, depth + 1, states))
    for layer in range(depth - 1, -1, -1):
        lam[:, layer] = (eg + lam[:, layer + 1, None] @ rows.f.mT)[:, 0]
    # Of each group k_l X' and sum_q e_q x^q' + lam_l' X', where X' = [I, Y], whose first half needs no product.
    Y, size, wide = rows.X[:, states:].mT, tasks // GROUPS, 2 * states
    updates = np.empty((GROUPS, depth, wide + wide**2))
    for group, update in enumerate(updates):
        own = slice(group * size, (group + 1) * size)
        k, adjoint = rows.k[own, :depth], lam[own]
        left = np.concatenate([k, k @ Y[own]], axis=2)
        right = np.concatenate([adjoint + e[own], adjoint @ Y[own]], axis=2)
        update[:, :wide] = (right[:, 1:] - right[:, :-1]).mean(axis=0)
        dA = update[:, wide:].reshape(depth, wide, wide)
        np.matmul(left.transpose(1, 2, 0), right[:, 1:].transpose(1, 0, 2), out=dA)
        dA *= -scale / size
    return updates
