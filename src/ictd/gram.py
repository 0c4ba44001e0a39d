"""The looped Transformer's estimates from the Gram matrix of a prompt, whatever the prompt's length.

A context of m columns [x_t; r_t] enters TF_L only through M = sum_t x_t x_t' / m and c = sum_t r_t x_t / m.  With
attention divided by m, eq. (Yl dissection) summed over the context is

    k_0 = u M + c,    k_{l+1} = k_l (I + A M),    TF_L(s) = -(k_0 + ... + k_{L-1}) A[:, s],

k_l (2n,) being sum_t (u x_t + y_t) x_t' / m.  Without the division A is m times as large.
"""

from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, FLAG, instance, integer, validate, validate_fields
from ictd.mrp import Tasks
from ictd.prompts import Context, enumerated_context
from ictd.weights import Weights


@dataclass(frozen=True)
class Gram:
    """Averages over the columns of contexts: ``length`` m, ``M`` (..., 2n, 2n) and ``c`` (..., 2n).

    ``length`` may be an array (...) of them.  ``gram[index]`` takes some, by an index of the leading axes.
    """

    length: int | np.ndarray
    M: np.ndarray
    c: np.ndarray

    def __getitem__(self, index) -> "Gram":
        index = index if isinstance(index, tuple) else (index,)
        length = self.length[index] if np.ndim(self.length) else self.length
        return Gram(length, self.M[*index, :, :], self.c[*index, :])


def enumerated_gram(tasks: Tasks, discount: float) -> Gram:
    """Of the enumerated prompts of N tasks, eq. (Z0 redef), as sums over whole columns.

    ``gram_of`` their ``Context`` differs from it in rounding, which results keep as it is.
    """
    X = enumerated_context(tasks.transition, tasks.reward, discount)[:, :-1]
    return Gram(tasks.states, X @ X.mT / tasks.states, np.matvec(X, tasks.reward) / tasks.states)


def gram_of(context: Context, discount: float) -> Gram:
    """Of contexts (..., n), sampled or enumerated, with x_t = [phi_t; gamma phi_{t+1}] for a discount gamma."""
    C, D, E = np.eye(context.states) * context.visits[..., None], context.successors, context.next_visits
    M = np.block([[C, discount * D], [discount * D.mT, discount**2 * E]])
    return Gram(context.length, M, np.concatenate([context.rewards, discount * context.next_rewards], axis=-1))


def estimates(weights: Weights, gram: Gram, depth: int, scaled: bool = True) -> np.ndarray:
    """TF_L (R, T, n) of every query state, for each of R weights on each of T contexts.

    Weights or contexts may have any leading axes, or none, in place of R and T.

    Parameters
    ----------
    weights : Weights, u (R, 2n) and A (R, 2n, 2n)
    gram : Gram of T contexts
    depth : int, L
    scaled : bool
        Whether attention is divided by the context length.
    """
    weights = weights[..., *[None] * (gram.c.ndim - 1)]
    A = weights.A * (1 if scaled else np.asarray(gram.length)[..., None, None])
    AM = A @ gram.M
    k = np.vecmat(weights.u, gram.M) + gram.c
    total = np.zeros_like(k)
    for _ in range(depth):
        total += k
        k = k + np.vecmat(k, AM)
    return -np.vecmat(total, A[..., : weights.states])


@dataclass(frozen=True)
class Model:
    """The looped Transformer TF_L as a function from contexts to values: weights, and all that goes with them.

    ValueError for arguments of a wrong type, a depth below 1, or a discount outside of [0, 1 - 2^-26].

    Parameters
    ----------
    weights : Weights of n states; with leading axes there are that many models
    depth : int, number of layers L
    discount : float, gamma of the values that it was pretrained for, by which prompts multiply next features
    scaled : bool
        Whether attention is divided by the context length.
    """

    weights: Weights
    depth: int
    discount: float
    scaled: bool = True

    def __post_init__(self):
        validate_fields(self, weights=instance(Weights), depth=integer(1), discount=DISCOUNT, scaled=FLAG)

    @validate(context=instance(Context))
    def values(self, context: Context) -> np.ndarray:
        """Value estimates of all n states, (..., n) for contexts (..., n), after the leading axes of the weights.

        They are those of the paper's Transformer on whole prompts, ``LinearTransformer``.  ValueError for a context of
        another number of states.
        """
        if context.states != self.weights.states:
            n = self.weights.states
            raise ValueError(
                f"the context has {context.states} states, and the model was made for {n} states; load or pretrain"
                f" one for {context.states} states, or give from_trajectory an n of {n}."
            )
        return estimates(self.weights, gram_of(context, self.discount), self.depth, self.scaled)
