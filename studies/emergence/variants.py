"""Pretrained weights with parts of them removed."""

from collections.abc import Callable

from ictd.decomposition import preconditioner, seen, structured
from ictd.pattern import BLOCKS, theta_coefficient
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
    coefficient = theta_coefficient(seen(weights, discount).A)
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
