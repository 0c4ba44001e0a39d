"""Check the statements on the gradients at theta^TD, Lemma 3, and follow J and J' as its depth grows: Theorem 2 and
Corollary 1, and the same where layers have parameters of their own."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from ictd.environments import sample_tasks
from ictd.steps import run
from ictd.storage import save_arrays
from ictd.streams import generator
from ictd.theory.embeddings import embeddings
from ictd.theory.neu import GROUPS, expected_updates, neu
from ictd.theory.statements import OF_GRADIENTS, corollary_1, descent, sharper_neu, summarise, theorem_2
from ictd.weights import theta_td

# Depths, log-spaced, at which the gradient for each layer's own parameters is taken.
SEPARATE = 24


def main(env: str, states: int, tasks: int, depth: int, discount: float, env_options: dict, output: Path) -> None:
    """Write both sides of each statement, summarised over tasks, at each layer; and J and J', with their bounds."""
    start = theta_td(states)
    sampled = sample_tasks(env, states, tasks, generator(0, env, states, "theory"), **env_options)
    edges = np.linspace(0, tasks, GROUPS + 1).astype(int)
    rows = [embeddings(start, sampled[first:stop], discount, depth) for first, stop in pairwise(edges)]
    passes = [descent(part) for part in rows]
    pairs, algos = list(zip(rows, passes, strict=True)), list(passes[0].updates)
    summaries = [summarise([statement(part, done.norms) for part, done in pairs]) for statement in OF_GRADIENTS]
    depths = np.unique(np.geomspace(1, depth, SEPARATE).round().astype(int))
    looped = [neu(np.stack([part.updates[algo] for part in passes])) for algo in algos]
    separate = [
        neu(expected_updates(start, sampled, algo, at, discount).reshape(GROUPS, -1)).norm
        for algo in algos
        for at in depths
    ]
    bounds = {"td": theorem_2, "mc": corollary_1}
    save_arrays(
        output, statements=np.array([statement.__name__ for statement in OF_GRADIENTS]),
        **{name: np.stack([summary[name] for summary in summaries]) for name in summaries[0]},
        algos=np.array(algos),
        **{name: np.stack([getattr(part, name) for part in looped]) for name in ("norm", "standard_error", "noise")},
        bound=np.stack([np.mean([bounds[algo](part) for part in rows], axis=0) for algo in algos]),
        sharper=np.stack([np.mean([sharper_neu(part)[algo] for part in rows], axis=0) for algo in algos]),
        depths=depths, separate=np.reshape(separate, (len(algos), len(depths))),
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
