"""Write the values, baselines and weights of pretraining on sampled contexts as tables."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.mrp import sample_tasks
from ictd.report.tables import load_table
from ictd.rng import generator
from ictd.statistics import bootstrap_ratios, mean_score, standard_error
from ictd.storage import join_arrays, load_arrays, long_table, save_tables
from ictd.transformer import Weights
from ictd.weight_measures import (
    decomposition_measures,
    preconditioner,
    project_identifiable,
    share_outside,
    shortest_identifiable,
)
from studies.sampled_prompts.grid import Run
from studies.sampled_prompts.selection import BASELINES
from studies.sampled_prompts.traces import trace_measures

# Number of tasks over which transition matrices are averaged.
AVERAGED = 10_000
# Columns for the tuned parameters of the baselines, by the arrays that hold them.
TUNED = {
    "ridge": ["ridge"],
    "theta_td_step": ["theta_td_step"],
    "batch_td": ["batch_td_updates", "batch_td_step"],
    "td_lambda": ["td_lambda_decay", "td_lambda_step"],
    "ce_uniform": ["ce_uniform_pseudo_counts"],
    "ce_prior": ["ce_prior_pseudo_counts"],
    "lstd_prior": ["lstd_prior_pseudo_counts"],
}
# Denominators of the ratios with intervals over tasks; "best" is the baseline with the lowest mean.
COMPARED = ("lstd", "ce_uniform", "best")


def main(
    runs: list[Path],
    values: list[Path],
    paper: list[Path],
    baselines: list[Path],
    attention: list[Path],
    env_options: dict,
    output: Path,
) -> None:
    """Write the study's tables as CSV into ``output``.

    ``values`` has the MSVE of the runs, ``over_tasks`` intervals over tasks, ``baselines`` the MSVE of the baselines,
    ``tuned`` their parameters, ``weights`` the measures of weights at every snapshot, ``preconditioners`` the means
    over trials of [G; H] at the end, and ``attention`` the MSVE with each kind of attention.
    """
    baselines_by_name = {path.stem: path for path in baselines}
    folders = dict.fromkeys(path.parent for path in runs)
    tables = {
        "values": [
            *(values_table(path, "contexts") for path in values),
            *(values_table(path, "enumerated") for path in paper),
        ],
        "over_tasks": [over_tasks_table(path, baselines_by_name) for path in values],
        "baselines": [baselines_table(path) for path in baselines],
        "tuned": [tuned_table(path) for path in baselines],
        "weights": [weights_table(path, env_options) for path in runs],
        "preconditioners": [
            preconditioners_table([path for path in runs if path.parent == folder]) for folder in folders
        ],
        "attention": [load_table(path).assign(attention=path.stem) for path in attention],
    }
    save_tables(output, tables)


def values_table(path: Path, prompts: str) -> pd.DataFrame:
    """A row for each seed, snapshot and context length."""
    names = ("seeds", "tasks_seen", "context_lengths", "mean", "median")
    seeds, tasks_seen, lengths, mean, median = load_arrays(path, *names)
    env, discount = path.stem.rsplit("-", 1)
    run = Run.parse(path.parent.name, float(discount))
    axes = {"seed": seeds, "tasks_seen": tasks_seen, "context_length": lengths}
    columns = {"mean": mean, "median": median}
    return long_table(axes, columns, **run.columns, on_env=env, on_discount=discount, prompts=prompts)


def over_tasks_table(path: Path, baselines: dict[str, Path]) -> pd.DataFrame:
    """A row for each context length and baseline, with 95% BCa intervals over tasks.

    ``value`` is the MSVE, averaged over trials at the last snapshot, divided by the MSVE of the baseline.  ``low`` and
    ``high`` are the ends of its interval.  MC also has the ratio to TD, as the baseline "td".
    """
    run = Run.parse(path.parent.name)
    env, discount = path.stem.rsplit("-", 1)
    msve, lengths, tasks_seen = load_arrays(path, "msve_by_task", "context_lengths", "tasks_seen")
    methods, errors = load_arrays(baselines[f"{env}-{run.states}-{discount}"], "methods", "msve")
    error = dict(zip(methods, errors, strict=True))  # (lengths, tasks) each
    td_run = run._replace(target=run.target.replace("mc", "td"))
    td_path = path.parent.with_name(str(td_run)) / path.name
    has_td = td_run != run and td_path.exists()
    td_msve = load_arrays(td_path, "msve_by_task")[0] if has_td else None
    rows, pairs = [], []
    for k, length in enumerate(lengths):
        at_length = {name: error[name][k] for name in BASELINES}
        at_length["best"] = min(at_length.values(), key=mean_score)
        compared = {name: at_length[name] for name in COMPARED}
        if has_td:
            compared["td"] = td_msve[k]
        for name, other in compared.items():
            rows.append({"context_length": length, "tasks_seen": tasks_seen[-1], "baseline": name})
            pairs.append((msve[k], other))
    ratios = bootstrap_ratios(*np.stack(pairs, axis=-1))
    table = pd.DataFrame(rows).join(pd.DataFrame(ratios))
    return table.assign(**run.columns, on_env=env, on_discount=discount)


def baselines_table(path: Path) -> pd.DataFrame:
    """A row for each method and context length; ``standard_error`` is the standard error of the mean over tasks."""
    methods, lengths, msve = load_arrays(path, "methods", "context_lengths", "msve")
    errors = standard_error(np.moveaxis(msve, -1, 0))
    columns = {"mean": msve.mean(axis=-1), "standard_error": errors, "median": np.median(msve, axis=-1)}
    return long_table({"method": methods, "context_length": lengths}, columns, **place_of(path))


def tuned_table(path: Path) -> pd.DataFrame:
    """A row for each context length: the tuned parameters, and effective sizes of the samples of the posterior."""
    lengths, effective_sizes, *tuned = load_arrays(path, "context_lengths", "effective_sizes", *TUNED)
    names = [name for names_of_array in TUNED.values() for name in names_of_array]
    columns = dict(zip(names, np.column_stack(tuned).T, strict=True))
    columns["median_effective_size"] = np.median(effective_sizes, axis=-1)
    columns["least_effective_size"] = effective_sizes.min(axis=-1)
    return long_table({"context_length": lengths}, columns, **place_of(path))


def place_of(path: Path) -> dict[str, str]:
    """The environment, states and discount that a file of baselines is named after."""
    return dict(zip(("env", "states", "discount"), path.stem.split("-"), strict=True))


def weights_table(path: Path, env_options: dict) -> pd.DataFrame:
    """A row for each seed and snapshot: the measures of its weights."""
    seeds, tasks_seen, u, A = load_arrays(path, "seeds", "tasks_seen", "history_u", "history_A")
    run = Run.parse(path.parent.name)
    env, states, discount = run.place
    rng = generator(0, env, states, "beyond transitions")
    tasks = sample_tasks(env, states, AVERAGED, rng, **env_options[env])
    weights = Weights(u, A)
    measures = decomposition_measures(weights, discount)
    measures["outside_shortest"] = share_outside(shortest_identifiable(A, discount))
    measures |= trace_measures(weights, discount, tasks.transition.mean(axis=0))
    return long_table({"seed": seeds, "tasks_seen": tasks_seen}, measures, **run.columns)


def preconditioners_table(paths: list[Path]) -> pd.DataFrame:
    """A row for each entry of [G; H]: its mean over the trials of one setting."""
    run = Run.parse(paths[0].parent.name)
    u, A = join_arrays(paths, "history_u", "history_A")
    projected = project_identifiable(Weights(u[:, -1], A[:, -1]), run.discount)
    K = preconditioner(projected.A).mean(axis=0)  # (2n, n)
    axes = {"row": np.arange(1, K.shape[0] + 1), "column": np.arange(1, K.shape[1] + 1)}
    return long_table(axes, {"mean": K}, **run.columns)
