"""Algorithms 1 and 2 by automatic differentiation for R runs at once, in torch, for readings of the paper.

``ictd.literal`` trains u and A of one looped Transformer.  Here all of P and Q can be trained, layers can have their
own parameters, and gradients can be clipped.  Runs are the leading axis of all tensors and do not interact: a run that
diverges becomes NaN without an effect on the others.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from ictd.literal import linear_attention
from ictd.mrp import Tasks
from ictd.pretraining import PROGRESS_SECONDS
from ictd.prompt import enumerated_columns, joint_prompt
from ictd.sampling import BatchStatistics
from ictd.transformer import Weights, initial_weights

logger = logging.getLogger(__name__)

# Names of Adam's moments in the state of torch's optimiser.
MOMENTS = ("exp_avg", "exp_avg_sq")


class Transformers(torch.nn.Module):
    """TF_L of R runs, with all entries of P and Q as parameters (section "Linear Attention").

    Parameters
    ----------
    P, Q : (R, K, 2n+1, 2n+1) arrays
        K is 1 for looped Transformers, and L if each layer has its own parameters.  The axis R may be left out.
    depth : int, number of layers L
    scaled : bool
        Whether attention is divided by the context length.
    dtype : torch.dtype
    """

    def __init__(self, P: np.ndarray, Q: np.ndarray, depth: int, scaled: bool, dtype: torch.dtype = torch.float64):
        super().__init__()
        self.depth = depth
        self.scaled = scaled
        self.P = torch.nn.Parameter(torch.tensor(P, dtype=dtype))
        self.Q = torch.nn.Parameter(torch.tensor(Q, dtype=dtype))

    def __getitem__(self, run: int) -> "Transformers":
        """The Transformer of one run, which takes prompts with any leading axes."""
        P, Q = self.P[run].detach().numpy(), self.Q[run].detach().numpy()
        return Transformers(P, Q, self.depth, self.scaled, self.P.dtype)

    def forward(self, prompt: torch.Tensor, queries: int) -> torch.Tensor:
        """Estimate the values (R, k) of the k query states at the end of prompts (R, 2n+1, m+k), one for each run."""
        Z = prompt.to(self.P.dtype)
        length = Z.shape[-1] - queries
        P = ((1 / length if self.scaled else 1.0) * self.P).unbind(-3)
        Q = self.Q.unbind(-3)
        for layer in range(self.depth):
            Z = linear_attention(Z, P[layer % len(P)], Q[layer % len(Q)], length)
        return -Z[..., -1, length:]

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Means over layers of P and Q, (R, 2n+1, 2n+1) each, in a scale in which P ends with 1, as in Theta.

        A layer depends only on products of an entry of P with an entry of Q.  So P can be divided by a number, and Q
        multiplied by it.  Before the mean is taken, the sign of each layer is set so that P ends with a positive entry.
        """
        P, Q = (parameter.detach().numpy().astype(np.float64) for parameter in (self.P, self.Q))
        sign = np.sign(P[..., -1:, -1:])
        P, Q = (sign * P).mean(axis=-3), (sign * Q).mean(axis=-3)
        corner = P[..., -1:, -1:]
        return P / corner, Q * corner

    def weights(self) -> Weights:
        """Row u of P (R, 2n) and block A of Q (R, 2n, 2n), from ``matrices``."""
        P, Q = self.matrices()
        return Weights(P[..., -1, :-1], Q[..., :-1, :-1])


def initial_matrices(states: int, gain: float, layers: int, whole: bool, rng: np.random.Generator) -> np.ndarray:
    """Draw Xavier normal P and Q of one run.

    Parameters
    ----------
    states : int, n
    gain : float, as in ``ictd.transformer.initial_weights``
    layers : int, number of layers K with their own parameters
    whole : bool
        Whether all entries are drawn; otherwise P and Q are in Theta, as in ``ictd.transformer.initial_weights``.
    rng : numpy.random.Generator

    Returns
    -------
    matrices : (2, K, 2n+1, 2n+1) array, P before Q
    """
    width = 2 * states + 1
    if whole:
        return rng.normal(0, gain / np.sqrt(width), (2, layers, width, width))
    weights = [initial_weights(states, gain, rng) for _ in range(layers)]
    return np.array([[layer.P() for layer in weights], [layer.Q() for layer in weights]])


def theta_masks(states: int) -> np.ndarray:
    """Masks (2, 2n+1, 2n+1) of the entries of P and of Q that are trained in Theta."""
    ones = Weights(np.ones(2 * states), np.ones((2 * states, 2 * states)))
    masks = np.array([ones.P(), ones.Q()])
    masks[0, -1, -1] = 0
    return masks


def pretrain_runs(
    model: Transformers,
    algos: Sequence[str],
    tasks: Sequence[Tasks],
    batches: Sequence[BatchStatistics],
    discount: float,
    learning_rate: float,
    masks: np.ndarray | None = None,
    clip: float = 0,
    skip: bool = False,
) -> np.ndarray:
    """Pretrain all runs by Algorithm 1 or 2, in place.

    Parameters
    ----------
    model : Transformers of R runs
    algos : R names, "td" or "mc"
    tasks : R Tasks, N tasks each, in the order of the updates
    batches : R BatchStatistics of these tasks
    discount : float, gamma
    learning_rate : float, Adam's alpha
    masks : (2, 2n+1, 2n+1) array, optional
        1 for the entries of P and of Q that are trained, 0 for the others.  By default all entries are trained.
    clip : float
        Largest norm of a run's gradient; longer ones are shortened to it.  0 means no limit.
    skip : bool
        Whether a run skips an update if its estimates or its gradient are not finite.  Such a run has diverged only if
        it skips the last update.

    Returns
    -------
    diverged_at : (R,) int array
        Number, from 1, of the first task at which a run is not finite, 0 if there is none.  If only parameters are not
        finite, it is N.  Parameters of runs that diverged are NaN.
    """
    size, states = tasks[0].reward.shape
    dtype = model.P.dtype
    td = torch.tensor([[algo == "td"] for algo in algos])  # (R, 1)
    masks = None if masks is None else torch.tensor(masks, dtype=dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    diverged_at = torch.zeros(len(algos), dtype=torch.int64)
    skipped = torch.zeros(len(algos), dtype=torch.bool)
    said = time.monotonic()
    for i in range(size):
        transition = np.stack([task_set.transition[i] for task_set in tasks])
        reward = np.stack([task_set.reward[i] for task_set in tasks])
        prompt = torch.from_numpy(joint_prompt(enumerated_columns(transition, reward, discount)))
        estimate = model(prompt, states)  # (R, n)
        value = estimate.detach()
        if not skip:
            diverged_at[(diverged_at == 0) & ~value.isfinite().all(dim=1)] = i + 1
        if diverged_at.all():
            break
        visits, transitions, return_sums = _statistics(batches, i, dtype)
        bootstrapped = visits * torch.from_numpy(reward) + discount * (transitions @ value[..., None])[..., 0]
        errors = torch.where(td, bootstrapped, return_sums) - visits * value
        optimizer.zero_grad()
        estimate.backward(-(errors / visits.sum(dim=1, keepdim=True)).to(dtype))
        _mask_and_clip([model.P.grad, model.Q.grad], masks, clip)
        if skip:
            skipped = ~_finite(model.P.grad, model.Q.grad)
        with _unchanged(model, optimizer, skipped):
            optimizer.step()
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            logger.info("%d of %d tasks", i + 1, size)
    with torch.no_grad():
        diverged_at[(diverged_at == 0) & (skipped | ~_finite(model.P, model.Q))] = size
        for parameter in (model.P, model.Q):
            parameter[diverged_at > 0] = torch.nan
    return diverged_at.numpy()


def _statistics(batches: Sequence[BatchStatistics], task: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Visits (R, n), transitions (R, n, n) and return sums (R, n) of the batches for one task."""
    return [
        torch.from_numpy(np.stack([getattr(run, name)[task] for run in batches])).to(dtype)
        for name in ("visits", "transitions", "return_sums")
    ]


def _finite(*tensors: torch.Tensor) -> torch.Tensor:
    """Whether all entries of a run are finite, (R,)."""
    return torch.stack([tensor.isfinite().flatten(1).all(dim=1) for tensor in tensors]).all(dim=0)


@contextmanager
def _unchanged(model: Transformers, optimizer: torch.optim.Adam, runs: torch.Tensor) -> Iterator[None]:
    """Restore the parameters and moments of some runs, (R,) bool, after an update.

    Adam's number of updates still increases for all runs, which matters only for the first hundreds of updates.
    """
    if not runs.any():
        yield
        return
    before = []
    for parameter in (model.P, model.Q):
        moments = [optimizer.state[parameter].get(name) for name in MOMENTS]
        before.append([None if tensor is None else tensor.detach()[runs].clone() for tensor in (parameter, *moments)])
    yield
    with torch.no_grad():
        for parameter, old_values in zip((model.P, model.Q), before, strict=True):
            tensors = [parameter, *(optimizer.state[parameter][name] for name in MOMENTS)]
            for tensor, old_value in zip(tensors, old_values, strict=True):
                tensor[runs] = 0 if old_value is None else old_value


def _mask_and_clip(gradients: list[torch.Tensor], masks: torch.Tensor | None, clip: float) -> None:
    """Set the gradient of entries that are not trained to zero, and clip each run's gradient to a norm, in place."""
    if masks is not None:
        for gradient, mask in zip(gradients, masks, strict=True):
            gradient *= mask
    if clip:
        norm = torch.sqrt(sum((gradient**2).sum(dim=(1, 2, 3), keepdim=True) for gradient in gradients))
        for gradient in gradients:
            gradient *= (clip / norm).clamp(max=1)
