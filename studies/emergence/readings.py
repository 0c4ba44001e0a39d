"""Pretrain the main setting's runs under one reading of what the paper leaves open, and evaluate them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ictd.evaluation import draw_unseen_tasks
from ictd.literal import literal_estimates
from ictd.mrp import Tasks
from ictd.pretraining import Divergence, pretrain_history
from ictd.prompt import ENUMERATED
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.steps.training_data import stored_runs
from ictd.storage import save_arrays
from ictd.transformer import Weights
from studies.emergence.batched_engine import Transformers, initial_matrices, pretrain_runs, theta_masks


def main(
    algos: list[str],
    env: str,
    states: int,
    depth: int,
    discount: float,
    reading: dict,
    evaluation_env: str,
    env_options: dict,
    test_tasks: int,
    context_lengths: list[int],
    tasks: list[Path],
    unrolls: list[Path],
    output: Path,
) -> None:
    """Write for each algorithm and seed u and A, as means over layers, P and Q, and the MSVE on unseen tasks."""
    torch.set_num_threads(1)
    one = Reading(**reading)
    groups = zip(tasks, unrolls, strict=True)
    runs = [material for pair in groups for material in stored_runs(env, states, one.initial_gain, *pair)]
    seeds, task_sets, batches, _ = zip(*runs, strict=True)
    starts = [generator(seed, env, states, "weights") for seed in seeds]
    model, diverged_at = one.pretrain(algos, depth, discount, task_sets, batches, starts)
    longest, lengths, msve = max(context_lengths), [ENUMERATED, *context_lengths], []
    for i, seed in enumerate(seeds * len(algos)):
        data = draw_unseen_tasks(seed, states, test_tasks, longest, discount, evaluation_env, **env_options)
        msve.append([data.error(literal_estimates(model[i], data.columns(length))) for length in lengths])
    weights, (P, Q), msve = model.weights(), model.matrices(), np.array(msve)
    arrays = {
        "u": weights.u, "A": weights.A, "P": P, "Q": Q, "diverged_at": diverged_at,
        "msve": msve[:, 1:], "enumerated_msve": msve[:, 0],
    }  # fmt: skip
    save_arrays(
        output, scaled=np.array(model.scaled), algos=np.array(algos), seeds=np.array(seeds),
        context_lengths=np.array(context_lengths),
        **{name: array.reshape(len(algos), len(seeds), *array.shape[1:]) for name, array in arrays.items()},
    )  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open.

    Parameters
    ----------
    scaled_attention : bool
        Whether attention is divided by the context length.
    parameters : "theta" for u and A, or "all" for all of P and Q
    layers : "looped", or "separate" for parameters of their own
    initial_gain : float, of the Xavier normal initial values
    learning_rate : float, Adam's alpha
    clip : float, largest norm of a gradient, 0 for any
    precision : "float64" or "float32"
    corner : "drawn" as all other entries, or "one", the last entry of P where all of P and Q are trained
    skip : bool, whether an update is left out where its gradient is not finite
    """

    scaled_attention: bool
    parameters: str
    layers: str
    initial_gain: float
    learning_rate: float
    clip: float
    precision: str
    corner: str
    skip: bool

    @property
    def collapses(self) -> bool:
        """Whether the fused engine can carry it out."""
        own = self.parameters, self.layers, self.clip, self.precision, self.skip
        return own == ("theta", "looped", 0, "float64", False)

    def pretrain(
        self,
        algos: Sequence[str],
        depth: int,
        discount: float,
        tasks: Sequence[Tasks],
        unrolls: Sequence[BatchStatistics],
        generators: Sequence[np.random.Generator],
    ) -> tuple[Transformers, np.ndarray]:
        """Pretrain S runs by each of some algorithms: "td", "mc" or both.

        ``tasks``, ``unrolls`` and ``generators`` are of each of S seeds; initial values come from the generators.
        ``depth`` is L and ``discount`` gamma.

        The Transformers are of len(algos) S runs, those of the first algorithm first; NaN where they diverged.  The
        (len(algos) S,) int array has the number of the task on which a run diverged, 0 if it did not.
        """
        states, scaled = tasks[0].states, self.scaled_attention
        layers, whole = depth if self.layers == "separate" else 1, self.parameters == "all"
        start = [initial_matrices(states, self.initial_gain, layers, whole, rng) for rng in generators]
        P, Q = np.stack(start * len(algos), axis=1)
        if self.corner == "one":
            P[..., -1, -1] = 1
        model = Transformers(P, Q, depth, scaled, getattr(torch, self.precision))
        names, tasks, unrolls = np.repeat(algos, len(tasks)), list(tasks) * len(algos), list(unrolls) * len(algos)
        if not self.collapses:
            masks = None if whole else theta_masks(states)
            options = self.learning_rate, masks, self.clip, self.skip
            return model, pretrain_runs(model, names, tasks, unrolls, discount, *options)
        found, diverged_at = [], []
        for i, algo in enumerate(names):
            start = model.weights()[i]
            arguments = (algo, depth, discount, self.learning_rate, start.u, start.A)
            try:
                found.append(pretrain_history(tasks[i], unrolls[i], *arguments, scaled=scaled).weights[-1])
                diverged_at.append(0)
            except Divergence as divergence:
                found.append(divergence.history.weights[-1])
                diverged_at.append(divergence.task)
        trained = Weights(np.stack([one.u for one in found]), np.stack([one.A for one in found]))
        return Transformers(trained.P()[:, None], trained.Q()[:, None], depth, scaled), np.array(diverged_at)
