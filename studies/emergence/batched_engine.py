"""The autograd engine for many runs side by side, with any of the parameters trained, in one layer or in all.

Runs are the leading axis of all tensors.  They don't mix: a run that diverges becomes NaN by itself.
"""

import logging
import time
from collections.abc import Sequence
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

# What Adam remembers of each parameter.
MOMENTS = ("exp_avg", "exp_avg_sq")


class Transformers(torch.nn.Module):
    """TF_L of R runs, with whole matrices P and Q (section "Linear Attention").

    Parameters
    ----------
    P, Q : (R, K, 2n+1, 2n+1) arrays; K is 1 for looped Transformers, L for layers of their own, and one run may do
        without the first axis
    depth : int, number of layers L
    scaled : bool, whether attention is divided by the context length
    dtype : torch.dtype
    """

    def __init__(self, P: np.ndarray, Q: np.ndarray, depth: int, scaled: bool, dtype=torch.float64):
        super().__init__()
        self.depth, self.scaled = depth, scaled
        self.P, self.Q = (torch.nn.Parameter(torch.tensor(array, dtype=dtype)) for array in (P, Q))

    def __getitem__(self, index: int) -> "Transformers":
        """The Transformer of one run, which takes prompts with any leading axes."""
        P, Q = (part[index].detach().numpy() for part in (self.P, self.Q))
        return Transformers(P, Q, self.depth, self.scaled, self.P.dtype)

    def forward(self, prompt: torch.Tensor, queries: int) -> torch.Tensor:
        """Value estimates (R, k) of the k queries at the end of prompts (R, 2n+1, m+k), a prompt a run."""
        Z = prompt.to(self.P.dtype)
        length = Z.shape[-1] - queries
        P, Q = ((1 / length if self.scaled else 1.0) * self.P).unbind(-3), self.Q.unbind(-3)
        for layer in range(self.depth):
            Z = linear_attention(Z, P[layer % len(P)], Q[layer % len(Q)], length)
        return -Z[..., -1, length:]

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Means over layers of P and Q, (R, 2n+1, 2n+1), scaled so that P ends with 1 as in Theta.

        A layer depends on the products of entries of P with entries of Q alone.  So P may be divided by a number that Q
        is multiplied by; and before the means are taken, each layer's sign is that with which its P ends above 0.
        """
        P, Q = (part.detach().numpy().astype(np.float64) for part in (self.P, self.Q))
        sign = np.sign(P[..., -1:, -1:])
        P, Q = (sign * P).mean(axis=-3), (sign * Q).mean(axis=-3)
        return P / P[..., -1:, -1:], Q * P[..., -1:, -1:]

    def weights(self) -> Weights:
        """Row u of P and block A of Q, (R, 2n) and (R, 2n, 2n), as ``matrices`` gives them."""
        P, Q = self.matrices()
        return Weights(P[..., -1, :-1], Q[..., :-1, :-1])


def initial_matrices(states: int, gain: float, layers: int, whole: bool, rng: np.random.Generator):
    """Xavier normal P and Q of one run, (layers, 2n+1, 2n+1): whole, or masked to Theta.

    One layer in Theta is that of ``initial_weights``.
    """
    width = 2 * states + 1
    if whole:
        return rng.normal(0, gain / np.sqrt(width), (2, layers, width, width))
    drawn = [initial_weights(states, gain, rng) for _ in range(layers)]
    return np.array([[one.P() for one in drawn], [one.Q() for one in drawn]])


def theta_masks(states: int) -> np.ndarray:
    """Which entries of P and of Q are trained in Theta, (2, 2n+1, 2n+1)."""
    ones = Weights(np.ones(2 * states), np.ones((2 * states, 2 * states)))
    masks = np.array([ones.P(), ones.Q()])
    masks[0, -1, -1] = 0
    return masks


def pretrain_runs(
    model: Transformers,
    algos: Sequence[str],
    tasks: Sequence[Tasks],
    unrolls: Sequence[BatchStatistics],
    discount: float,
    learning_rate: float,
    masks: np.ndarray | None = None,
    clip: float = 0,
    skip: bool = False,
) -> np.ndarray:
    """Pretrain all runs by Algorithm 1 or 2, in place.

    Returns an (R,) int array, the number of the first task on which a run stopped being finite, 0 if it did not.

    Parameters
    ----------
    model : Transformers of R runs
    algos : R times "td" or "mc"
    tasks, unrolls : of each of the R runs, N tasks taken in order
    discount : float, gamma
    learning_rate : float, Adam's alpha
    masks : (2, 2n+1, 2n+1) array, optional
        1 where an entry of P or of Q is trained, else 0; all are by default.
    clip : float, largest norm of a run's gradient; 0 leaves it as it is
    skip : bool, whether a run whose estimates or gradient are not finite goes on with the next task; it has diverged
        if they are not at the last one
    """
    size, states = tasks[0].reward.shape
    td = torch.tensor([[algo == "td"] for algo in algos])
    keep = None if masks is None else torch.tensor(masks, dtype=model.P.dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    diverged, said = torch.zeros(len(algos), dtype=torch.int64), time.monotonic()
    bad = torch.zeros(len(algos), dtype=torch.bool)
    for i in range(size):
        transition, reward = (np.stack([getattr(one, name)[i] for one in tasks]) for name in ("transition", "reward"))
        prompt = torch.from_numpy(joint_prompt(enumerated_columns(transition, reward, discount)))
        estimate = model(prompt, states)
        value = estimate.detach()
        if not skip:
            diverged[(diverged == 0) & ~value.isfinite().all(dim=1)] = i + 1
        if diverged.all():
            break
        visits, transitions, return_sums = (
            torch.from_numpy(np.stack([getattr(one, name)[i] for one in unrolls])).to(value.dtype)
            for name in ("visits", "transitions", "return_sums")
        )
        bootstrapped = visits * torch.from_numpy(reward) + discount * (transitions @ value[..., None])[..., 0]
        errors = torch.where(td, bootstrapped, return_sums) - visits * value
        optimizer.zero_grad()
        estimate.backward(-(errors / visits.sum(dim=1, keepdim=True)).to(value.dtype))
        _mask_and_clip([model.P.grad, model.Q.grad], keep, clip)
        if skip:
            bad = ~_finite(model.P.grad, model.Q.grad)
        with _kept(model, optimizer, bad):
            optimizer.step()
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            logger.info("%d of %d tasks", i + 1, size)
    with torch.no_grad():
        diverged[(diverged == 0) & (bad | ~_finite(model.P, model.Q))] = size
        for part in (model.P, model.Q):
            part[diverged > 0] = torch.nan
    return diverged.numpy()


def _finite(*parts: torch.Tensor) -> torch.Tensor:
    """Whether all entries of a run are finite, (R,)."""
    return torch.stack([part.isfinite().flatten(1).all(dim=1) for part in parts]).all(dim=0)


@contextmanager
def _kept(model: Transformers, optimizer: torch.optim.Adam, runs: torch.Tensor):
    """Leave the parameters and moments of some of the runs, (R,) bool, as they were before an update.

    Adam's number of updates goes on for all runs, which matters for its first hundreds only.
    """
    if not runs.any():
        yield
        return
    of = [(part, *(optimizer.state[part].get(name) for name in MOMENTS)) for part in (model.P, model.Q)]
    before = [[None if one is None else one.detach()[runs].clone() for one in group] for group in of]
    yield
    with torch.no_grad():
        for part, group in zip((model.P, model.Q), before, strict=True):
            after = [part, *(optimizer.state[part][name] for name in MOMENTS)]
            for one, kept in zip(after, group, strict=True):
                one[runs] = 0 if kept is None else kept


def _mask_and_clip(gradients: list[torch.Tensor], keep: torch.Tensor | None, clip: float) -> None:
    """Zero what is not trained, and shorten each run's gradient to the length ``clip``, in place."""
    if keep is not None:
        for gradient, mask in zip(gradients, keep, strict=True):
            gradient *= mask
    if clip:
        norm = torch.sqrt(sum((gradient**2).sum(dim=(1, 2, 3), keepdim=True) for gradient in gradients))
        for gradient in gradients:
            gradient *= (clip / norm).clamp(max=1)
