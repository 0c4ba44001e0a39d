"""Pretrained weights with parts of them removed, and how well what is left evaluates policies."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ictd.decomposition import preconditioner, seen, structured, theta_part
from ictd.gram import enumerated_gram, estimates, sampled_gram
from ictd.measures import BLOCKS
from ictd.validation import ENUMERATED, Validation
from ictd.weights import Weights, theta_td


def _without_block(block: str) -> Callable[[Weights, float], Weights]:
    def variant(weights: Weights, discount: float) -> Weights:
        A, n = seen(weights, discount).A, weights.states
        row, column = (slice(None, n) if place == "1" else slice(n, None) for place in block[1:])
        A[..., row, column] = 0
        return Weights(weights.u, A)

    return variant


def _structure(weights: Weights, discount: float) -> Weights:
    return Weights(0 * weights.u, structured(preconditioner(seen(weights, discount).A)))


def _G(weights: Weights, discount: float) -> Weights:
    K = preconditioner(seen(weights, discount).A)
    K[..., weights.states :, :] = 0
    return Weights(0 * weights.u, structured(K))


def _theta(weights: Weights, discount: float) -> Weights:
    coefficient = theta_part(seen(weights, discount).A)
    return Weights(0 * weights.u, coefficient[..., None, None] * theta_td(weights.states).A)


# What is left, from weights (..., 2n) and (..., 2n, 2n) and the discount.
VARIANTS: dict[str, Callable[[Weights, float], Weights]] = {
    "whole": lambda weights, discount: weights,
    "no_u": lambda weights, discount: Weights(0 * weights.u, weights.A),
    "structure": _structure,
    "G": _G,
    "theta": _theta,
    **{f"no_{block}": _without_block(block) for block in BLOCKS},
}


@dataclass(frozen=True)
class Errors:
    """MSVE (R, K, k) of R weights on K lengths of context of k tasks, and its mean and median (R, K) over tasks.

    Some tasks have errors many times those of others.
    """

    of_tasks: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over tasks."""
        return self.of_tasks.mean(axis=-1)

    @property
    def median(self) -> np.ndarray:
        """Median over tasks."""
        return np.median(self.of_tasks, axis=-1)


def errors(weights: Weights, data: Validation, lengths: list[int], depth: int, scaled: bool = True) -> Errors:
    """MSVE of weights, u (R, 2n) and A (R, 2n, 2n), on unseen tasks.

    Parameters
    ----------
    weights : Weights
    data : Validation
    lengths : list of int
        Context lengths; ENUMERATED stands for the enumerated prompt.
    depth : int, L
    scaled : bool
        Whether attention is divided by the context length.
    """
    found = np.empty((len(weights.u), len(lengths), len(data.tasks)))
    for k, length in enumerate(lengths):
        if length == ENUMERATED:
            gram = enumerated_gram(data.tasks, data.discount)
        else:
            gram = sampled_gram(data.context(length), data.tasks.reward, data.discount)
        for i in range(len(found)):
            found[i, k] = data.error(estimates(weights[[i]], gram, depth, scaled)[0])
    return Errors(found)
