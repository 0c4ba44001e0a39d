"""Updates of Algorithms 1 and 2 without the restriction to Theta^looped: compiled, with the exact gradient.

All entries of P and Q (D, D) are parameters, and each layer can have its own P and Q.  A layer of TF_L maps a prompt
Z = [X, q], with context columns X (D, m) and query columns q (D, k), to (section "Linear Attention", eq. (embedding
evolution))

    Z + (1/m) P X X' Q Z,

and the estimate for a query is minus the last entry of its column after L layers (``transformer_output`` in
``ictd.transformer``).  Below, X is divided by sqrt(m), in place of the division of each layer by m.

**Forward sweep.**  In layer l, with the prompt Z = Z_l and its context X = X_l,

    K = P X,    H = Q' X,    S = H' Z = X' Q Z,    Z_{l+1} = Z + K S.

**Backward sweep.**  For weights e of the estimates, let dY be the derivative of sum_s e_s TF_L(s) with respect to Y.
dZ_L is zero except for -e in the last row of the query columns.  By the chain rule, from dZ = dZ_{l+1},

    dK = dZ S',    dS = K' dZ,    dH = Z dS',    dP += dK X',    dQ += X dH',
    dZ_l = dZ + H dS,    and its context columns also get P' dK + Q dH.

Both algorithms update along this gradient, with weights e from ``ictd.engine.batch_errors``.

Sizes are ``kernels.size`` tuples, which the compiler knows: d of length D, c of the number of context columns, k of the
number of queries, and z of the number of all columns.  All arrays have the precision of the parameters, except prompts
and batches.
"""

import numpy as np

from ictd.engine import adam, batch_errors, clip_gradient
from ictd.kernels import kernel, size
from ictd.sampling import BatchStatistics
from ictd.small_matrices import add_product, multiply


@kernel(noalias=True)
def sweep_forward(d, c, z, P, Q, Z, K, H, S):
    """Fill Z (L+1, D, z) from its first prompt, and K, H (L, D, c) and S (L, c, z) of each layer.

    P and Q are (L, D, D), or (1, D, D) if layers share them.
    """
    for layer in range(len(K)):
        own = layer % len(P)
        X = Z[layer, :, : len(c)]
        multiply(d, c, P[own], X, K[layer])
        multiply(d, c, Q[own].T, X, H[layer])
        multiply(d, z, H[layer].T, Z[layer], S[layer])
        Z[layer + 1] = Z[layer]
        add_product(c, z, K[layer], S[layer], Z[layer + 1])


@kernel(noalias=True)
def sweep_backward(d, c, z, P, Q, Z, K, H, S, dZ, dK, dH, dS, dP, dQ):
    """Add the gradients for P and Q to dP and dQ.  dZ (D, z), on entry of the last prompt, becomes that of the first
    prompt.

    P, Q, dP and dQ are (L, D, D), or (1, D, D) if layers share them.  dK and dH (D, c) and dS (c, z) are scratch
    arrays.
    """
    for layer in range(len(K) - 1, -1, -1):
        own = layer % len(P)
        X, dX = Z[layer, :, : len(c)], dZ[:, : len(c)]
        multiply(z, c, dZ, S[layer].T, dK)
        multiply(d, z, K[layer].T, dZ, dS)
        multiply(z, c, Z[layer], dS.T, dH)
        add_product(c, d, dK, X.T, dP[own])
        add_product(c, d, X, dH.T, dQ[own])
        add_product(c, z, H[layer], dS, dZ)
        add_product(d, c, P[own].T, dK, dX)
        add_product(d, c, Q[own], dH, dX)


@kernel(noalias=True)
def train_block(
    d, c, k, prompts, reward, visits, transitions, return_sums, bootstrap, depth, discount, learning_rate, clip, skip,
    trained, parameter, mean, square, steps, estimates,
):  # fmt: skip
    """Make one update for each of N tasks; parameter, mean and square, flat with P before Q, change in place.

    ``prompts`` (N, D, c+k) have the columns [X, q] of the module's docstring, and ``trained`` is a flat mask.  The
    kernel stops before the update of a task whose estimates are not finite.  With ``skip``, it skips an update whose
    estimates or gradient are not finite instead, unless it is the last update.  It returns the number of tasks before
    the task at which it stopped.
    """
    tasks, height, width, number = len(reward), len(d), len(c) + len(k), parameter.dtype
    z, half, shape = c + k, len(parameter) // 2, (len(parameter) // (2 * height**2), height, height)
    P, Q = parameter[:half].reshape(shape), parameter[half:].reshape(shape)
    gradient = np.empty_like(parameter)
    dP, dQ = gradient[:half].reshape(shape), gradient[half:].reshape(shape)
    Z, S = np.empty((depth + 1, height, width), number), np.empty((depth, len(c), width), number)
    K, H = np.empty((depth, height, len(c)), number), np.empty((depth, height, len(c)), number)
    dZ, dS = np.empty((height, width), number), np.empty((len(c), width), number)
    dK, dH, e = np.empty((height, len(c)), number), np.empty((height, len(c)), number), np.empty(len(k))
    for i in range(tasks):
        Z[0] = prompts[i]
        sweep_forward(d, c, z, P, Q, Z, K, H, S)
        estimate = estimates[i]
        estimate[:] = -Z[depth, -1, len(c) :]
        finite = np.isfinite(estimate).all()
        if finite:
            batch_errors(k, estimate, reward[i], visits[i], transitions[i], return_sums[i], bootstrap, discount, e)
            dZ[:] = 0
            dZ[-1, len(c) :] = -e
            gradient[:] = 0
            sweep_backward(d, c, z, P, Q, Z, K, H, S, dZ, dK, dH, dS, dP, dQ)
            gradient *= trained
            if clip is not None:
                clip_gradient(gradient, clip)
            finite = not skip or np.isfinite(gradient).all()
        if finite:
            adam(parameter, gradient, mean, square, learning_rate, steps + i + 1)
        elif not skip or i == tasks - 1:
            return i
    return tasks


class Engine:
    """Training state of a Transformer: P, Q and Adam's moments, which updates change in place.

    Parameters
    ----------
    P, Q : (L, D, D) arrays, or (1, D, D) if layers share them, of the precision of all computations
    algo : "td" (Algorithm 1) or "mc" (Algorithm 2)
    depth : int, number of layers L
    discount : float, gamma
    learning_rate : float, Adam's alpha
    scaled : bool
        Whether attention is divided by the context length.
    trained : array that broadcasts to (2, L, D, D)
        1 for entries of P and Q that are trained, 0 for others.
    clip : float
        Largest norm of the gradient; gradients with a larger norm are scaled to this norm.  0 means no limit.
    skip : bool
        Whether updates whose estimates or gradient are not finite are skipped.  Adam's number of updates still
        increases, which matters only for the first few hundred updates.
    """

    def __init__(
        self,
        P: np.ndarray,
        Q: np.ndarray,
        algo: str,
        depth: int,
        discount: float,
        learning_rate: float,
        scaled: bool = True,
        trained: np.ndarray | float = 1.0,
        clip: float = 0.0,
        skip: bool = False,
    ):
        self.shape = 2, *P.shape
        self.parameter = np.stack([P, Q]).ravel()
        self.mean, self.square = np.zeros_like(self.parameter), np.zeros_like(self.parameter)
        self.trained = np.broadcast_to(trained, self.shape).astype(self.parameter.dtype).ravel()
        self.steps = 0
        self.bootstrap = algo == "td"
        self.depth, self.discount, self.learning_rate = depth, float(discount), float(learning_rate)
        self.scaled, self.clip, self.skip = scaled, float(clip) or None, skip

    def train(self, reward: np.ndarray, batches: BatchStatistics, prompts: np.ndarray) -> tuple[np.ndarray, int]:
        """Make one update for each task, in order, until an estimate is not finite.

        Parameters
        ----------
        reward : (N, n) array
        batches : BatchStatistics of N tasks
        prompts : (N, D, m+n) array
            For each task m context columns and the query columns of all n states (``ictd.joint_prompt``).

        Returns
        -------
        estimates : (N, n) array
            Estimates just before each update; NaN for tasks that were not reached.
        updates : int
            Number of tasks before the task whose estimates are not finite.  With ``skip``, it is N, or N - 1 if the
            last update was skipped.
        """
        found = np.full_like(reward, np.nan)
        height, queries = self.shape[-1], reward.shape[1]
        length = prompts.shape[-1] - queries
        if self.scaled:
            prompts = prompts.copy()
            prompts[..., :length] /= np.sqrt(length)
        updates = train_block(
            size(height), size(length), size(queries), prompts, reward, batches.visits, batches.transitions,
            batches.return_sums, self.bootstrap, self.depth, self.discount, self.learning_rate, self.clip, self.skip,
            self.trained, self.parameter, self.mean, self.square, self.steps, found,
        )  # fmt: skip
        self.steps += len(reward) if self.skip else updates
        return found, updates

    def matrices(self) -> np.ndarray:
        """A copy of P and Q, (2, L, D, D) or (2, 1, D, D)."""
        return self.parameter.reshape(self.shape).copy()
