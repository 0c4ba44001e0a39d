"""The looped linear Transformer: its parameters, and its output as a function of the averages over a context.

In the sparse space Theta^looped all layers share (section "Global Minimizer")

    P = [0, 0; u, 1],    Q = [A, 0; 0, 0],

so the parameters are a row u and a block A.  theta^TD has u = 0 and A = [-I, I; 0, 0].

A context of m columns [x_t; r_t] enters TF_L only through M = sum_t x_t x_t' / m and c = sum_t r_t x_t / m (``Gram`` in
``ictd.prompt``).  With attention divided by m, eq. (Yl dissection) summed over the context is

    k_0 = u M + c,    k_{l+1} = k_l (I + A M),    TF_L(s) = -(k_0 + ... + k_{L-1}) A[:, s],

where k_l (2n,) = sum_t (u x_t + y_t^l) x_t' / m and y_t^l is the last entry of column t in layer l.  Without the
division, A is m times as large.  ``ictd.literal`` has TF_L layer by layer on whole prompts.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ictd.checks import (
    DISCOUNT,
    FLAG,
    GENERATOR,
    array,
    choice,
    instance,
    integer,
    number,
    validate,
    validate_fields,
)
from ictd.prompt import Context, Gram
from ictd.storage import load_arrays


@dataclass(frozen=True)
class Weights:
    """Parameters in Theta^looped: row u of P and block A of Q (section "Global Minimizer").

    Leading axes stand for several Transformers, such as seeds or snapshots; ``weights[index]`` selects some of them.
    The arrays are copied, and may have NaN.

    Parameters
    ----------
    u : (..., 2n) array
    A : (..., 2n, 2n) array

    Raises
    ------
    ValueError
        If shapes do not match.
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
        """P = [0, 0; u, 1], (..., 2n+1, 2n+1)."""
        width = self.u.shape[-1] + 1
        P = np.zeros((*self.u.shape[:-1], width, width))
        P[..., -1, :-1] = self.u
        P[..., -1, -1] = 1
        return P

    def Q(self) -> np.ndarray:
        """Q = [A, 0; 0, 0], (..., 2n+1, 2n+1)."""
        return np.pad(self.A, [(0, 0)] * (self.A.ndim - 2) + [(0, 1), (0, 1)])


@validate(states=integer(1))
def theta_td(states: int) -> Weights:
    """Make theta^TD, u = 0 and A = [-I, I; 0, 0], with which a layer is one step of batch TD (section "In-Context TD").

    Parameters
    ----------
    states : int, n

    Raises
    ------
    ValueError
        If n is below 1.
    """
    return Weights(np.zeros(2 * states), np.kron([[-1, 1], [0, 0]], np.eye(states)))


@validate(states=integer(1), gain=number(least=0, words="of at least 0"), rng=GENERATOR)
def initial_weights(states: int, gain: float, rng: np.random.Generator) -> Weights:
    """Draw Xavier normal P and Q, (2n+1) x (2n+1), masked to Theta^looped.

    Parameters
    ----------
    states : int, n
    gain : float, factor of the standard deviation sqrt(2 / (fan_in + fan_out))
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If n is below 1, or the gain is negative.
    """
    deviation = gain / np.sqrt(2 * states + 1)
    return Weights(rng.normal(0, deviation, 2 * states), rng.normal(0, deviation, (2 * states, 2 * states)))


def estimates(weights: Weights, gram: Gram, depth: int, scaled: bool = True) -> np.ndarray:
    """Compute TF_L of every query state, for each of R weights on each of T contexts.

    Parameters
    ----------
    weights : Weights, u (R, 2n) and A (R, 2n, 2n); any leading axes, or none, in place of R
    gram : Gram of T contexts; any leading axes, or none, in place of T
    depth : int, number of layers L
    scaled : bool
        Whether attention is divided by the context length.

    Returns
    -------
    estimates : (R, T, n) array
    """
    weights = weights[..., *[None] * (gram.c.ndim - 1)]
    A = weights.A * (1 if scaled else np.asarray(gram.length)[..., None, None])
    AM = A @ gram.M  # (R, T, 2n, 2n)
    k = np.vecmat(weights.u, gram.M) + gram.c  # (R, T, 2n)
    total = np.zeros_like(k)
    for _ in range(depth):
        total += k
        k = k + np.vecmat(k, AM)
    return -np.vecmat(total, A[..., : weights.states])


@dataclass(frozen=True)
class Model:
    """The looped Transformer TF_L as a function from contexts to values.

    Parameters
    ----------
    weights : Weights of n states; leading axes stand for several models
    depth : int, number of layers L
    discount : float, gamma of pretraining, by which prompts multiply next features
    scaled : bool
        Whether attention is divided by the context length.

    Raises
    ------
    ValueError
        If an argument has the wrong type, the depth is below 1, or the discount is outside [0, 1 - 2^-26].

    Examples
    --------
    >>> import ictd
    >>> model = ictd.Model(ictd.theta_td(2), depth=100, discount=0.5)
    >>> context = ictd.Context.enumerated([[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0])
    >>> model.values(context).round(3)
    array([1.846, 0.308])
    """

    weights: Weights
    depth: int
    discount: float
    scaled: bool = True

    def __post_init__(self):
        validate_fields(self, weights=instance(Weights), depth=integer(1), discount=DISCOUNT, scaled=FLAG)

    @validate(context=instance(Context))
    def values(self, context: Context) -> np.ndarray:
        """Estimate the values of all n states.

        The estimates are those of the paper's Transformer on whole prompts, ``LinearTransformer``.

        Parameters
        ----------
        context : Context of (..., n)

        Returns
        -------
        estimates : (..., n) array, with the leading axes of the weights before those of the context

        Raises
        ------
        ValueError
            If the context has another number of states.
        """
        if context.states != self.weights.states:
            n = self.weights.states
            raise ValueError(
                f"the context has {context.states} states, and the model was made for {n} states; load or pretrain"
                f" one for {context.states} states, or give from_trajectory an n of {n}."
            )
        return estimates(self.weights, context.gram(self.discount), self.depth, self.scaled)


@validate(results=instance(str, Path), seed=integer(0))
def load_model(results: str | Path, run: str, seed: int) -> Model:
    """Load a pretrained Transformer from the results of the workflow.

    Parameters
    ----------
    results : str or Path, the folder that snakemake wrote
    run : str, "algo-env-states-depth", such as "td-boyan-5-30"
    seed : int

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If the folder holds no runs, the run or the seed does not exist, the run diverged, or the file is damaged.
    """
    folder = Path(results) / "weights"
    runs = sorted(path.stem for path in folder.glob("[!.]*.npz"))
    if not runs:
        raise ValueError(f"{results} holds no weights of runs; give the folder that snakemake wrote its results to.")
    path = folder / f"{choice(runs)('run', run, {})}.npz"
    seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
    depth, discount, scaled = (array.item() for array in load_arrays(path, "depth", "discount", "scaled"))
    if seed not in seeds:
        raise ValueError(f"{run} has no seed {seed}; choose from {', '.join(map(str, sorted(seeds)))}.")
    index = np.flatnonzero(seeds == seed)[0]
    if diverged_at[index]:
        raise ValueError(f"{run} with seed {seed} diverged at task {diverged_at[index]}; choose another seed.")
    return Model(Weights(u[index], A[index]), depth, discount, scaled)
