"""The looped Transformer's estimates from the Gram matrix of a prompt, whatever the prompt's length.

A context of m columns [x_t; r_t] enters TF_L only through M = sum_t x_t x_t' / m and c = sum_t r_t x_t / m.  With
attention divided by m, eq. (Yl dissection) summed over the context is

    k_0 = u M + c,    k_{l+1} = k_l (I + A M),    TF_L(s) = -(k_0 + ... + k_{L-1}) A[:, s],

k_l (2n,) being sum_t (u x_t + y_t) x_t' / m.  Without the division A is m times as large.
"""

from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, FLAG, checked, of, own, picked, reals, whole
from ictd.mrp import Tasks
from ictd.prompts import CONTEXT_LENGTH, Context, enumerated_context
from ictd.weights import Weights


@dataclass(frozen=True)
class Gram:
    """Averages over the columns of contexts: ``length`` m, ``M`` (..., 2n, 2n) and ``c`` (..., 2n).

    ``length`` may be an array (...) of them, and ``gram[index]`` takes some.  The arrays are copied.  ValueError for
    shapes that do not fit, or values that are not finite.
    """

    length: int | np.ndarray
    M: np.ndarray
    c: np.ndarray

    def __post_init__(self):
        own(self, M=reals("..., 2n, 2n"), c=reals("..., 2n"), length=CONTEXT_LENGTH)

    def __getitem__(self, index) -> "Gram":
        return Gram(**picked(self, self.c.shape[:-1], index))


@checked(tasks=of(Tasks), discount=DISCOUNT)
def enumerated_gram(tasks: Tasks, discount: float) -> Gram:
    """Of the enumerated prompts of N tasks, eq. (Z0 redef)."""
    X = enumerated_context(tasks.transition, tasks.reward, discount)[:, :-1]
    return Gram(tasks.states, X @ X.mT / tasks.states, np.matvec(X, tasks.reward) / tasks.states)


@checked(context=of(Context, rewards="..., n"), reward=reals("..., n"), discount=DISCOUNT)
def sampled_gram(context: Context, reward: np.ndarray, discount: float) -> Gram:
    """Of sampled contexts, section "In-Context Policy Evaluation Verification".

    Parameters
    ----------
    context : Context of (..., n)
    reward : (..., n) array, r(s)
    discount : float, gamma
    """
    identity, D = np.eye(reward.shape[-1]), context.successors
    C, E = identity * context.visits[..., None], identity * D.sum(axis=-2)[..., None]
    M = np.block([[C, discount * D], [discount * D.mT, discount**2 * E]])
    return Gram(context.length, M, np.concatenate([context.rewards, discount * np.vecmat(reward, D)], axis=-1))


@checked(weights=of(Weights, u="R, 2n"), gram=of(Gram, c="T, 2n"), depth=whole(1), scaled=FLAG)
def estimates(weights: Weights, gram: Gram, depth: int, scaled: bool = True) -> np.ndarray:
    """TF_L (R, T, n) of every query state, for each of R weights on each of T contexts.

    Parameters
    ----------
    weights : Weights, u (R, 2n) and A (R, 2n, 2n)
    gram : Gram of T contexts
    depth : int, L
    scaled : bool
        Whether attention is divided by the context length.
    """
    A = weights.A[:, None] * (1 if scaled else np.asarray(gram.length)[..., None, None])
    AM = A @ gram.M
    k = np.vecmat(weights.u[:, None], gram.M) + gram.c
    total = np.zeros_like(k)
    for _ in range(depth):
        total += k
        k = k + np.vecmat(k, AM)
    return -np.vecmat(total, A[..., : weights.states])
