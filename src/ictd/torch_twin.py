"""The Transformer in Theta^looped, and Algorithms 1 and 2, as the paper writes them: on whole prompts, in torch.

This module is the slow twin of ``ictd.engine``.  The rule ``audit`` compares the two.
"""

from typing import Annotated, Any, Self

import numpy as np

from ictd.algorithms import Targets
from ictd.checks import Count, Flag, array, validate
from ictd.extras import missing_extra
from ictd.prompt import prompts_of
from ictd.transformer import Model, Weights, transformer_output

try:
    import torch
    from torch.optim.adam import adam
except ModuleNotFoundError as error:
    raise missing_extra("torch", error.name) from None

# Adam as in Kingma and Ba (ICLR 2015), without the options that torch adds.
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}


def real_tensor(name: str, value: object, sizes: dict) -> torch.Tensor:
    """Validate a tensor or an array of real numbers, and return it as a tensor."""
    if not isinstance(value, torch.Tensor):
        value = torch.tensor(np.ascontiguousarray(array("...")(name, value, sizes)))
    if value.is_complex() or value.dtype == torch.bool or not value.isfinite().all():
        raise ValueError(f"{name} has values that are not real and finite; give those that joint_prompt makes.")
    return value


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

    @validate
    def __init__(self, weights: Weights, depth: Count, scaled: Flag = True):
        super().__init__()
        self.depth = depth
        self.scaled = scaled
        self.u = torch.nn.Parameter(torch.tensor(weights.u))
        self.A = torch.nn.Parameter(torch.tensor(weights.A))

    @classmethod
    @validate
    def of(cls, model: Model) -> Self:
        """Make the Transformer on whole prompts that has the same values as a model."""
        return cls(model.weights, model.depth, model.scaled)

    def P(self) -> torch.Tensor:
        """P = [0, 0; u, 1]."""
        bottom = torch.cat([self.u, torch.ones_like(self.u[..., :1])], dim=-1)
        above = bottom.new_zeros(*bottom.shape[:-1], bottom.shape[-1] - 1, bottom.shape[-1])
        return torch.cat([above, bottom[..., None, :]], dim=-2)

    def Q(self) -> torch.Tensor:
        """Q = [A, 0; 0, 0]."""
        return torch.nn.functional.pad(self.A, (0, 1, 0, 1))

    @validate
    def forward(self, prompt: Annotated[torch.Tensor | Any, real_tensor], queries: Count | None = None) -> torch.Tensor:
        """Estimate the values of the query states of prompts.

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
        Z = prompt.to(self.u)
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
        P, Q = self.P()[..., None, :, :], self.Q()[..., None, :, :]
        estimates = transformer_output(Z, P, Q, self.depth, queries or 1, self.scaled)
        return estimates[..., 0] if queries is None else estimates


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


class TorchEngine:
    """Algorithms 1 and 2 by automatic differentiation on whole prompts.

    Its state is that of the Transformer and of Adam.  Parameters are those of ``ictd.engine.Engine``, except ``clip``.
    """

    def __init__(self, weights, depth, discount, learning_rate, scaled):
        torch.set_num_threads(1)  # The matrices are too small to share out.
        self.model = LinearTransformer(weights, depth, scaled)
        self.parameters = [*self.model.parameters()]
        self.adam = Adam(self.parameters, learning_rate)
        self.dimension = weights.dimension

    def train(
        self, rewards: np.ndarray, targets: Targets, columns: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[np.ndarray, int]:
        """Make one update for each task, as ``ictd.engine.Engine.train``.

        Parameters
        ----------
        rewards : (N, n) array
        targets : Targets of N tasks
        columns : (N, 2d+1, m) array, the context of each task
        queries : (N, n, d) array, features of the query states; one-hot by default
        """
        estimates = np.full_like(rewards, np.nan)
        for i, context in enumerate(columns):
            prompts = prompts_of(context, None if queries is None else queries[i])  # One for each query state.
            value = self.model(torch.from_numpy(prompts), queries=1)[:, 0]
            estimates[i] = value.detach().numpy()
            if not np.isfinite(estimates[i]).all():
                return estimates, i
            loss = batch_loss(value, targets, i)
            self.adam.step([*torch.autograd.grad(loss, self.parameters)])
        return estimates, len(rewards)

    def weights(self) -> Weights:
        """A copy of the parameters."""
        return Weights(self.model.u.detach().numpy(), self.model.A.detach().numpy())


def batch_loss(value: torch.Tensor, targets: Targets, task: int) -> torch.Tensor:
    """A loss whose gradient is that of an update, -(1/b) sum_s e_s grad TF_L(s), for estimates (n,) of one task.

    The errors e of ``ictd.algorithms`` have no gradient of their own: a target is a number (the semi-gradient).
    """
    estimate = value.detach()
    visits, sums, bootstrap = (torch.from_numpy(array[task]) for array in vars(targets).values())
    errors = sums + bootstrap @ estimate - visits * estimate
    return -(errors @ value) / visits.sum()
