"""A family of weights with the limit v, which contains theta^TD.

On enumerated prompts, with u = 0 and A = K [-I, I], where K = [G; H], eq. (Yl dissection) is Y_{l+1} = Y_l B with

    B = I - (G + gamma P H) (I - gamma P'),    TF_L = v' - r' B^L (I - gamma P')^{-1}

for all query states.  If c = ||B||_1 < 1 for every P, then |v - TF_L| <= c^L ||r||_inf / (1 - gamma).  J and J' vanish
as well, because the gradient grows with L no faster than L^2.  theta^TD is the case G = I, H = 0, where B = gamma P'.

With A = K [-I, I] + N [I, I], the limit is v if and only if gamma X'N P' = 0.  For an invertible P and a positive gamma
this means X'N = 0, so that N has no effect on the prompt.  With any u, the limit is v' + u X (I - gamma P')^{-1}, which
is v if and only if u X = 0.  docs/theory.md has the proofs.

Two constructions of arXiv 2405.13861 are in the family: TD with a preconditioner C has K = [C; 0], and the residual
gradient has K = [C; -C].  docs/related-work.md has the sources.
"""

import numpy as np

from ictd.baselines import theta_preconditioned_td
from ictd.mrp import Tasks, value_function
from ictd.theory.recursion import Embeddings
from ictd.transformer import Weights, preconditioned_td, theta_td

# Random weights of the family, the same weights with N [I, I] added, and the same weights with a random u.
MEMBERS = ("inside", "beyond", "with_u")


def contraction(discount: float) -> float:
    """c of the random weights: the mean of 1 and gamma, which is c of theta^TD."""
    return (1 + discount) / 2


def error_bound(tasks: Tasks, discount: float, depth: int) -> np.ndarray:
    """The bound c^l ||r||_inf / (1 - gamma) on |v - TF_l| for l = 0, ..., L, with the largest reward of all tasks."""
    return contraction(discount) ** np.arange(depth + 1) * np.abs(tasks.reward).max() / (1 - discount)


def limit(u: np.ndarray, tasks: Tasks, discount: float) -> np.ndarray:
    """Compute the limit v' + u X (I - gamma P')^{-1} of TF_L for weights of the family with any u.

    Parameters
    ----------
    u : (2n,) array
    tasks : Tasks, N of them with n states
    discount : float, gamma

    Returns
    -------
    limit : (N, n) array, for each query state
    """
    upper, lower = np.split(u, 2)
    uX = upper + discount * tasks.transition @ lower
    return value_function(tasks.transition, tasks.reward + uX, discount)


def random_weights(
    tasks: Tasks, discount: float, rng: np.random.Generator, u_rng: np.random.Generator
) -> dict[str, Weights]:
    """Draw weights of the family, and change them in two ways.

    Parameters
    ----------
    tasks : Tasks with n states
        Weights of the family have ||B||_1 <= ``contraction(discount)`` on all of these tasks.
    discount : float, gamma
    rng : numpy.random.Generator, for K and N
    u_rng : numpy.random.Generator, for u

    Returns
    -------
    dict of Weights by the names of ``MEMBERS``
        N has the same norm as the difference between K and the K of theta^TD.  The entries of u are standard normal.
    """
    states = tasks.states
    K = random_preconditioner(tasks, discount, rng)
    N = rng.normal(size=(2 * states, states))
    N *= np.linalg.norm(K - theta_preconditioner(states)) / np.linalg.norm(N)
    u = np.zeros(2 * states)
    inside = preconditioned_td(K)
    return {
        "inside": Weights(u, inside),
        "beyond": Weights(u, inside + np.concatenate([N, N], axis=-1)),
        "with_u": Weights(u_rng.normal(size=2 * states), inside),
    }


def algorithm_weights(tasks: Tasks, discount: float) -> dict[str, Weights]:
    """Weights of the family whose layers are updates of a known algorithm.

    Parameters
    ----------
    tasks : Tasks with n states
        The residual gradient takes the step size whose largest spectral radius of B on these tasks is smallest.
    discount : float, gamma

    Returns
    -------
    dict of Weights: "theta_td", "residual_gradient" and "deflated_td"
        theta^TD has K = [I; 0].  The residual gradient (Baird 1995) has K = alpha [I; -I], so that B = I - alpha (I -
        gamma P) (I - gamma P').  Deflated TD has K = [I + gamma / ((1 - gamma) n) 11'; 0], so that B = gamma (P' -
        11' / n): the eigenvalue gamma of gamma P' becomes 0.  Its updates are those of arXiv 2407.10454 with rank
        one.
    """
    n = tasks.states
    identity = np.eye(n)
    eigenvalues = np.linalg.svd(identity - discount * tasks.transition, compute_uv=False) ** 2
    step_size = 2 / (eigenvalues.min() + eigenvalues.max())
    residual = step_size * np.concatenate([identity, -identity])
    deflating = identity + discount / ((1 - discount) * n)
    return {
        "theta_td": theta_td(n),
        "residual_gradient": Weights(np.zeros(2 * n), preconditioned_td(residual)),
        "deflated_td": theta_preconditioned_td(deflating),
    }


def theta_preconditioner(states: int) -> np.ndarray:
    """K of theta^TD, [I; 0], (2n, n)."""
    return np.eye(2 * states, states)


def random_preconditioner(tasks: Tasks, discount: float, rng: np.random.Generator) -> np.ndarray:
    """Draw K (2n, n) such that ||B||_1 is at most ``contraction(discount)`` on all the tasks."""
    P, n = tasks.transition, tasks.states
    E = rng.normal(size=(2 * n, n))
    # The change of B (N, n, n) if E is added to K.
    change = (E[:n] + discount * P @ E[n:]) @ (np.eye(n) - discount * P.mT)
    largest_norm = np.abs(change).sum(axis=-2).max()
    return theta_preconditioner(n) + (contraction(discount) - discount) / largest_norm * E


def largest_error(Z: Embeddings, target: np.ndarray) -> np.ndarray:
    """max |target - TF_l| over tasks and query states, (L+1,), for a target (N, n)."""
    return np.abs(target[:, None] - Z.TF).max(axis=(0, 2))
