"""In-context policy evaluation on unseen tasks (section "In-Context Policy Evaluation Verification")."""

import numpy as np
import torch

from ictd.baselines import lstd
from ictd.checks import FINITE, FLAG, POSITIVE, checked, of, reals, whole, wholes
from ictd.prompts import enumerated_context, joint_prompt, sampled_context
from ictd.transformer import LinearTransformer
from ictd.unseen_tasks import DATA, UnseenTasks, batch_td_msve
from ictd.weights import Weights, theta_td

MODEL, LENGTHS = of(torch.nn.Module), wholes("K", 1, "M")


@checked(model=MODEL, context=reals("..., 2n+1, m"))
@torch.no_grad()
def estimates(model: LinearTransformer, context: np.ndarray) -> np.ndarray:
    """The Transformer's value estimates (..., n) of all states for contexts (..., 2n+1, m)."""
    states = (context.shape[-2] - 1) // 2
    return model(torch.from_numpy(joint_prompt(context)), queries=states).numpy()


@checked(model=MODEL, data=DATA, lengths=LENGTHS)
def transformer_msve(model: LinearTransformer, data: UnseenTasks, lengths: list[int]) -> np.ndarray:
    """MSVE (lengths, k) of the Transformer on sampled contexts."""
    contexts = [sampled_context(data.paths[:, : m + 1], data.tasks.reward, data.discount) for m in lengths]
    return np.stack([data.error(estimates(model, context)) for context in contexts])


@checked(model=MODEL, data=DATA)
def enumerated_msve(model: LinearTransformer, data: UnseenTasks) -> np.ndarray:
    """MSVE (k,) of the Transformer on the contexts it was trained with, eq. (Z0 redef)."""
    return data.error(estimates(model, enumerated_context(data.tasks.transition, data.tasks.reward, data.discount)))


@checked(data=DATA, depth=whole(1), lengths=LENGTHS, step_size=FINITE, ridge=POSITIVE, scaled=FLAG)
def baseline_msve(
    data: UnseenTasks, depth: int, lengths: list[int], step_size: float, ridge: float, scaled: bool = True
) -> dict[str, np.ndarray]:
    """MSVE (lengths, k) of theta^TD with a step size, of batch TD that it must equal, of LSTD, and of predicting zero.

    The step size is a factor of theta^TD's A.  ``depth`` is the number of the Transformer's layers and of batch TD's
    updates, and ``lengths`` are context lengths m.  For ``ridge`` see ``baselines.lstd``; ``scaled`` says whether
    attention is divided by the context length.
    """
    theta = theta_td(data.tasks.states)
    model = LinearTransformer(Weights(theta.u, step_size * theta.A), depth, scaled)
    contexts = [data.context(length) for length in lengths]
    return {
        "theta_td": transformer_msve(model, data, lengths),
        "batch_td": batch_td_msve(data, depth, contexts, np.array([step_size]), scaled)[:, 0],
        "lstd": data.error(np.stack([lstd(context, data.discount, ridge) for context in contexts])),
        "zero": np.broadcast_to(data.error(np.zeros_like(data.value)), (len(lengths), len(data.tasks))),
    }
