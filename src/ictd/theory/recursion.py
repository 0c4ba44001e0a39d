"""The embeddings Z_0, ..., Z_L and their gradients, layer by layer (appendix, proofs of Lemmas 2 and 3).

The prompts are enumerated, and the Transformer is looped.  For a query state q, an embedding is

    Z_l = [X, x^q; Y_l, y_l^q],    X = [I; gamma P'],    x^q = [phi_q; 0].

The weights in Theta^looped leave the rows X and x^q as they are.  With k_l = u X + Y_l, eq. (Yl dissection) is

    Y_{l+1} = Y_l + k_l X'AX,    y_{l+1}^q = y_l^q + k_l X'A x^q,    Y_0 = r',    y_0^q = 0.

Prompts with different query states have the same X and Y_l, so ``Embeddings`` has one entry of y_l for each q.  The
theory does not divide attention by the length of the context; the division is the same as a division of A.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ictd.mrp import Tasks, sample_tasks, value_function
from ictd.prompt import enumerated_columns
from ictd.rng import generator
from ictd.transformer import Weights

# The algorithms of the theory: J is the norm of the expected update of multi-task TD, and J' that of multi-task MC.
ALGOS = ("td", "mc")


def theory_tasks(env: str, states: int, size: int, env_options: dict) -> Tasks:
    """Draw the tasks of an environment and number of states on which all checks of the theory are made."""
    return sample_tasks(env, states, size, generator(0, env, states, "theory"), **env_options[env])


@dataclass(frozen=True)
class Embeddings:
    """Embeddings Z_l = [X, x^q; Y_l, y_l^q] of N tasks with n states, for l = 0, ..., L and all query states q.

    Parameters
    ----------
    tasks : Tasks
    discount : float, gamma
    X : (N, 2n, n) array
    f : (N, n, n) array, I + X'AX, which is f(A) in the appendix
    g : (N, n, n) array, with the columns X'A x^q
    k : (N, L+1, n) array, u X + Y_l
    Y : (N, L+1, n) array
    y : (N, L+1, n) array, y_l^q for each q
        In memory, the layers of ``k``, ``Y`` and ``y`` are contiguous, because NumPy is slow along a short last axis.
    """

    tasks: Tasks
    discount: float
    X: np.ndarray
    f: np.ndarray
    g: np.ndarray
    k: np.ndarray
    Y: np.ndarray
    y: np.ndarray

    @property
    def depth(self) -> int:
        """Number of layers L."""
        return self.k.shape[1] - 1

    @cached_property
    def TF(self) -> np.ndarray:
        """TF_l(Z_0) = -y_l^q, (N, L+1, n)."""
        return -self.y

    @cached_property
    def value(self) -> np.ndarray:
        """True values v, (N, n)."""
        return value_function(self.tasks.transition, self.tasks.reward, self.discount)

    @cached_property
    def td_errors(self) -> np.ndarray:
        """Expected TD errors r + gamma P TF_l - TF_l, (N, L+1, n)."""
        next_TF = times(self.TF, self.tasks.transition.mT)
        return self.tasks.reward[:, None] + self.discount * next_TF - self.TF

    @cached_property
    def mc_errors(self) -> np.ndarray:
        """Expected MC errors v - TF_l, (N, L+1, n)."""
        return self.value[:, None] - self.TF

    def expected_errors(self, algo: str) -> np.ndarray:
        """Expected errors of "td" or "mc", (N, L+1, n)."""
        return {"td": self.td_errors, "mc": self.mc_errors}[algo]

    def theta_td_errors(self, algo: str) -> np.ndarray:
        """Expected errors at theta^TD in the form of the proofs of Lemmas 1 and 4: gamma^l P^l r or gamma^l P^l v.

        They equal ``expected_errors``, but are not differences, whose rounding errors dominate for large l.
        The result is an (N, L+1, n) array.
        """
        first = {"td": self.tasks.reward, "mc": self.value}[algo]
        return krylov(first, self.discount * self.tasks.transition.mT, self.depth + 1)


def krylov(row: np.ndarray, matrix: np.ndarray, length: int) -> np.ndarray:
    """Compute the rows b, b M, b M^2, ..., b M^(K-1).

    A product with M^k gives the next k rows from the previous k rows, so a few large products replace K small products.

    Parameters
    ----------
    row : (N, n) array, b
    matrix : (N, n, n) array, M
    length : int, K

    Returns
    -------
    rows : (N, K, n) array, in memory with the axis K last
    """
    columns = np.empty((*row.shape, length))
    columns[..., 0] = row
    known = 1
    power = np.ascontiguousarray(matrix.mT)  # (M^known)'
    while known < length:
        new = min(known, length - known)
        np.matmul(power, columns[..., :new], out=columns[..., known : known + new])
        known += new
        if known < length:
            power = power @ power
    return columns.mT


def times(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Compute R M for rows R (N, K, n) and M (N, n, m); both R and the product are stored as rows of ``krylov``."""
    return (matrix.mT @ rows.mT).mT


def evolve(weights: Weights, tasks: Tasks, discount: float, depth: int) -> Embeddings:
    """Compute the embeddings by eq. (Yl dissection).

    Parameters
    ----------
    weights : Weights, u (2n,) and A (2n, 2n)
    tasks : Tasks, N of them with n states
    discount : float, gamma
    depth : int, L

    Returns
    -------
    Embeddings

    Raises
    ------
    ValueError
        If ``discount`` is out of range, or the weights are for another number of states.
    """
    states = tasks.states
    if weights.dimension != states:
        raise ValueError(f"the weights are for {weights.dimension} states, and the tasks have {states}.")
    X = enumerated_columns(tasks.transition, tasks.reward, discount)[:, :-1]
    XA = X.mT @ weights.A
    f = np.eye(states) + XA @ X
    g = XA[:, :, :states]
    uX = (weights.u @ X)[:, None]
    k = krylov(uX[:, 0] + tasks.reward, f, depth + 1)
    y = np.zeros_like(k)
    y[:, 1:] = times(np.cumsum(k.mT[..., :-1], axis=2).mT, g)
    return Embeddings(tasks, discount, X, f, g, k, k - uX, y)


@dataclass(frozen=True)
class Gradients:
    """Gradients of Y_l and y_l^q at one layer l, for N tasks.

    Each term of the recursion for grad_A y_l^(i) has the left factor X and the right factor X'.  One term of the
    recursion for grad_A y_l^q has the right factor x^q'.  We store only the factors in between, which have a quarter of
    the size:

        grad_A y_l^(i) = X R^(i) X',    grad_A y_l^q = X (sum_j g_jq C^(j) X' + a x^q').

    Parameters
    ----------
    X : (N, 2n, n) array
    g : (N, n, n) array, with the columns X'A x^q
    R, C : (N, n, n, n) arrays
        R^(i) with i on the second axis, and C^(i), the sum of R^(i) over the layers before l.
    a : (N, n) array, the sum of k_j over j < l
    U, V : (N, 2n, n) arrays, with the columns grad_u y_l^(i) and grad_u y_l^q
    """

    X: np.ndarray
    g: np.ndarray
    R: np.ndarray
    C: np.ndarray
    a: np.ndarray
    U: np.ndarray
    V: np.ndarray

    def context_right(self) -> np.ndarray:
        """R^(i) X', (N, n, n, 2n) with i on the third axis."""
        return times_X_transposed(self.X, self.R.swapaxes(1, 2))

    def query_right(self) -> np.ndarray:
        """sum_j g_jq C^(j) X' + a x^q', (N, n, n, 2n) with the query state q on the third axis."""
        query = np.arange(self.X.shape[-1])
        right = times_X_transposed(self.X, self.weighted(self.g.mT).swapaxes(1, 2))
        right[:, :, query, query] += self.a[:, :, None]
        return right

    def weighted(self, weights: np.ndarray) -> np.ndarray:
        """Sums over i of C^(i) times weights (N, k, n), as (N, k, n, n)."""
        tasks, states = self.a.shape
        return (weights @ self.C.reshape(tasks, states, -1)).reshape(tasks, -1, states, states)


def times_X_transposed(X: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Compute M X' for X (N, 2n, n) and M (N, n, k, n) as (N, n, k, 2n).  The left half of X' is the identity."""
    tasks, _, states = X.shape
    right = M.reshape(tasks, -1, states) @ X[:, states:].mT
    return np.concatenate([M, right.reshape(M.shape)], axis=-1)


def gradients(Z: Embeddings) -> Iterator[Gradients]:
    """Compute the gradients at layers 0, ..., L by the recursions of the proof of Lemma 3, for any u:

        grad_A y_{l+1}^(i) = X k_l' x^(i)' + sum_j f_ji grad_A y_l^(j),
        grad_A y_{l+1}^q   = grad_A y_l^q + X k_l' x^q' + sum_j g_jq grad_A y_l^(j),
        grad_u Y_{l+1}     = X X'AX + grad_u Y_l f,
        grad_u y_{l+1}^q   = grad_u y_l^q + X g^q + grad_u Y_l g^q.

    Here g_jq is an entry and g^q a column of g.  Because g is the same in all layers, the terms of the second recursion
    are summed over layers before the product with g.  The gradients at layer l do not depend on L, so one pass gives
    the gradients for every depth.

    Yields
    ------
    Gradients; the next iteration does not change their arrays
    """
    X, f, g = Z.X, Z.f, Z.g
    tasks, layers, states = Z.k.shape
    state = np.arange(states)
    R = np.zeros((tasks, states, states, states))
    C = np.zeros((tasks, states, states, states))
    U = np.zeros((tasks, 2 * states, states))
    V = np.zeros((tasks, 2 * states, states))
    a = np.zeros((tasks, states))
    step = X @ (f - np.eye(states))  # X X'AX
    for layer in range(layers):
        yield Gradients(X, g, R, C, a, U, V)
        k = Z.k[:, layer]
        C = C + R
        R = (f.mT @ R.reshape(tasks, states, -1)).reshape(R.shape)
        R[:, state, :, state] += k
        V = V + (X + U) @ g
        U = step + U @ f
        a = a + k
