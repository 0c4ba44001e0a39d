"""The rows of the embeddings that evolve, and their gradients, layer by layer (appendix, proofs of Lemmas 2 and 3).

All is for the looped Transformer on enumerated prompts, whose rows X = [I; gamma P'] stay as they are in Theta, while
Y_l and y_l^q follow eq. (Yl dissection).  Every query state q comes at once: y_l has an entry for each.  The theory
does not divide attention by n; to do so is to divide A.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ictd.mrp import Tasks, value_function
from ictd.prompt import enumerated_columns
from ictd.transformer import Weights

# What J and J' are of: multi-task TD, and MC.
ALGOS = ("td", "mc")


@dataclass(frozen=True)
class Embeddings:
    """What Z_0, ..., Z_L of N tasks with n states consist of.

    Parameters
    ----------
    tasks : Tasks
    discount : float, gamma
    X : (N, 2n, n) array
    f : (N, n, n) array, I + X'AX
    g : (N, n, n) array, X'Ax^q of each query state q, a column each
    k : (N, L+1, n) array, u X + Y_l
    Y : (N, L+1, n) array
    y : (N, L+1, n) array, y_l^q of each query state q
    """

    tasks: Tasks
    discount: float
    X: np.ndarray
    f: np.ndarray
    g: np.ndarray
    k: np.ndarray
    Y: np.ndarray
    y: np.ndarray

    @cached_property
    def TF(self) -> np.ndarray:
        """TF_l(Z_0) = -y_l^q for l = 0, ..., L and each query state, (N, L+1, n)."""
        return -self.y

    @cached_property
    def value(self) -> np.ndarray:
        """Exact values v, (N, n)."""
        return value_function(self.tasks.transition, self.tasks.reward, self.discount)

    @cached_property
    def td_errors(self) -> np.ndarray:
        """Expected TD errors of TF_l over s_q', (N, L+1, n): r + gamma P TF_l - TF_l."""
        following = self.TF @ self.tasks.transition.mT
        return self.tasks.reward[:, None] + self.discount * following - self.TF

    @cached_property
    def mc_errors(self) -> np.ndarray:
        """Expected errors of TF_l over returns, (N, L+1, n): v - TF_l."""
        return self.value[:, None] - self.TF

    def expected_errors(self, algo: str) -> np.ndarray:
        """Expected errors of "td" or "mc", (N, L+1, n)."""
        return self.td_errors if algo == "td" else self.mc_errors

    def limiting_errors(self, algo: str) -> np.ndarray:
        """The same at theta^TD, as the proofs of Lemmas 1 and 4 leave them: gamma^l P^l r and gamma^l P^l v.

        A difference of two numbers near v would be all rounding where l is large.
        """
        errors = np.empty_like(self.y)
        errors[:, 0] = self.tasks.reward if algo == "td" else self.value
        for layer in range(errors.shape[1] - 1):
            errors[:, layer + 1] = self.discount * np.matvec(self.tasks.transition, errors[:, layer])
        return errors


def embeddings(weights: Weights, tasks: Tasks, discount: float, depth: int) -> Embeddings:
    """Embeddings up to layer L: with k_l = u X + Y_l, eq. (Yl dissection) is Y_{l+1} = Y_l + k_l X'AX and
    y_{l+1}^q = y_l^q + k_l X'Ax^q.

    ValueError if ``discount`` lies outside [0, 1), or the weights are for another number of states.

    Parameters
    ----------
    weights : Weights, u (2n,) and A (2n, 2n)
    tasks : Tasks, N of them with n states
    discount : float, gamma
    depth : int, L
    """
    states = tasks.states
    if weights.states != states:
        raise ValueError(f"the weights are for {weights.states} states, and the tasks have {states}.")
    X = enumerated_columns(tasks.transition, tasks.reward, discount)[:, :-1]
    XA = X.mT @ weights.A
    f, g = np.eye(states) + XA @ X, XA[:, :, :states]
    uX = (weights.u @ X)[:, None]
    k = np.empty((len(tasks), depth + 1, states))
    row = uX + tasks.reward[:, None]
    for layer in range(depth + 1):
        k[:, layer] = row[:, 0]
        row = row @ f
    y = np.zeros_like(k)
    y[:, 1:] = np.cumsum(k[:, :-1], axis=1) @ g
    return Embeddings(tasks, discount, X, f, g, k, k - uX, y)


@dataclass(frozen=True)
class Gradients:
    """Gradients of Y_l and y_l^q at one layer l, for N tasks.

    Both terms of the appendix's recursion for Y_l have X on their left and X' on their right, and that for y_l^q has
    x^q' beside it.  So what they are multiplied with is kept, at a quarter of the size:

        grad_A y_l^(i) = X R^(i) X',    grad_A y_l^q = X (S^q X' + a x^q').

    Parameters
    ----------
    X : (N, 2n, n) array
    R, S : (N, n, n, n) arrays, R^(i) and S^q with i and q on the first axis after the tasks'
    a : (N, n) array, the sum of k_j over j < l
    U, V : (N, 2n, n) arrays, whose columns are grad_u y_l^(i) and grad_u y_l^q
    """

    X: np.ndarray
    R: np.ndarray
    S: np.ndarray
    a: np.ndarray
    U: np.ndarray
    V: np.ndarray

    def context_A(self) -> np.ndarray:
        """grad_A y_l^(i) of all i, (N, n, 2n, 2n)."""
        return self._times_X(self._times_X_transposed(self.R))

    def query_A(self) -> np.ndarray:
        """grad_A y_l^q of all query states q, (N, n, 2n, 2n)."""
        query = np.arange(self.X.shape[-1])
        right = self._times_X_transposed(self.S)
        right[:, query, :, query] += self.a
        return self._times_X(right)

    def _times_X_transposed(self, M: np.ndarray) -> np.ndarray:
        """M X' for M (N, k, n, n), as one product a task; the left half of X' is the identity."""
        tasks, _, states = self.X.shape
        right = M.reshape(tasks, -1, states) @ self.X[:, states:].mT
        return np.concatenate([M, right.reshape(M.shape)], axis=-1)

    def _times_X(self, M: np.ndarray) -> np.ndarray:
        """X M for M (N, k, n, 2n); the upper half of X is the identity."""
        return np.concatenate([M, self.X[:, None, self.X.shape[-1] :] @ M], axis=-2)

    def expected_updates(self, e: np.ndarray) -> np.ndarray:
        """sum_q e_q grad TF_l(q) in Theta^looped, for k state weights e (N, k, n): (N, k, 2n + 4n^2), u before A."""
        tasks, wide, states = self.X.shape
        S = e @ self.S.reshape(tasks, states, states**2)
        right = self._times_X_transposed(S.reshape(tasks, -1, states, states))
        right[..., :states] += self.a[:, None, :, None] * e[:, :, None, :]
        dA = self._times_X(right).reshape(*e.shape[:2], wide**2)
        return -np.concatenate([e @ self.V.mT, dA], axis=2)


def gradients(rows: Embeddings) -> Iterator[Gradients]:
    """Gradients at layers 0, ..., L, by the recursions of the proof of Lemma 3, their terms in u kept:

        grad_A y_{l+1}^(i) = X k_l' x^(i)' + sum_j f_ji grad_A y_l^(j),
        grad_A y_{l+1}^q   = grad_A y_l^q + X k_l' x^q' + sum_j g_j grad_A y_l^(j),
        grad_u Y_{l+1}     = X X'AX + grad_u Y_l f,
        grad_u y_{l+1}^q   = grad_u y_l^q + X g + grad_u Y_l g.

    None of them depends on L, so that one pass serves every depth.
    """
    X, f, g = rows.X, rows.f, rows.g
    tasks, depth, states = rows.k.shape
    identity, query = np.eye(states), np.arange(states)
    flat = (tasks, states, states * states)
    R, S = np.zeros((2, tasks, states, states, states))
    U, V = np.zeros((2, tasks, 2 * states, states))
    a = np.zeros((tasks, states))
    for layer in range(depth):
        yield Gradients(X, R, S, a, U, V)
        k = rows.k[:, layer]
        S = S + (g.mT @ R.reshape(flat)).reshape(R.shape)
        R = (f.mT @ R.reshape(flat)).reshape(R.shape)
        R[:, query, :, query] += k
        V = V + (X + U) @ g
        U = X @ (f - identity) + U @ f
        a = a + k
