"""What pretrained weights consist of: a step of theta^TD, a preconditioner of the TD error, and the rest.

Columns of a prompt end in p(. | s) or in phi(S_{t+1}), whose entries sum to one as those of phi(s) do.  So for

    a = [-gamma 1; 1],    a' x = -gamma + gamma = 0

for every column x of every context, enumerated or sampled, and adding a c' to A, or a multiple of a' to u, changes no
output: X'A X, X'A x^q and u X stay.  (On the right b' X = 0 does not help, since a' x^q = -gamma.)  With two layers or
more, gamma above 0 and n of at least 3, Boyan's chain and Loop leave no other direction of A or u unseen; the tests
count them.  Of all weights with the same outputs, those are compared whose lower half has columns that sum to zero;
theta^TD is one of them.

These are split by the structure K [-I, I] with K = [G; H], that is by how far the right half of A is minus its left
one.  Then A x = K (gamma p_s - phi_s) and A x^q = -K phi_q: columns form the TD error exactly, and K, a preconditioner,
says where it goes.  theta^TD is the case K = [I; 0].
"""

import numpy as np

from ictd.pattern import energy, theta_coefficient
from ictd.weights import Weights, theta_td


def unseen_direction(states: int, discount: float) -> np.ndarray:
    """a = [-gamma 1; 1], (2n,): a' x = 0 for every column x of a context."""
    return np.concatenate([np.full(states, -discount), np.ones(states)])


def seen(weights: Weights, discount: float) -> Weights:
    """The weights with the same outputs for which the lower halves of A's columns, and of u, sum to zero."""
    a, n = unseen_direction(weights.states, discount), weights.states
    u = weights.u - weights.u[..., n:].mean(axis=-1)[..., None] * a
    return Weights(u, weights.A - a[:, None] * weights.A[..., n:, :].mean(axis=-2)[..., None, :])


def preconditioner(A: np.ndarray) -> np.ndarray:
    """K (..., 2n, n) of the nearest K [-I, I] to A (..., 2n, 2n)."""
    states = A.shape[-1] // 2
    return (A[..., states:] - A[..., :states]) / 2


def structured(K: np.ndarray) -> np.ndarray:
    """K [-I, I], (..., 2n, 2n)."""
    return np.concatenate([-K, K], axis=-1)


def decomposition_measures(weights: Weights, discount: float, scaled: bool = True) -> dict[str, np.ndarray]:
    """Measures of weights with any leading axes, each an array of these axes; all but ``unseen`` are of ``seen``.

    The discount is gamma, and ``scaled`` says whether attention is divided by the context length.

    Returns
    -------
    dict with
        unseen : share of the sum of squares of A, as it is, along directions that no prompt sees
        alpha : step size on an enumerated prompt, where 1 makes theta^TD carry out value iteration
        cosine : of A to theta^TD
        theta, preconditioner, outside : shares of theta^TD, of the rest of K [-I, I], and of what is outside it, in the
            sum of squares of A
        H : share of the lower half, H, in K
        diagonal, symmetric : shares in G of its part along I, and of its symmetric part without that
        u : norm of u over that of its row of P, which ends with 1
    """
    of, states = seen(weights, discount), weights.states
    a = unseen_direction(states, discount)
    theta, pattern = theta_coefficient(of.A), theta_td(states).A
    K = preconditioner(of.A)
    G, H = K[..., :states, :], K[..., states:, :]
    whole, kept, along = energy(of.A), energy(structured(K)), theta**2 * energy(pattern)
    diagonal = np.trace(G, axis1=-2, axis2=-1) ** 2 / states
    u = (of.u**2).sum(axis=-1)
    return {
        "unseen": ((a @ weights.A) ** 2).sum(axis=-1) / (a @ a) / energy(weights.A),
        "alpha": theta / (states if scaled else 1),
        "cosine": np.sign(theta) * np.sqrt(along / whole),
        "theta": along / whole,
        "preconditioner": (kept - along) / whole,
        "outside": 1 - kept / whole,
        "H": energy(H) / energy(K),
        "diagonal": diagonal / energy(G),
        "symmetric": (energy((G + G.mT) / 2) - diagonal) / energy(G),
        "u": np.sqrt(u / (1 + u)),
    }
