"""Numbers that describe weights pretrained on features.

If no rotation R of the features changes their distribution, neither does the expected loss change when A is replaced by
(I x R) A (I x R)' and u by u (I x R)'.  From A = 0 and u = 0 the expected gradient then stays among the weights that no
rotation changes: u = 0, and A with four blocks that are multiples of I.  With A = [-alpha, alpha; -alpha eta, alpha
eta] x I a layer makes the update

    w <- w + alpha (1/n) sum_s delta(s) (phi(s) + eta gamma (P phi)(s)).

TD has eta = 0, and the residual gradient algorithm (Baird, ICML 1995) has eta = -1.
"""

import numpy as np

from ictd.weight_measures import preconditioner, squared_norm


def measures(A: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers (...) of matrices A (..., 2d, 2d).

    With A = K [-I, I] + N [I, I] and K = [G; H], ``alpha`` is the multiple of I in G, and ``eta`` that in H over it.
    ``four`` is the share of the squared norm of A that the multiples of I in its four blocks hold.
    """
    d = A.shape[-1] // 2
    K = preconditioner(A)
    alpha, second = multiple_of_identity(K[..., :d, :]), multiple_of_identity(K[..., d:, :])
    traces = A.reshape(*A.shape[:-2], 2, d, 2, d).trace(axis1=-3, axis2=-1)
    return {"alpha": alpha, "eta": second / alpha, "four": squared_norm(traces) / d / squared_norm(A)}


def multiple_of_identity(matrices: np.ndarray) -> np.ndarray:
    """Multiple of I (...) in the least-squares fit to matrices (..., d, d) by multiples of I and of 11'."""
    d = matrices.shape[-1]
    trace, total = matrices.trace(axis1=-2, axis2=-1), matrices.sum(axis=(-2, -1))
    return trace if d == 1 else (trace - (total - trace) / (d - 1)) / d


def block_coefficients(A: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients k (4,) of the four blocks of columns in the test functions of A (4d, 4d), and their share.

    The estimate is w = -(k_0 + ... + k_{L-1}) A[:, :d] (``ictd.transformer``), so the test function of a column x is
    -A[:, :d]' x.  The share is that of the multiples of I in the squared norm of A[:, :d].
    """
    d = len(A) // 4
    blocks = A[:, :d].reshape(4, d, d)
    k = -multiple_of_identity(blocks)
    return k, float(d * (k**2).sum() / (blocks**2).sum())
