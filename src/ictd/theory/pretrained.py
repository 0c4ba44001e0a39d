"""J or J' where the theory says nothing: at pretrained weights, and between them and theta^TD."""

from pathlib import Path

import numpy as np

from ictd.anatomy import pattern_measures
from ictd.mrp import Tasks, sample_tasks
from ictd.rng import generator
from ictd.storage import load_arrays, save_arrays
from ictd.theory.embeddings import embeddings
from ictd.theory.neu import GROUPS, expected_updates, neu, norm
from ictd.transformer import Weights, theta_td

# Places on the straight line from the pretrained weights, 0, to theta^TD with their step size, 1.
POSITIONS = (0.0, 0.25, 0.5, 1.0)
# Depths, log-spaced, that pretrained layers are repeated to; as J changes by orders of magnitude, few tasks are enough.
DEPTHS = 6
FEW = 3 * GROUPS


def depths_of_repeated(depth: int, update_depth: int) -> np.ndarray:
    """Depths (K,) that ``depth`` pretrained layers are repeated to, that of pretraining among them."""
    return np.unique([depth, *np.geomspace(1, update_depth, DEPTHS).round().astype(int)])


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    pretrained_tasks: int,
    update_depth: int,
    discount: float,
    scaled_attention: bool,
    env_options: dict,
    weights: Path,
    output: Path,
) -> None:
    """Write J for multi-task TD, or J' for MC, in Theta^looped and in Theta; NaN for runs that diverged."""
    sampled = sample_tasks(env, states, pretrained_tasks, generator(0, env, states, "theory"), **env_options)
    scale = 1 / states if scaled_attention else 1.0
    pattern = theta_td(states).A

    def at(u: np.ndarray, A: np.ndarray, layers: int, part: Tasks = sampled) -> tuple:
        """Mean updates of groups, in Theta^looped (GROUPS, 2n + 4n^2) and in Theta (GROUPS, layers (2n + 4n^2))."""
        rows = embeddings(Weights(u, scale * A), part, discount, layers)
        updates = expected_updates(rows, rows.expected_errors(algo)[:, -1], layers, scale)
        return updates.sum(axis=1), updates.reshape(len(updates), -1)

    depths = depths_of_repeated(depth, update_depth)
    seeds, u, A = load_arrays(weights, "seeds", "u", "A")
    # The coefficient of theta^TD in A, whatever attention is divided by.
    coefficient = pattern_measures(Weights(u, A))["alpha"] * states
    with np.errstate(over="ignore", invalid="ignore"):
        line = [
            [*map(neu, at((1 - place) * u[i], (1 - place) * A[i] + place * coefficient[i] * pattern, depth))]
            for i in range(len(seeds))
            for place in POSITIONS
        ]
        repeated = [
            [[*map(norm, at(u[i], A[i], layers, sampled[:FEW]))] for layers in depths] for i in range(len(seeds))
        ]
        theta = [*map(norm, at(np.zeros(2 * states), pattern / scale, depth))]
    shape = (len(seeds), len(POSITIONS))
    save_arrays(
        output, seeds=seeds, positions=np.array(POSITIONS), layers=depths,
        **{
            f"{name}_{field}": np.reshape([getattr(pair[i], field) for pair in line], shape)
            for i, name in enumerate(("looped", "separate"))
            for field in ("norm", "standard_error", "noise")
        },
        repeated=np.array(repeated), theta_td=np.array(theta),
    )  # fmt: skip
