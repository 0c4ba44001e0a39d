"""Parameters of the looped Transformer, in the sparse space Theta^looped (section "Global Minimizer")."""

from dataclasses import dataclass

import numpy as np

from ictd.checks import GENERATOR, array, integer, number, validate, validate_fields


@dataclass(frozen=True)
class Weights:
    """Row u (..., 2n) of P and block A (..., 2n, 2n) of Q: all that is trained.

    Leading axes, if any, are alike: seeds, snapshots or tasks; ``weights[index]`` takes some of them.  The arrays are
    copied, and may have NaN.  Shapes that do not fit raise a ValueError.
    """

    u: np.ndarray
    A: np.ndarray

    def __post_init__(self):
        validate_fields(self, u=array("..., 2n", finite=False), A=array("..., 2n, 2n", finite=False))

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.u.shape[-1] // 2

    def __getitem__(self, index) -> "Weights":
        index = index if isinstance(index, tuple) else (index,)
        return Weights(self.u[*index, :], self.A[*index, :, :])

    def P(self) -> np.ndarray:
        """P = [0, 0; u, 1], of shape (..., 2n+1, 2n+1)."""
        width = self.u.shape[-1] + 1
        P = np.zeros((*self.u.shape[:-1], width, width))
        P[..., -1, :-1] = self.u
        P[..., -1, -1] = 1
        return P

    def Q(self) -> np.ndarray:
        """Q = [A, 0; 0, 0], of shape (..., 2n+1, 2n+1)."""
        return np.pad(self.A, [(0, 0)] * (self.A.ndim - 2) + [(0, 1), (0, 1)])


@validate(states=integer(1))
def theta_td(states: int) -> Weights:
    """theta^TD of n states, u = 0 and A = [-I, I; 0, 0]: a layer is one step of batch TD (section "In-Context TD").

    ValueError for a number of states below 1.
    """
    return Weights(np.zeros(2 * states), np.kron([[-1, 1], [0, 0]], np.eye(states)))


@validate(states=integer(1), gain=number(least=0, words="of at least 0"), rng=GENERATOR)
def initial_weights(states: int, gain: float, rng: np.random.Generator) -> Weights:
    """Xavier normal P and Q, (2n+1) x (2n+1) for n states, masked to Theta.

    The gain is a factor of the standard deviation sqrt(2 / (fan_in + fan_out)).  ValueError for a number of states
    below 1, or a gain below 0.
    """
    deviation = gain / np.sqrt(2 * states + 1)
    return Weights(rng.normal(0, deviation, 2 * states), rng.normal(0, deviation, (2 * states, 2 * states)))
