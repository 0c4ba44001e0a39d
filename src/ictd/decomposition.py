"""What pretrained weights consist of: a step of theta^TD, a preconditioner of the TD error, and the rest.

Columns of a prompt end in p(. | s) or in phi(S_{t+1}), whose entries sum to one as those of phi(s) do.  So for

    a = [-gamma 1; 1],    a' x = -gamma + gamma = 0

for every column x of every context, enumerated or sampled, and adding a c' to A, or a multiple of a' to u, changes no
output: X'A X, X'A x^q and u X stay.  (On the right b' X = 0 does not help, since a' x^q = -gamma.)  For an environment
whose transitions vary freely enough, Boyan's chain and Loop with n of at least 3 among them, there are no other
directions that no prompt sees; the tests count them.  They are taken out before patterns are compared.

What remains is split by the structure K [-I, I] with K = [G; H], that is by how far the right half of A is minus its
left one.  Then A x = K (gamma p_s - phi_s) and A x^q = -K phi_q: columns form the TD error exactly, and K, a
preconditioner, says where it goes.  theta^TD is the case K = [I; 0].
"""

import numpy as np

from ictd.weights import Weights, theta_td

STRUCTURE = ("theta", "preconditioner", "outside")


def unseen_direction(states: int, discount: float) -> np.ndarray:
    """a = [-gamma 1; 1] at length one, (2n,): a' x = 0 for every column x of a context."""
    a = np.concatenate([np.full(states, -discount), np.ones(states)])
    return a / np.linalg.norm(a)


def seen(weights: Weights, discount: float) -> Weights:
    """Weights without what no prompt sees; they have the same outputs."""
    a = unseen_direction(weights.states, discount)
    u = weights.u - (weights.u @ a)[..., None] * a
    return Weights(u, weights.A - a[:, None] * (a @ weights.A)[..., None, :])


def preconditioner(A: np.ndarray) -> np.ndarray:
    """K (..., 2n, n) of the nearest K [-I, I] to A (..., 2n, 2n)."""
    states = A.shape[-1] // 2
    return (A[..., states:] - A[..., :states]) / 2


def structured(K: np.ndarray) -> np.ndarray:
    """K [-I, I], (..., 2n, 2n)."""
    return np.concatenate([-K, K], axis=-1)


def theta_part(A: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """Step size alpha (...), for attention divided by n, and the part along theta^TD of what prompts see of A."""
    states = A.shape[-1] // 2
    pattern = seen(theta_td(states), discount).A
    coefficient = (A * pattern).sum(axis=(-2, -1)) / (pattern**2).sum()
    return coefficient / states, coefficient[..., None, None] * pattern


def decomposition_measures(weights: Weights, discount: float) -> dict[str, np.ndarray]:
    """Measures of weights with any leading axes, each an array of these axes.

    Returns
    -------
    dict with
        unseen : share of the sum of squares of A that no prompt sees
        alpha : step size, the coefficient of theta^TD in A over n
        theta, preconditioner, outside : shares of theta^TD, of the rest of K [-I, I], and of what is outside it, in the
            sum of squares of what prompts see of A
        H : share of the lower half, H, in K
        diagonal, symmetric : shares in G of its part along I, and of its symmetric part without that
        u : norm of u, as prompts see it, over that of its row of P, which ends with 1
    """
    of = seen(weights, discount)
    alpha, theta = theta_part(of.A, discount)
    K = preconditioner(of.A)
    states = of.states
    G, H = K[..., :states, :], K[..., states:, :]
    whole, kept, along = _energy(of.A), _energy(structured(K)), _energy(theta)
    mean = np.trace(G, axis1=-2, axis2=-1) / states
    diagonal = states * mean**2
    u = (of.u**2).sum(axis=-1)
    return {
        "unseen": 1 - whole / _energy(weights.A),
        "alpha": alpha,
        "theta": along / whole,
        "preconditioner": (kept - along) / whole,
        "outside": 1 - kept / whole,
        "H": _energy(H) / _energy(K),
        "diagonal": diagonal / _energy(G),
        "symmetric": (_energy((G + np.swapaxes(G, -2, -1)) / 2) - diagonal) / _energy(G),
        "u": np.sqrt(u / (1 + u)),
    }


def residuals(weights: Weights, discount: float) -> np.ndarray:
    """What prompts see of A without its part along theta^TD, what the paper calls noise: (..., 2n, 2n)."""
    A = seen(weights, discount).A
    return A - theta_part(A, discount)[1]


def relabelled(A: np.ndarray, order: np.ndarray) -> np.ndarray:
    """A (..., 2n, 2n) with the states in another order, in rows and columns and in both halves of each."""
    both = np.concatenate([order, order + len(order)])
    return A[..., both[:, None], both]


def _energy(matrices: np.ndarray) -> np.ndarray:
    """Sum of squares over the last two axes."""
    return (matrices**2).sum(axis=(-2, -1))
