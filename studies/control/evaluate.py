"""Policy iteration on batches of transitions of the uniform policy, with all critics, in one place."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights
from studies.control.critics import Critic, iterate, lstd, observed_rewards, smoothed_model, theta_td, transformer
from studies.control.processes import Place, Processes, draw_processes, pair_paths, transition_counts, uniform


def main(
    place: dict,
    iterations: int,
    test_processes: int,
    tuning_processes: int,
    context_lengths: list[int],
    ridges: dict,
    pseudo_counts: dict,
    step_sizes: dict,
    updates: int,
    runs: list[Path],
    output: Path,
) -> None:
    """Write the mean values of the policies, and the chosen parameters, of each method and seed.

    Critics are compared after K ``iterations`` of evaluation and improvement on N ``test_processes``, with each of M
    ``context_lengths``, numbers of transitions in a batch.  Parameters are chosen on other processes, from grids of
    LSTD, of the smoothed model and of theta^TD with a number of ``updates``; a grid has the arguments of
    ``ictd.statistics.log_spaced``.  ``runs`` are files of pretrained weights.

    Arrays with a row for each method and seed:

    - method, seed : (R,) arrays; baselines have the seed 0 only
    - parameter : (R, M) array, for each number of transitions
    - mean_value : (R, M, K+1, N) array, the mean value over states of each policy, the uniform policy first

    ``optimal`` (N,) has the mean values of optimal policies.
    """
    place = Place(**place)
    test = draw_batches(place, test_processes, context_lengths, "test")
    tuning = draw_batches(place, tuning_processes, context_lengths, "tuning")
    numbers, rows = log_spaced(**pseudo_counts), []

    def add(method: str, critics: dict[float, Critic], parameters: np.ndarray, seed: int = 0) -> None:
        chosen = [critics[parameter] for parameter in parameters]
        values = mean_values(chosen, test, place.discount, iterations)
        rows.append({"method": method, "seed": seed, "parameter": parameters, "mean_value": values})

    def tuned(critics: dict[float, Critic]) -> np.ndarray:
        return best_parameters(critics, tuning, place.discount, iterations)

    baselines = {
        "lspi": {ridge: partial(lstd, ridge=ridge) for ridge in log_spaced(**ridges)},
        "smoothed": {number: partial(smoothed_model, pseudo_counts=number) for number in numbers},
        "theta_td": {size: partial(theta_td, step_size=size, updates=updates) for size in log_spaced(**step_sizes)},
        "rewards": {0.0: observed_rewards},
    }
    for method, critics in baselines.items():
        add(method, critics, tuned(critics))
    untuned = np.zeros(len(context_lengths))
    for path in runs:
        depth, u, A = load_arrays(path, "depth", "u", "A")
        best = None
        for seed, weights in enumerate(map(Weights, u, A)):
            pretrained = partial(transformer, weights=weights, depth=int(depth))
            grouped = {number: partial(pretrained, grouped=True, pseudo_counts=number) for number in [0.0, *numbers]}
            add(path.stem, {0.0: pretrained}, untuned, seed)
            add(f"{path.stem} grouped", grouped, untuned, seed)
            # All seeds have the number of pseudo-counts that is best for the first.
            best = tuned(grouped) if best is None else best
            add(f"{path.stem} grouped pseudo_counts", grouped, best, seed)
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    optimal = test.processes.mean_value(test.processes.optimal(place.discount), place.discount)
    save_arrays(output, **arrays, context_lengths=np.array(context_lengths), optimal=optimal)


class Batches(NamedTuple):
    """Processes, and the counts (N, S, A, S) of the transitions observed in each, for each context length."""

    processes: Processes
    counts: list[np.ndarray]


def draw_batches(place: Place, size: int, context_lengths: list[int], purpose: str) -> Batches:
    """Draw unseen processes, and one path of the uniform policy in each, whose first steps are the batches."""
    rng = place.generator(0, purpose)
    processes = draw_processes(place, size, rng)
    paths = pair_paths(processes, uniform(processes.reward.shape), 1, max(context_lengths), rng)[:, 0]
    counts = [transition_counts(paths, length, place.states, place.actions) for length in context_lengths]
    return Batches(processes, counts)


def best_parameters(critics: dict[float, Critic], tuning: Batches, discount: float, iterations: int) -> np.ndarray:
    """Parameters (M,) whose last policies have the greatest mean value; the largest of equally good ones."""
    parameters = np.array(list(critics)[::-1])
    values = []
    for parameter in parameters:
        everywhere = [critics[parameter]] * len(tuning.counts)
        values.append(mean_values(everywhere, tuning, discount, iterations)[:, -1].mean(axis=-1))
    return parameters[np.argmax(values, axis=0)]


def mean_values(critics: list[Critic], batches: Batches, discount: float, iterations: int) -> np.ndarray:
    """Mean values (M, K+1, N) over states of the policies, with one critic for each context length."""
    processes = batches.processes
    values = []
    for critic, counts in zip(critics, batches.counts, strict=True):
        policies = iterate(critic, counts, processes.reward, discount, iterations)
        values.append([processes.mean_value(policy, discount) for policy in policies])
    return np.array(values, np.float32)
