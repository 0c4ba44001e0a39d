"""Pretrain the main setting's runs under one reading of the paper's open questions, and evaluate them."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ictd import engine, unrestricted
from ictd.evaluation import draw_unseen_tasks
from ictd.mrp import Tasks
from ictd.pretraining import PROGRESS_SECONDS
from ictd.prompt import ENUMERATED, enumerated_columns, joint_prompt
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.steps.tasks import stored_runs
from ictd.storage import save_arrays
from ictd.transformer import Weights, transformer_output
from studies.emergence.parameters import initial_matrices, mean_matrices, theta_masks

logger = logging.getLogger(__name__)


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
    returns: list[Path],
    output: Path,
) -> None:
    """Write u, A, P and Q of each algorithm and seed, as means over layers, and the MSVE on unseen tasks."""
    chosen = Reading(**reading)
    lengths = [ENUMERATED, *context_lengths]
    seeds, runs = [], []
    said = time.monotonic()
    for task_file, return_file in zip(tasks, returns, strict=True):
        for seed, task_set, batches in stored_runs(task_file, return_file):
            data = draw_unseen_tasks(
                seed, states, test_tasks, max(context_lengths), discount, evaluation_env, **env_options[evaluation_env]
            )
            prompts = [joint_prompt(data.columns(m)).astype(chosen.precision) for m in lengths]
            seeds.append(seed)
            runs.append([])
            for algo in algos:
                rng = generator(seed, env, states, "weights")
                P, Q, diverged_at = chosen.pretrain(algo, depth, discount, task_set, batches, rng)
                with np.errstate(over="ignore", invalid="ignore"):
                    estimates = [transformer_output(Z, P, Q, depth, states, chosen.scaled_attention) for Z in prompts]
                    msve = data.error(np.stack(estimates))
                runs[-1].append((*mean_matrices(P, Q), diverged_at, msve))
            if time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                logger.info("%d seeds", len(seeds))
    # Arrays (seeds, algorithms, ...) are written as (algorithms, seeds, ...).
    P, Q, diverged_at, msve = (
        np.array([[run[i] for run in of_seed] for of_seed in runs]).swapaxes(0, 1) for i in range(4)
    )
    save_arrays(
        output, scaled=np.array(chosen.scaled_attention), algos=np.array(algos), seeds=np.array(seeds),
        context_lengths=np.array(context_lengths), u=P[..., -1, :-1], A=Q[..., :-1, :-1], P=P, Q=Q,
        diverged_at=diverged_at, msve=msve[..., 1:, :], enumerated_msve=msve[..., 0, :],
    )  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """Answers to the questions that the paper leaves open.

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
        Whether an update is skipped if its estimates or its gradient are not finite.
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
    def in_theta(self) -> bool:
        """Whether ``ictd.engine``, which trains u and A of looped Transformers in float64, can be used."""
        own = self.parameters, self.layers, self.precision, self.skip
        return own == ("theta", "looped", "float64", False)

    def pretrain(
        self,
        algo: str,
        depth: int,
        discount: float,
        tasks: Tasks,
        batches: BatchStatistics,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Pretrain one run.

        Parameters
        ----------
        algo : "td" or "mc"
        depth : int, number of layers L
        discount : float, gamma
        tasks : Tasks
        batches : BatchStatistics of these tasks
        rng : numpy.random.Generator, for initial values

        Returns
        -------
        P, Q : (K, 2n+1, 2n+1) arrays, of K = 1 or L layers; NaN if the run diverged
        diverged_at : int
            Number, from 1, of the first task whose estimates or update are not finite, 0 if there is none.
        """
        P, Q = self.initial_matrices(tasks.states, depth, rng)
        train = self.pretrain_theta if self.in_theta else self.pretrain_matrices
        P, Q, updates = train(P, Q, algo, depth, discount, tasks, batches)
        finite = np.isfinite(P).all() and np.isfinite(Q).all()
        if finite and updates == len(tasks):
            return P, Q, 0
        return np.full_like(P, np.nan), np.full_like(Q, np.nan), int(updates + finite)

    def initial_matrices(self, states: int, depth: int, rng: np.random.Generator) -> np.ndarray:
        """Draw initial P and Q, (2, K, 2n+1, 2n+1)."""
        layers = depth if self.layers == "separate" else 1
        matrices = initial_matrices(states, self.initial_gain, layers, self.parameters == "all", rng)
        if self.corner == "one":
            matrices[0, :, -1, -1] = 1
        return matrices.astype(self.precision)

    def pretrain_theta(self, P, Q, algo, depth, discount, tasks, batches) -> tuple[np.ndarray, np.ndarray, int]:
        """Train u and A by ``ictd.engine``; return P, Q and the number of updates."""
        start = Weights(P[0, -1, :-1], Q[0, :-1, :-1])
        run = engine.Engine(start, algo, depth, discount, self.learning_rate, self.scaled_attention, self.clip)
        _, updates = run.train(tasks.reward, batches, tasks.transition)
        weights = run.weights()
        return weights.P()[None], weights.Q()[None], updates

    def pretrain_matrices(self, P, Q, algo, depth, discount, tasks, batches) -> tuple[np.ndarray, np.ndarray, int]:
        """Train P and Q by ``ictd.unrestricted``; return P, Q and the number of updates."""
        trained = 1.0 if self.parameters == "all" else theta_masks(tasks.states)[:, None]
        options = depth, discount, self.learning_rate, self.scaled_attention, trained, self.clip, self.skip
        run = unrestricted.Engine(P, Q, algo, *options)
        prompts = joint_prompt(enumerated_columns(tasks.transition, tasks.reward, discount))
        _, updates = run.train(tasks.reward, batches, prompts)
        return *run.matrices(), updates
