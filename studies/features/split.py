"""Prompts that show the mean of the next features and the rest in separate blocks, and the coefficients of weights.

With weights c of the columns, next features are their mean and a rest whose mean is zero,

    gamma P phi = gamma m + gamma (P phi - m),    m = sum_s c(s) (P phi)(s).

A prompt has the blocks phi, gamma m, gamma (P phi - m), and a control times gamma.  Weights with the form
(k TD_ERROR') x I have the test functions k_0 phi + k_1 gamma m + k_2 gamma (P phi - m) + k_3 gamma (control).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from ictd.transformer import Weights, estimates
from studies.features.algorithms import trimmed_mean
from studies.features.coefficients import measures, permutation_fit
from studies.features.tasks import HeldOut

# The TD error without the reward, in terms of the blocks phi, gamma m, gamma (P phi - m), and a control times gamma.
TD_ERROR = np.array([-1.0, 1.0, 1.0, 0.0])
# Directions of B, as in ``symmetric``, that add each block to the test functions.
PHI, MEAN, REST, CONTROL = np.eye(4)[:, :, None] * TD_ERROR


@dataclass(frozen=True)
class Split:
    """Held-out tasks with prompts that show the parts of the next features, and a control.

    Parameters
    ----------
    data : HeldOut, N tasks with m columns
    mean, rest : (N, m, d) arrays, m, the same in all columns, and P phi - m
    control : (N, m, d) array
    """

    data: HeldOut
    mean: np.ndarray
    rest: np.ndarray
    control: np.ndarray

    @classmethod
    def of(cls, data: HeldOut, rng: np.random.Generator, mean: str = "columns") -> Self:
        """Split the next features; the control is the rest with next features of other columns, in a random order.

        The mean is that over "columns", with their weights, or the one under the "stationary" distribution, sum_s
        mu(s) phi(s).
        """
        weight = data.weight[..., None]
        m = (weight * data.phi_next).sum(axis=1, keepdims=True)
        order = rng.permuted(np.broadcast_to(np.arange(data.phi.shape[1]), data.phi.shape[:2]), axis=1)
        others = np.take_along_axis(data.phi_next, order[..., None], axis=1)
        control = others - (weight * others).sum(axis=1, keepdims=True)
        if mean == "stationary":
            m = (data.tasks.stationary[..., None] * data.tasks.features).sum(axis=1, keepdims=True)
        return cls(data, np.broadcast_to(m, data.phi.shape), data.phi_next - m, control)

    def exchanged(self) -> Self:
        """The same with the mean of another task, the one before, as the control."""
        return replace(self, control=np.roll(self.mean, 1, axis=0))

    @cached_property
    def gram(self) -> np.ndarray:
        """G (N, 4d+1, 4d+1) of columns [phi; gamma m; gamma (P phi - m); gamma control; r].

        Transformers of 2d features read the four blocks as two.
        """
        following = (self.data.discount * part for part in (self.mean, self.rest, self.control))
        return self.data.gram_of(self.data.phi, *following)

    @property
    def queries(self) -> np.ndarray:
        """Query features [phi; 0] (N, n, 2d) of Transformers of 2d features."""
        features = self.data.tasks.features
        return np.concatenate([features, np.zeros_like(features)], axis=-1)

    def error(self, weights: Weights, depth: int) -> float:
        """Trimmed mean of the MSVE of weights of 2d features."""
        with np.errstate(over="ignore", invalid="ignore"):
            w = estimates(weights, self.gram, depth)
        return float(trimmed_mean(self.data.msve(w[..., : self.data.phi.shape[-1]])))

    def test_functions(self, eta_m: float, eta_r: float) -> np.ndarray:
        """Test functions phi + eta_m gamma m + eta_r gamma (P phi - m) (N, m, d)."""
        return self.data.phi + self.data.discount * (eta_m * self.mean + eta_r * self.rest)


def on_blocks(weights: Weights, taken_out: tuple[int, ...]) -> Weights:
    """Weights of 2d features on four blocks with the estimates of weights of d features on [phi; gamma P phi].

    With [phi; gamma P phi] = S (blocks), they are u S and S' A S.  The rows of A are the test functions: blocks that
    are ``taken_out`` have rows of zeros.
    """
    S = np.kron([[1, 0, 0, 0], [0, 1, 1, 0]], np.eye(weights.dimension))
    A = S.T @ weights.A @ S
    A.reshape(4, -1)[list(taken_out)] = 0
    return Weights(weights.u @ S, A)


def fit_two_blocks(weights: Weights, kept: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of weights of d features on [phi; gamma P phi], over the first ``kept`` features.

    They are alpha and eta of ``coefficients``, for the mean and for the rest; the share of the squared norm is that of
    the multiples of I.
    """
    d = weights.dimension
    index = np.concatenate([np.arange(kept), d + np.arange(kept)])
    found = measures(weights.u[index], weights.A[np.ix_(index, index)])
    return found["alpha"] * np.array([1, found["eta"], found["eta"], 0]), float(found["four"])


def fit_test_functions(A: np.ndarray, kept: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of the blocks in the test functions of A (4d, 4d), over the first ``kept`` of d features.

    The estimate is w = -(k_0 + ... + k_{L-1}) A[:, :d] (``ictd.transformer``), so that the test function of a column x
    is -A[:, :d]' x.  Each d x d block is fitted by multiples of I and 11', as in ``coefficients``.  The share is that
    of the squared norm of A[:, :d], over these features, in the multiples of I.
    """
    d = len(A) // 4
    blocks = A.reshape(4, d, 4, d)[:, :kept, 0, :kept]
    k = -permutation_fit(blocks)[0]
    return k, float(kept * (k**2).sum() / (blocks**2).sum())


def fit_form(A: np.ndarray, kept: int) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of the nearest (k TD_ERROR') x I to A (4d, 4d), and its share of the squared norm.

    All columns of A count, also those that are not in the test functions, but change how TD errors are updated.
    """
    d, square = len(A) // 4, (TD_ERROR**2).sum()
    blocks = A.reshape(4, d, 4, d)[:, :kept, :, :kept].swapaxes(1, 2)
    k = permutation_fit(blocks)[0] @ TD_ERROR / square
    return k, float(kept * square * (k**2).sum() / (blocks**2).sum())
