"""Check the statements on the gradients at theta^TD, Lemma 3, and follow J and J' as its depth grows: Theorem 2 and
Corollary 1, and the same where layers have parameters of their own."""

from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.theory.embeddings import embeddings
from ictd.theory.neu import GROUPS, expected_updates, neu
from ictd.theory.statements import OF_GRADIENTS, corollary_1, descent, sharper_neu, summarise, theorem_2
from ictd.transformer import theta_td

# Depths, log-spaced, at which the gradient for each layer's own parameters is taken.
SEPARATE = 24
AT_ONCE = 700_000
BOUNDS = {"td": theorem_2, "mc": corollary_1}


def depths_of_separate(depth: int) -> np.ndarray:
    """Depths (K,) at which the gradient for each layer's own parameters is taken, up to ``depth``."""
    return np.unique(np.geomspace(1, depth, SEPARATE).round().astype(int))


def main(
    env: str, states: int, tasks: int, update_depth: int, discount: float, env_options: dict, output: Path
) -> None:
    """Write both sides of each statement, summarised over tasks; and J and J' at each depth, with their bounds."""
    sampled = sample_tasks(env, states, tasks, generator(0, env, states, "theory"), **env_options)
    # As many groups in a pass as keep its arrays, of tasks times n^4 numbers, within some megabytes.
    group = tasks // GROUPS
    fitting = [k for k in range(1, GROUPS + 1) if GROUPS % k == 0 and k * group * states**4 <= AT_ONCE]
    groups = max(fitting, default=1)
    size = groups * group
    rows = [embeddings(theta_td(states), sampled[i : i + size], discount, update_depth) for i in range(0, tasks, size)]
    passes = [descent(part, groups) for part in rows]
    pairs = list(zip(rows, passes, strict=True))
    summaries = [summarise([statement(part, done) for part, done in pairs]) for statement in OF_GRADIENTS]
    whole = embeddings(theta_td(states), sampled, discount, update_depth)
    sharper = sharper_neu(whole)
    depths = depths_of_separate(update_depth)
    looped, separate = [], []
    for algo in BOUNDS:
        looped.append(neu(np.concatenate([done.updates[algo] for done in passes])))
        errors = whole.limiting_errors(algo)
        updates = (expected_updates(whole, errors[:, at], at).reshape(GROUPS, -1) for at in depths)
        separate.append([neu(update) for update in updates])
    fields = ("norm", "standard_error", "noise")
    save_arrays(
        output, statements=np.array([statement.__name__ for statement in OF_GRADIENTS]), layers=passes[0].layers,
        **{name: np.stack([summary[name] for summary in summaries]) for name in summaries[0]},
        algos=np.array(list(BOUNDS)), depths=depths,
        **{f"looped_{name}": np.stack([getattr(part, name) for part in looped]) for name in fields},
        **{f"separate_{name}": np.array([[getattr(at, name) for at in part] for part in separate]) for name in fields},
        bound=np.stack([bound(whole) for bound in BOUNDS.values()]),
        sharper=np.stack([sharper[algo] for algo in BOUNDS]),
    )  # fmt: skip
