"""Pretrain the main setting's runs under one reading of what the paper leaves open, and evaluate them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ictd.engine import Engine
from ictd.evaluation import draw_unseen_tasks
from ictd.literal import literal_estimates
from ictd.mrp import Tasks
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
    """Write u, A, P and Q of each algorithm and seed, as means over layers, and the MSVE on unseen tasks."""
    torch.set_num_threads(1)
    chosen = Reading(**reading)
    seeds, task_sets, batches = [], [], []
    for task_file, unroll_file in zip(tasks, unrolls, strict=True):
        for seed, task_set, batch, _ in stored_runs(env, states, chosen.initial_gain, task_file, unroll_file):
            seeds.append(seed)
            task_sets.append(task_set)
            batches.append(batch)
    rngs = [generator(seed, env, states, "weights") for seed in seeds]
    model, diverged_at = chosen.pretrain(algos, depth, discount, task_sets, batches, rngs)
    lengths = [ENUMERATED, *context_lengths]
    errors = []
    for run, seed in enumerate(seeds * len(algos)):
        longest = max(context_lengths)
        data = draw_unseen_tasks(seed, states, test_tasks, longest, discount, evaluation_env, **env_options)
        errors.append([data.error(literal_estimates(model[run], data.columns(length))) for length in lengths])
    weights, (P, Q), msve = model.weights(), model.matrices(), np.array(errors)
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
    layers : "looped", or "separate" for layers with their own parameters
    initial_gain : float, of the Xavier normal initial values
    learning_rate : float, Adam's alpha
    clip : float
        Largest norm of a gradient; 0 means no limit.
    precision : "float64" or "float32"
    corner : "drawn" or "one"
        Initial value of the last entry of P: drawn as the other entries, or 1.  Only for parameters "all".
    skip : bool
        Whether an update is skipped if its gradient is not finite.
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
    def compiled(self) -> bool:
        """Whether the compiled engine, which trains u and A of looped Transformers in float64, can be used."""
        own = self.parameters, self.layers, self.precision, self.skip
        return own == ("theta", "looped", "float64", False)

    def pretrain(
        self,
        algos: Sequence[str],
        depth: int,
        discount: float,
        tasks: Sequence[Tasks],
        batches: Sequence[BatchStatistics],
        rngs: Sequence[np.random.Generator],
    ) -> tuple[Transformers, np.ndarray]:
        """Pretrain S runs by each of some algorithms.

        Parameters
        ----------
        algos : names "td" or "mc"
        depth : int, number of layers L
        discount : float, gamma
        tasks : S Tasks, one for each seed
        batches : S BatchStatistics of these tasks
        rngs : S generators, which initial values are drawn from

        Returns
        -------
        model : Transformers of len(algos) S runs, those of the first algorithm first; NaN where they diverged
        diverged_at : (len(algos) S,) int array
            Number of the task at which a run diverged, 0 if it did not.
        """
        model = self._initial_model(len(algos), depth, tasks[0].states, rngs)
        names = np.repeat(algos, len(tasks))
        tasks, batches = list(tasks) * len(algos), list(batches) * len(algos)
        if self.compiled:
            return self._pretrain_compiled(model, names, tasks, batches, discount)
        masks = None if self.parameters == "all" else theta_masks(tasks[0].states)
        options = self.learning_rate, masks, self.clip, self.skip
        return model, pretrain_runs(model, names, tasks, batches, discount, *options)

    def _initial_model(self, copies: int, depth: int, states: int, rngs: Sequence[np.random.Generator]) -> Transformers:
        """Transformers with the initial values of S seeds, repeated for each algorithm."""
        layers = depth if self.layers == "separate" else 1
        whole = self.parameters == "all"
        start = [initial_matrices(states, self.initial_gain, layers, whole, rng) for rng in rngs]
        P, Q = np.stack(start * copies, axis=1)
        if self.corner == "one":
            P[..., -1, -1] = 1
        return Transformers(P, Q, depth, self.scaled_attention, getattr(torch, self.precision))

    def _pretrain_compiled(
        self,
        model: Transformers,
        algos: Sequence[str],
        tasks: Sequence[Tasks],
        batches: Sequence[BatchStatistics],
        discount: float,
    ) -> tuple[Transformers, np.ndarray]:
        """Pretrain R runs by the compiled engine, one after the other, from the weights of a model."""
        start = model.weights()
        u, A, diverged_at = [], [], []
        for run, algo in enumerate(algos):
            options = model.depth, discount, self.learning_rate, self.scaled_attention, self.clip
            engine = Engine(start[run], algo, *options)
            _, updates = engine.train(tasks[run].reward, batches[run], tasks[run].transition)
            trained = engine.weights()
            finite = np.isfinite(trained.u).all() and np.isfinite(trained.A).all()
            diverged = updates < len(tasks[run]) or not finite
            diverged_at.append(int(updates + finite) if diverged else 0)
            u.append(np.full_like(trained.u, np.nan) if diverged else trained.u)
            A.append(np.full_like(trained.A, np.nan) if diverged else trained.A)
        weights = Weights(np.stack(u), np.stack(A))
        trained_model = Transformers(weights.P()[:, None], weights.Q()[:, None], model.depth, self.scaled_attention)
        return trained_model, np.array(diverged_at)
