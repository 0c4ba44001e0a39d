"""Evaluate yardsticks on sampled contexts of unseen tasks, with their parameters tuned on others."""

from pathlib import Path

import numpy as np

from ictd import yardsticks
from ictd.pipeline.storage import save_arrays
from ictd.streams import generator
from ictd.unseen_tasks import log_spaced, validation_set


def main(
    env: str,
    states: int,
    discount: float,
    depth: int,
    test_tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    updates: list[int],
    ridges: dict,
    bayes_samples: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write the MSVE (methods, lengths, tasks), and what was chosen for each length.

    ``theta_td`` is batch TD with as many updates as the Transformer has layers, ``batch_td`` with the best number.
    Only Boyan's chains have a Bayesian floor.
    """
    data, tuning = (
        validation_set(0, states, size, max(context_lengths), discount, env, purpose, **env_options)
        for purpose, size in (("beyond", test_tasks), ("beyond tuning", tuning_tasks))
    )
    sizes = log_spaced(**step_sizes)
    error, chosen = {"zero": np.broadcast_to(data.error(0.0), (len(context_lengths), test_tasks))}, {}
    error["lstd"], chosen["ridge"] = yardsticks.tuned_lstd(data, tuning, context_lengths, log_spaced(**ridges))
    error["theta_td"], chosen["theta_td"] = yardsticks.tuned_batch_td(data, tuning, context_lengths, sizes, [depth])
    error["batch_td"], chosen["batch_td"] = yardsticks.tuned_batch_td(data, tuning, context_lengths, sizes, updates)
    error["td_lambda"], chosen["td_lambda"] = yardsticks.tuned_td_lambda(
        data, tuning, context_lengths, sizes[sizes <= 1]
    )
    error["certainty_equivalence"] = yardsticks.certainty_equivalence(data, context_lengths)
    chosen["effective_sizes"] = np.full((len(context_lengths), test_tasks), np.nan)
    if env == "boyan":
        rng = generator(0, env, states, "beyond bayes")
        posterior_mean, least, chosen["effective_sizes"] = yardsticks.bayes(data, context_lengths, bayes_samples, rng)
        error |= {"posterior_mean": posterior_mean, "bayes": least}
    save_arrays(
        output, methods=np.array(list(error)), context_lengths=np.array(context_lengths),
        msve=np.stack(list(error.values())), **chosen,
    )  # fmt: skip
