"""P and Q with all entries trainable: initial values, the mask of Theta, and means over layers."""

import numpy as np

from ictd.transformer import Weights, initial_weights


def initial_matrices(states: int, gain: float, layers: int, whole: bool, rng: np.random.Generator) -> np.ndarray:
    """Draw Xavier normal P and Q of one run.

    Parameters
    ----------
    states : int, n
    gain : float, as in ``ictd.transformer.initial_weights``
    layers : int, number of layers K with their own parameters
    whole : bool
        Whether all entries are drawn; otherwise P and Q are in Theta, as in ``ictd.transformer.initial_weights``.
    rng : numpy.random.Generator

    Returns
    -------
    matrices : (2, K, 2n+1, 2n+1) array, P before Q
    """
    width = 2 * states + 1
    if whole:
        return rng.normal(0, gain / np.sqrt(width), (2, layers, width, width))
    weights = [initial_weights(states, gain, rng) for _ in range(layers)]
    return np.array([[layer.P() for layer in weights], [layer.Q() for layer in weights]])


def theta_masks(states: int) -> np.ndarray:
    """Masks (2, 2n+1, 2n+1) of the entries of P and of Q that are trained in Theta."""
    ones = Weights(np.ones(2 * states), np.ones((2 * states, 2 * states)))
    masks = np.array([ones.P(), ones.Q()])
    masks[0, -1, -1] = 0
    return masks


def mean_matrices(P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means over layers of P and Q, scaled so that the last entry of P is 1, as in Theta.

    A layer depends only on products of an entry of P with an entry of Q.  So outputs do not change if P is divided by a
    number and Q is multiplied by the same number.  Before the mean is taken, the sign of each layer is set so that the
    last entry of P is positive.

    Parameters
    ----------
    P, Q : (..., K, 2n+1, 2n+1) arrays, of K layers

    Returns
    -------
    P, Q : (..., 2n+1, 2n+1) arrays of float64
    """
    P, Q = P.astype(np.float64), Q.astype(np.float64)
    sign = np.sign(P[..., -1:, -1:])
    P, Q = (sign * P).mean(axis=-3), (sign * Q).mean(axis=-3)
    corner = P[..., -1:, -1:]
    return P / corner, Q * corner
