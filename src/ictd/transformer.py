"""The looped linear Transformer, as the paper defines it, on whole prompts (section "Linear Attention")."""

import numpy as np
import torch

from ictd.checks import FLAG, array, instance, integer, optional, validate
from ictd.prompts import joint_prompt
from ictd.weights import Weights


def linear_attention(Z: torch.Tensor, P: torch.Tensor, Q: torch.Tensor, length: int) -> torch.Tensor:
    """A layer, Z + P Z M (Z' Q Z), whose M keeps all columns but the first ``length`` out of the context.

    P Z M (Z' Q Z) = (P (Z M Z') Q) Z: linear attention associates, and so costs O(m n^2), not O(m^2 n).
    """
    context = Z[..., :length]
    return Z + (P @ (context @ context.mT) @ Q) @ Z


class LinearTransformer(torch.nn.Module):
    """TF_L with parameters in Theta^looped.

    A layer is Z <- Z + P Z M (Z' Q Z) / m, with m the length of the context and M = diag(1, ..., 1, 0) keeping the
    query out (eq. (embedding evolution)); the division by m is a reading (docs/readings.md).  The output is minus the
    bottom right entry of Z_L.  ValueError for arguments of a wrong type, or a depth below 1.

    Parameters
    ----------
    weights : Weights
        Arrays u (..., 2n) and A (..., 2n, 2n); leading axes broadcast against those of the prompts.
    depth : int, number of layers L, at least 1
    scaled : bool
        Whether attention is divided by the context length.
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
        """Value estimates (...) of the queries of prompts (..., 2n+1, m+1), or (..., k) of prompts (..., 2n+1, m+k).

        ``queries``, when given, is the number k of columns at the end that M keeps out of the context.  No column
        changes on account of a query, so k queries in one prompt have the outputs that they have in k prompts.

        ValueError for prompts that do not have 2n+1 rows, or no context, or values that are not finite; and for a
        number of queries that is not the prompt's.  A query has zeros below phi(s), and where gamma is above 0 no other
        column has them in place of the next features; where gamma is 0 ``queries`` must be given.
        """
        Z = self._tensor(prompt)
        rows, length = self.u.shape[-1] + 1, Z.shape[-1] - (queries or 1) if Z.ndim else 0
        if Z.ndim < 2 or Z.shape[-2] != rows or length < 1:
            given, own = (Z.shape[-2] if Z.ndim > 1 else 0), rows // 2
            states = f", {given // 2} states, and the model has {own} states" if given % 2 and given != rows else ""
            raise ValueError(
                f"prompt has shape {tuple(Z.shape)}{states}; give (..., {rows}, m + {queries or 1}) with m above 0."
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
def estimates(model: torch.nn.Module, context: np.ndarray) -> np.ndarray:
    """A Transformer's value estimates (..., n) of all states for contexts (..., 2n+1, m), from whole prompts."""
    states = (context.shape[-2] - 1) // 2
    return model(torch.from_numpy(joint_prompt(context)), queries=states).numpy()
