"""Sample tasks (Algorithms 3 and 4), and the steps of their batches (Algorithms 1 and 2)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ictd.algorithms import ALGORITHMS
from ictd.mrp import TaskDistribution, Tasks
from ictd.pipeline.grid import seeds_of
from ictd.sampling import BatchStatistics, sample_transitions, visits_of
from ictd.storage import joined_arrays, load_arrays, reading, save_arrays, stacked
from ictd.training_data import batch_streams, tasks_and_transitions


def main(env: str, states: int, seeds: str, tasks: int, batch_size: int, env_options: dict, output: Path) -> None:
    """Write transition probabilities, rewards, stationary distributions, and the transitions of the batches.

    Arrays have leading axes of seeds and tasks.  Most states have few successors.  So only the k of n^2 transitions
    that some task has are stored, as k columns; the array ``followers`` (n, n) marks them.
    """
    numbers = seeds_of(seeds)
    distribution = TaskDistribution(env, states, **env_options[env])
    drawn = (arrays_of(tasks_and_transitions(distribution, tasks, seed, batch_size)) for seed in numbers)
    arrays = stacked(drawn, len(numbers))
    followers = (arrays["transition"] > 0).any(axis=(0, 1))
    for name in ("transition", "transitions"):
        arrays[name] = arrays[name][:, :, followers]
    save_arrays(output, seeds=np.array(numbers), followers=followers, **arrays)


def arrays_of(blocks: Iterator[tuple[Tasks, np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays of all blocks of ``tasks_and_transitions``, by name, without the paths."""
    return joined_arrays([vars(tasks) | {"transitions": transitions} for tasks, transitions, _ in blocks])


def stored_runs(tasks: Path, returns: Path | None = None) -> Iterator[tuple[int, Tasks, BatchStatistics]]:
    """Yield each seed with its tasks and batches.

    Parameters
    ----------
    tasks : Path, a file of the step ``tasks``
    returns : Path, optional
        The file of the step ``returns`` for these tasks.  Without it, there are no sums of returns.

    Raises
    ------
    ValueError
        If a file is missing or damaged, or the seeds differ.
    """
    names = "seeds", "followers", "transition", "reward", "stationary", "transitions"
    seeds, followers, transition, reward, stationary, transitions = load_arrays(tasks, *names)
    return_sums = [None] * len(seeds)
    if returns is not None:
        own_seeds, return_sums = load_arrays(returns, "seeds", "return_sums")
        if not np.array_equal(seeds, own_seeds):
            raise ValueError(f"{returns} has other seeds than {tasks}; give those that the step returns made of it.")
    for i, seed in enumerate(seeds.tolist()):
        with reading(tasks):
            counts = all_transitions(transitions[i], followers)
            # Not validated: the step wrote valid data, and the checksums of the archive were compared.
            task_set = Tasks.unchecked(
                transition=all_transitions(transition[i], followers), reward=reward[i], stationary=stationary[i]
            )
            batches = BatchStatistics.unchecked(
                visits=visits_of(counts), transitions=counts, return_sums=return_sums[i], paths=None
            )
        yield seed, task_set, batches


def with_paths(algo: str, env: str, seed: int, tasks: Tasks, batches: BatchStatistics) -> BatchStatistics:
    """Batches with their paths, if the algorithm needs them; paths are drawn again.

    ValueError if they are not those that the transitions count.
    """
    if not ALGORITHMS[algo].paths:
        return batches
    for_steps, _ = batch_streams(env, tasks.states, seed)
    transitions, paths = sample_transitions(tasks, int(batches.visits[0].sum()), for_steps)
    if not np.array_equal(transitions, batches.transitions):
        raise ValueError(
            f"the steps of {env}, seed {seed}, cannot be drawn again; remove the folder tasks, and run again."
        )
    return replace(batches, paths=paths)


def all_transitions(columns: np.ndarray, followers: np.ndarray) -> np.ndarray:
    """Transitions (N, n, n) from columns (N, k), the entries where ``followers`` (n, n) is true."""
    transitions = np.zeros((len(columns), *followers.shape), columns.dtype)
    transitions[:, followers] = columns
    return transitions
