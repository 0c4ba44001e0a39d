"""The Transformer, and Algorithms 1 and 2, as the paper writes them: on whole prompts, in torch.

A layer of TF_L maps a prompt Z (2d+1, m+1) to (section "Linear Attention", eq. (embedding evolution))

    Z + (1/m) P Z M (Z' Q Z),    M = diag(1, ..., 1, 0),

where the mask M has nothing to do with the averages M of ``ictd.prompt``.  The output TF_L is minus the bottom right
entry of Z_L.  The division by m is a reading (docs/readings.md).

This module is the slow twin of ``ictd.transformer`` and ``ictd.engine``.  The rule ``audit`` compares the two.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from ictd.checks import FLAG, array, instance, integer, optional, validate
from ictd.extras import missing_extra
from ictd.mrp import Tasks
from ictd.prompt import joint_prompt, prompts_of
from ictd.sampling import BatchStatistics
from ictd.training_data import EnumeratedPrompts
from ictd.transformer import Weights

try:
    import torch
    from torch.optim.adam import adam
except ModuleNotFoundError as error:
    raise missing_extra("torch", error.name) from None

# Adam as in Kingma and Ba (ICLR 2015), without the options that torch adds.
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}


def linear_attention(Z: torch.Tensor, P: torch.Tensor, Q: torch.Tensor, length: int) -> torch.Tensor:
    """Apply one layer, Z + P Z M (Z' Q Z), where M selects the first ``length`` columns.

    The product is evaluated as (P (Z M Z') Q) Z, which costs O(m n^2) in place of O(m^2 n).
    """
    context = Z[..., :length]
    return Z + (P @ (context @ context.mT) @ Q) @ Z


class LinearTransformer(torch.nn.Module):
    """TF_L with parameters in Theta^looped, on whole prompts.

    Parameters
    ----------
    weights : Weights
        Arrays u (..., 2d) and A (..., 2d, 2d); leading axes broadcast against those of the prompts.
    depth : int, number of layers L, at least 1
    scaled : bool
        Whether attention is divided by the context length m.

    Raises
    ------
    ValueError
        If an argument has the wrong type, or the depth is below 1.
    """

    @validate(weights=instance(Weights), depth=integer(1), scaled=FLAG)
    def __init__(self, weights: Weights, depth: int, scaled: bool = True):
        super().__init__()
        self.depth = depth
        self.scaled = scaled
        self.u = torch.nn.Parameter(torch.tensor(weights.u))
        self.A = torch.nn.Parameter(torch.tensor(weights.A))

    def P(self) -> torch.Tensor:
        """P = [0, 0; u, 1]."""
        bottom = torch.cat([self.u, torch.ones_like(self.u[..., :1])], dim=-1)
        above = bottom.new_zeros(*bottom.shape[:-1], bottom.shape[-1] - 1, bottom.shape[-1])
        return torch.cat([above, bottom[..., None, :]], dim=-2)

    def Q(self) -> torch.Tensor:
        """Q = [A, 0; 0, 0]."""
        return torch.nn.functional.pad(self.A, (0, 1, 0, 1))

    @validate(queries=optional(integer(1)))
    def forward(self, prompt: torch.Tensor | np.ndarray, queries: int | None = None) -> torch.Tensor:
        """Estimate the values of the query states of prompts.

        The k query columns at the end of a prompt do not change other columns, because M leaves them out of the
        context.  So k queries in one prompt have the same outputs as in k prompts.

        Parameters
        ----------
        prompt : (..., 2d+1, m+k) array or tensor
        queries : int, optional
            Number k of query columns.  By default there is one query, and the output has no axis for it.  With a
            discount of 0, ``queries`` must be given, as context columns look like queries then.

        Returns
        -------
        estimates : (..., k) tensor, or (...) by default

        Raises
        ------
        ValueError
            If the prompt does not have 2d+1 rows, has no context, has values that are not finite, or does not end in
            exactly k columns [phi(s); 0; 0].
        """
        Z = self._tensor(prompt)
        rows, length = self.u.shape[-1] + 1, Z.shape[-1] - (queries or 1) if Z.ndim else 0
        if Z.ndim < 2 or Z.shape[-2] != rows or length < 1:
            given, own = (Z.shape[-2] if Z.ndim > 1 else 0), rows // 2
            sizes = f", {given // 2} features, and the model has {own}" if given % 2 and given != rows else ""
            raise ValueError(
                f"prompt has shape {tuple(Z.shape)}{sizes}; give (..., {rows}, m + {queries or 1}) with m above 0."
            )
        first, last = (Z[..., rows // 2 : -1, column].any(dim=-1) for column in (0, length - 1))
        if Z[..., rows // 2 :, length:].any() or not (last if queries is None else last == first).all():
            raise ValueError(
                f"prompt does not end in just {queries or 1} columns [phi(s); 0; 0]; give their number as queries."
            )
        P, Q = (1 / length if self.scaled else 1.0) * self.P(), self.Q()
        for _ in range(self.depth):
            Z = linear_attention(Z, P, Q, length)
        return -Z[..., -1, -1] if queries is None else -Z[..., -1, length:]

    def _tensor(self, prompt) -> torch.Tensor:
        """A prompt as a tensor of the parameters' type, on their device."""
        if not isinstance(prompt, torch.Tensor):
            prompt = torch.tensor(np.ascontiguousarray(array("...")("prompt", prompt, {})))
        if prompt.is_complex() or prompt.dtype == torch.bool or not prompt.isfinite().all():
            raise ValueError("prompt has values that are not real and finite; give those that joint_prompt makes.")
        return prompt.to(self.u)


@torch.no_grad()
def literal_estimates(model: torch.nn.Module, columns: np.ndarray, queries: np.ndarray | None = None) -> np.ndarray:
    """Estimate the values of query states by a Transformer on whole prompts.

    Parameters
    ----------
    model : LinearTransformer, or a module with the same ``forward``
    columns : (..., 2d+1, m) array, contexts
    queries : (k, d) or (..., k, d) array, optional
        Features of the query states; by default all d one-hot features.

    Returns
    -------
    estimates : (..., k) array
    """
    prompt = joint_prompt(columns, queries)
    return model(torch.from_numpy(prompt), queries=prompt.shape[-1] - columns.shape[-1]).numpy()


class Adam:
    """Adam's state, with the steps of ``torch.optim.Adam``, whose import takes a second."""

    def __init__(self, parameters: list[torch.Tensor], learning_rate: float):
        self.parameters, self.learning_rate = parameters, learning_rate
        # Means, squares, no maxima, and numbers of updates.
        mean, square = ([*map(torch.zeros_like, parameters)] for _ in range(2))
        self.state = mean, square, [], [torch.tensor(0.0) for _ in parameters]

    @torch.no_grad()
    def step(self, gradient: list[torch.Tensor]) -> None:
        """Make a descent step along a gradient, which has one tensor for each parameter."""
        adam(self.parameters, gradient, *self.state, foreach=False, lr=self.learning_rate, **ADAM)


class AutogradEngine:
    """Algorithms 1 and 2 by automatic differentiation on whole prompts.

    Its state is that of the Transformer and of Adam.  Parameters are those of ``ictd.engine.Engine``, except ``clip``.
    """

    def __init__(self, weights, algo, depth, discount, learning_rate, scaled):
        torch.set_num_threads(1)  # The matrices are too small to share out.
        self.model = LinearTransformer(weights, depth, scaled)
        self.parameters = [*self.model.parameters()]
        self.adam = Adam(self.parameters, learning_rate)
        self.algo, self.dimension, self.discount = algo, weights.dimension, discount

    def train(
        self, rewards: np.ndarray, batches: BatchStatistics, prompts: Iterable[np.ndarray]
    ) -> tuple[np.ndarray, int]:
        """Make one update for each task, as ``ictd.engine.Engine.train``.

        Parameters
        ----------
        rewards : (N, n) array
        batches : BatchStatistics of N tasks
        prompts : N arrays (n, 2d+1, m+1), for each task one prompt for each query state (``prompts_of``)
        """
        estimates = np.full_like(rewards, np.nan)
        for i, separate in enumerate(prompts):
            state, following, mean_return = batch_of(batches, i)  # (b,) each
            reward = torch.from_numpy(rewards[i])[state]  # (b,)
            value = self.model(torch.from_numpy(separate), queries=1)[:, 0]
            estimates[i] = value.detach().numpy()
            if not np.isfinite(estimates[i]).all():
                return estimates, i
            target = reward + self.discount * value.detach()[following] if self.algo == "td" else mean_return
            # The target has no gradient: this is the semi-gradient of Algorithm 1, and the gradient of Algorithm 2.
            loss = 0.5 * ((target - value[state]) ** 2).mean()
            self.adam.step([*torch.autograd.grad(loss, self.parameters)])
        return estimates, len(rewards)

    def weights(self) -> Weights:
        """A copy of the parameters."""
        return Weights(self.model.u.detach().numpy(), self.model.A.detach().numpy())


def enumerated_prompts(tasks: Tasks, discount: float) -> Iterator[np.ndarray]:
    """Prompts (n, 2d+1, n+1) of each task, one for each query state, with the enumerated context.

    If the tasks have a behaviour, the columns have the weights of the states that the behaviour visits.
    """
    for i, columns in enumerate(EnumeratedPrompts().columns(tasks, discount)):
        yield prompts_of(columns, None if tasks.features is None else tasks.features[i])


def batch_of(batches: BatchStatistics, task: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States S_t (b,) of the batch of one task, in some order, with their successors and returns.

    Each visit gets the mean return of its state, because the update depends on the sum of the returns only.
    """
    counts = batches.transitions[task]
    state, following = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
    mean_return = batches.return_sums[task] / np.maximum(batches.visits[task], 1)
    return torch.from_numpy(state), torch.from_numpy(following), torch.from_numpy(mean_return[state])
