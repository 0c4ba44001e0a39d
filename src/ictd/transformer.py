"""The looped linear Transformer: its parameters, and its output as a function of the matrix G of a context.

In the sparse space Theta^looped all layers share (section "Global Minimizer") ::

    P = [0, 0; u, 1],    Q = [A, 0; 0, 0],

so the parameters are a row u and a block A.  theta^TD has u = 0 and A = [-I, I; 0, 0].

A context of m columns [x_t; r_t] enters TF_L only through the blocks M = sum_t x_t x_t' / m and c = sum_t r_t x_t / m
of its matrix G = [M, c; c', .] (``ictd.prompt``).  With attention divided by m, eq. (Yl dissection) summed over the
context is ::

    k_0 = u M + c,    k_{l+1} = k_l (I + A M),    TF_L(s) = -(k_0 + ... + k_{L-1}) A[:, s],

where k_l (2n,) = sum_t (u x_t + y_t^l) x_t' / m and y_t^l is the last entry of column t in layer l.  Without the
division, G is m times as large.  ``transformer_output`` has TF_L as the paper writes it: layer by layer, on whole
prompts, with any P and Q.

With d features in place of n one-hot ones, u is (2d,) and A is (2d, 2d).  The estimate is linear in the features of the
query state::

    w = -(k_0 + ... + k_{L-1}) A[:, :d],    TF_L(s) = w phi(s).
"""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

from ictd.checks import (
    ArrayLike,
    Count,
    Flag,
    NotNegative,
    UpToOne,
    array,
    choice,
    integer,
    validate,
    validate_fields,
    validated,
)
from ictd.context import Context
from ictd.prompt import Queries
from ictd.storage import load_arrays, names_of_arrays, save_arrays, user_path

# An array of NumPy, or a tensor, which torch can differentiate.
Array = TypeVar("Array", bound=Any)


@dataclass(frozen=True)
@validated
class Weights:
    """Parameters in Theta^looped: row u of P and block A of Q (section "Global Minimizer").

    Leading axes stand for several Transformers, such as seeds or snapshots; ``weights[index]`` selects some of them.
    The arrays are copied, and may have NaN.

    Parameters
    ----------
    u : (..., 2d) array
    A : (..., 2d, 2d) array
        d is the number of features, and with one-hot features the number of states.

    Raises
    ------
    ValueError
        If shapes do not match.
    """

    u: Annotated[ArrayLike, array("..., 2d", finite=False)]
    A: Annotated[ArrayLike, array("..., 2d, 2d", finite=False)]

    def __post_init__(self):
        validate_fields(self)

    def __repr__(self) -> str:
        lead = f"{' x '.join(map(str, self.u.shape[:-1]))} models, " if self.u.ndim > 1 else ""
        return f"<Weights of {lead}{self.dimension} features>"

    @property
    def dimension(self) -> int:
        """Number of features d; with one-hot features it is the number of states n."""
        return self.u.shape[-1] // 2

    def __getitem__(self, index) -> "Weights":
        index = index if isinstance(index, tuple) else (index,)
        return Weights(self.u[*index, :], self.A[*index, :, :])

    def P(self) -> np.ndarray:
        """P = [0, 0; u, 1], (..., 2d+1, 2d+1)."""
        width = self.u.shape[-1] + 1
        P = np.zeros((*self.u.shape[:-1], width, width))
        P[..., -1, :-1] = self.u
        P[..., -1, -1] = 1
        return P

    def Q(self) -> np.ndarray:
        """Q = [A, 0; 0, 0], (..., 2d+1, 2d+1)."""
        return np.pad(self.A, [(0, 0)] * (self.A.ndim - 2) + [(0, 1), (0, 1)])


@validate
def theta_td(dimension: Count) -> Weights:
    """Make theta^TD, u = 0 and A = [-I, I; 0, 0], with which a layer is one step of batch TD (section "In-Context TD").

    Parameters
    ----------
    dimension : int, number of features d, which is n with one-hot features

    Raises
    ------
    ValueError
        If d is below 1.
    """
    return Weights(np.zeros(2 * dimension), np.kron([[-1, 1], [0, 0]], np.eye(dimension)))


def preconditioned_td(K: np.ndarray) -> np.ndarray:
    """A = K [-I, I], (..., 2d, 2d), of a preconditioner K (..., 2d, d); theta^TD has K = [I; 0]."""
    return np.concatenate([-K, K], axis=-1)


@validate
def initial_weights(dimension: Count, gain: NotNegative, rng: np.random.Generator) -> Weights:
    """Draw Xavier normal P and Q, (2d+1) x (2d+1), masked to Theta^looped.

    Parameters
    ----------
    dimension : int, number of features d, which is n with one-hot features
    gain : float, factor of the standard deviation sqrt(2 / (fan_in + fan_out))
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If d is below 1, or the gain is negative.
    """
    d = dimension
    deviation = gain / np.sqrt(2 * d + 1)
    return Weights(rng.normal(0, deviation, 2 * d), rng.normal(0, deviation, (2 * d, 2 * d)))


def transformer_output(prompt: Array, P: Array, Q: Array, depth: int, queries: int, scaled: bool = True) -> Array:
    """Evaluate TF_L with any P and Q on whole prompts, as the paper writes it.

    A layer maps a prompt Z (2d+1, m+k) to (section "Linear Attention", eq. (embedding evolution))

        Z + (1/m) P Z M (Z' Q Z),    M = diag(1, ..., 1, 0),

    where the mask M has nothing to do with the matrix M of this module.  The output is minus the last entry of
    each query column of Z_L.  M leaves the query columns out of the context, so k queries in one prompt have the same
    outputs as in k prompts.  The division by m is a reading (docs/results.md).

    Parameters
    ----------
    prompt : (..., 2d+1, m+k) array or tensor
    P, Q : (..., K, 2d+1, 2d+1) arrays or tensors
        Matrices of K = L layers, or of one that all layers share.  Leading axes broadcast against those of the prompts.
    depth : int, number of layers L
    queries : int, number k of query columns at the end of a prompt
    scaled : bool
        Whether attention is divided by the context length m.

    Returns
    -------
    estimates : (..., k) array or tensor
    """
    length = prompt.shape[-1] - queries
    P = (1 / length if scaled else 1.0) * P
    layers = [(P[..., own, :, :], Q[..., own, :, :]) for own in range(P.shape[-3])]
    Z = prompt
    for layer in range(depth):
        P, Q = layers[layer % len(layers)]
        context = Z[..., :length]
        # In this order, a layer costs O(m n^2) in place of O(m^2 n).
        Z = Z + (P @ (context @ context.mT) @ Q) @ Z
    return -Z[..., -1, length:]


def estimates(weights: Weights, G: np.ndarray, depth: int, layers: bool = False) -> np.ndarray:
    """Compute w with TF_L(s) = w phi(s), for each of R weights on each of T contexts.

    With one-hot features, w holds the estimates of all states.

    Parameters
    ----------
    weights : Weights, u (R, 2d) and A (R, 2d, 2d); any leading axes, or none, in place of R
    G : (T, 2d+1, 2d+1) array, ``Context.gram_matrix`` of T contexts; any leading axes, or none, in place of T
    depth : int, number of layers L
    layers : bool
        Whether to return w after 0, 1, ..., L layers, with a leading axis.

    Returns
    -------
    w : (R, T, d) array, or (L+1, R, T, d)
    """
    weights = weights[..., *[None] * (G.ndim - 2)]
    M, c = G[..., :-1, :-1], G[..., -1, :-1]
    AM = weights.A @ M  # (R, T, 2d, 2d)
    k = np.vecmat(weights.u, M) + c  # (R, T, 2d)
    total = np.zeros_like(k)
    totals = [total.copy()]
    for _ in range(depth):
        total += k
        k = k + np.vecmat(k, AM)
        if layers:
            totals.append(total.copy())
    return -np.vecmat(np.array(totals) if layers else total, weights.A[..., : weights.dimension])


@dataclass(frozen=True)
@validated
class Model:
    """The looped Transformer TF_L as a function from contexts to values.

    Parameters
    ----------
    weights : Weights of d features; leading axes stand for several models, such as seeds
    depth : int, number of layers L
    discount : float, gamma of pretraining, from 0 to 1, by which prompts multiply next features
    scaled : bool
        Whether attention is divided by the context length.

    Raises
    ------
    ValueError
        If an argument has the wrong type, the depth is below 1, or the discount is outside [0, 1].

    Examples
    --------
    >>> import ictd
    >>> model = ictd.Model(ictd.theta_td(2), depth=100, discount=0.5)
    >>> context = ictd.Context.enumerated([[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0])
    >>> model.values(context).round(3)
    array([1.846, 0.308])
    """

    weights: Weights
    depth: Count
    discount: UpToOne
    scaled: Flag = True

    def __getitem__(self, index) -> "Model":
        """Select models by an index of the leading axes of the weights."""
        if self.weights.u.ndim == 1:
            raise ValueError("this is a single model, which has no axis of seeds.")
        return replace(self, weights=self.weights[index])

    def __post_init__(self):
        validate_fields(self)

    @validate
    def values(self, context: Context, queries: Queries | None = None, layers: Flag = False) -> np.ndarray:
        """Estimate the values of query states.

        The estimates are those of the paper's Transformer on whole prompts, ``LinearTransformer``.

        Parameters
        ----------
        context : Context of (..., d)
        queries : (k, d) or (..., k, d) array, optional
            Features phi(s) of the query states.  With one-hot features they may be left out, and all n states are
            queries.
        layers : bool
            Whether to return the estimates after 0, 1, ..., L layers, with a leading axis.

        Returns
        -------
        estimates : (..., k) array, or (..., n) without queries
            The leading axes of the weights come before those of the context.

        Raises
        ------
        ValueError
            If the context or the queries have another number of features, queries are missing, or the discount is 1
            and no episode ends.
        """
        d = self.weights.dimension
        if context.dimension != d:
            given = context.dimension
            raise ValueError(
                f"the context has {given} states or features, and the model was made for {d}; load or pretrain a model"
                f" for {given}, or give from_trajectory an n of {d}."
            )
        if queries is None and not context.one_hot:
            raise ValueError("queries are missing; give the features of the states whose values are wanted.")
        if queries is not None and queries.shape[-1] != d:
            raise ValueError(f"queries have {queries.shape[-1]} features, and the model was made for {d}.")
        context.refuse_endless(self.discount)
        w = estimates(self.weights, context.gram_matrix(self.discount, self.scaled), self.depth, layers)
        return w if queries is None else np.matvec(queries, w)

    @validate
    def save(self, path: str | Path) -> None:
        """Write the model to one .npz file, which ``load_model`` reads.  A path may begin with ~, the home folder.

        Raises
        ------
        ValueError
            If the name of the file does not end in .npz, or the file cannot be written.
        """
        file = user_path(path)
        if file.suffix != ".npz":
            raise ValueError(f"path is {path}; give a name that ends in .npz.")
        settings = {name: np.array(getattr(self, name)) for name in ("depth", "discount", "scaled")}
        try:
            save_arrays(file, u=self.weights.u, A=self.weights.A, **settings)
        except OSError as error:
            raise ValueError(f"{path} cannot be written: {error.strerror}; give the name of another file.") from None


@validate
def load_model(source: str | Path, run: str | None = None, seed: Annotated[int, integer(0)] | None = None) -> Model:
    """Load a model that ``Model.save`` wrote, or a pretrained Transformer of the workflow.

    Parameters
    ----------
    source : str or Path
        The file of ``Model.save``, the folder that snakemake wrote, a folder of published weights (``make weights``),
        or a file of one of these folders.
    run : str, "algo-env-states-depth", such as "td-boyan-5-30", for a folder
    seed : int, optional, for a folder or a file of a folder
        By default the weights have a leading axis of all seeds, in ascending order.

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If the file does not exist or is damaged, the folder holds no runs, the run or the seed does not exist, or the
        run of this seed diverged.

    Warns
    -----
    UserWarning
        If all seeds are loaded, and some diverged.  Their weights are NaN.
    """
    path = user_path(source)
    if path.suffix == ".npz":
        if not path.is_file():
            raise ValueError(f"{source} does not exist; give a file that Model.save wrote.")
        run = path.stem
        try:
            single = "seeds" not in names_of_arrays(path)
            model = Model(Weights(*load_arrays(path, "u", "A")), *_settings(path))
        except ValueError:
            raise ValueError(f"{source} is damaged or holds no model; give a file that Model.save wrote.") from None
        if single and seed is not None:
            raise ValueError(f"{source} holds a model without a seed; leave out the seed.")
        if single:
            return model
    else:
        folder = path / "weights" if (path / "weights").is_dir() else path
        runs = sorted(file.stem for file in folder.glob("[!.]*-*-*-*.npz"))
        if not runs:
            raise ValueError(
                f"{source} holds no weights of runs; give the folder that snakemake wrote its results to, or a folder"
                " of published weights."
            )
        path = folder / f"{choice(runs)('run', run, {})}.npz"
    seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
    if seed is None:
        if diverged_at.any():
            diverged = ", ".join(map(str, sorted(seeds[diverged_at > 0])))
            warnings.warn(f"{run} diverged with seed {diverged}; these weights are NaN.", stacklevel=3)
        chosen = np.argsort(seeds)
    elif seed not in seeds:
        raise ValueError(f"{run} has no seed {seed}; choose from {', '.join(map(str, sorted(seeds)))}.")
    else:
        chosen = np.flatnonzero(seeds == seed)[0]
        if diverged_at[chosen]:
            raise ValueError(f"{run} with seed {seed} diverged at task {diverged_at[chosen]}; choose another seed.")
    return Model(Weights(u[chosen], A[chosen]), *_settings(path))


def _settings(path: Path) -> tuple[int, float, bool]:
    """Depth, discount and scale of attention of the models in a file."""
    depth, discount, scaled = (array.item() for array in load_arrays(path, "depth", "discount", "scaled"))
    return depth, discount, scaled
