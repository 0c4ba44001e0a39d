"""Gather the values, yardsticks and weights of pretraining on sampled contexts."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.decomposition import decomposition_measures, preconditioner, seen, trace_measures
from ictd.environments import sample_tasks
from ictd.pipeline.storage import join_arrays, load_arrays
from ictd.pipeline.table_files import load_table, save_table
from ictd.statistics import bootstrap_means, interval
from ictd.streams import generator
from ictd.weights import Weights

TRAINED = ("algo", "env", "states", "depth", "discount")
# Tasks over which transition matrices are averaged.
AVERAGED = 10_000
# The yardsticks' parameters that were chosen on the tuning tasks, by the arrays that hold them.
CHOSEN = {
    "ridge": ["ridge"],
    "theta_td": ["theta_td_updates", "theta_td_step"],
    "batch_td": ["batch_td_updates", "batch_td_step"],
    "td_lambda": ["td_lambda_decay", "td_lambda_step"],
}


def main(
    runs: list[Path],
    values: list[Path],
    paper: list[Path],
    yardsticks: list[Path],
    attention: list[Path],
    env_options: dict,
    output: Path,
) -> None:
    """Write ``values``, ``over_tasks``, ``yardsticks``, ``chosen``, ``shapes``, ``preconditioners`` and ``attention``.

    All are CSV in ``output``.  ``over_tasks`` has intervals over tasks, ``chosen`` the yardsticks' parameters,
    ``shapes`` the measures of weights at every snapshot, ``preconditioners`` the means over trials of [G; H] at the
    end.
    """
    beside = {path.stem: path for path in yardsticks}
    folders = dict.fromkeys(path.parent for path in runs)
    found = [values_table(path, "contexts") for path in values] + [values_table(path, "enumerated") for path in paper]
    tables = {
        "values": pd.concat(found, ignore_index=True),
        "over_tasks": pd.concat([over_tasks_table(path, beside) for path in values], ignore_index=True),
        "yardsticks": pd.concat([yardsticks_table(path) for path in yardsticks], ignore_index=True),
        "chosen": pd.concat([chosen_table(path) for path in yardsticks], ignore_index=True),
        "shapes": pd.concat([shapes_table(path, env_options) for path in runs], ignore_index=True),
        "preconditioners": pd.concat(
            [preconditioners_table([path for path in runs if path.parent == folder]) for folder in folders],
            ignore_index=True,
        ),
        "attention": pd.concat([load_table(path).assign(attention=path.stem) for path in attention], ignore_index=True),
    }
    for name, table in tables.items():
        save_table(output / f"{name}.csv", table)


def named(path: Path) -> dict[str, str]:
    """The setting that a folder is named after; the paper's cells have no discount in their names."""
    return dict(zip(TRAINED, path.name.split("-"), strict=False))


def values_table(path: Path, prompts: str) -> pd.DataFrame:
    """A row a seed, snapshot and context length."""
    names = ("seeds", "tasks_seen", "context_lengths", "mean", "median")
    seeds, seen, lengths, mean, median = load_arrays(path, *names)
    env, discount = path.stem.rsplit("-", 1)
    axes = np.meshgrid(seeds, seen, lengths, indexing="ij")
    columns = {name: axis.ravel() for name, axis in zip(("seed", "tasks_seen", "context_length"), axes, strict=True)}
    where = {"discount": discount, **named(path.parent), "on_env": env, "on_discount": discount, "prompts": prompts}
    return pd.DataFrame({**where, **columns, "mean": mean.ravel(), "median": median.ravel()})


def over_tasks_table(path: Path, yardsticks: dict[str, Path]) -> pd.DataFrame:
    """A row a context length: 95% bootstrap intervals over tasks, of means over trials at the last snapshot.

    ``excess`` is the MSVE less LSTD's, ``gap`` the share of the gap between LSTD and the floor that is closed, NaN
    where there is no floor.
    """
    setting, (env, discount) = named(path.parent), path.stem.rsplit("-", 1)
    msve, lengths, seen = load_arrays(path, "of_tasks", "context_lengths", "tasks_seen")
    methods, others = load_arrays(yardsticks[f"{env}-{setting['states']}-{discount}"], "methods", "msve")
    lstd, bayes = (
        others[list(methods).index(name)] if name in methods else np.full_like(msve, np.nan)
        for name in ("lstd", "bayes")
    )
    rows = []
    for k, length in enumerate(lengths):
        own, ridge, floor = bootstrap_means(np.stack([msve[k], lstd[k], bayes[k]], axis=-1)).T
        (low, high), (least, most) = interval(own - ridge), interval((ridge - own) / (ridge - floor))
        ends = {"excess_low": low, "excess_high": high, "gap_low": least, "gap_high": most}
        rows.append({"context_length": length, "tasks_seen": seen[-1], **ends})
    return pd.DataFrame(rows).assign(**setting, on_env=env, on_discount=discount)


def yardsticks_table(path: Path) -> pd.DataFrame:
    """A row a method and context length."""
    methods, lengths, msve = load_arrays(path, "methods", "context_lengths", "msve")
    method, length = (axis.ravel() for axis in np.meshgrid(methods, lengths, indexing="ij"))
    columns = {"mean": msve.mean(axis=-1).ravel(), "median": np.median(msve, axis=-1).ravel()}
    return pd.DataFrame({**place(path), "method": method, "context_length": length, **columns})


def chosen_table(path: Path) -> pd.DataFrame:
    """A row a context length: what was chosen on the tuning tasks, and what the samples of the posterior are worth."""
    lengths, sizes, *chosen = load_arrays(path, "context_lengths", "effective_sizes", *CHOSEN)
    columns = {
        name: column
        for names, array in zip(CHOSEN.values(), chosen, strict=True)
        for name, column in zip(names, array.reshape(len(lengths), -1).T, strict=True)
    }
    worth = {"median_effective_size": np.median(sizes, axis=-1), "least_effective_size": sizes.min(axis=-1)}
    return pd.DataFrame({**place(path), "context_length": lengths, **columns, **worth})


def place(path: Path) -> dict[str, str]:
    """Environment, states and discount that a file of yardsticks is named after."""
    return dict(zip(("env", "states", "discount"), path.stem.split("-"), strict=True))


def shapes_table(path: Path, env_options: dict) -> pd.DataFrame:
    """A row a seed and snapshot: the measures of its weights."""
    seeds, seen, u, A = join_arrays([path], "seeds", "tasks_seen", "history_u", "history_A")
    setting = named(path.parent)
    env, states, discount = setting["env"], int(setting["states"]), float(setting["discount"])
    rng = generator(0, env, states, "beyond transitions")
    transition = sample_tasks(env, states, AVERAGED, rng, **env_options.get(env, {})).transition.mean(axis=0)
    measures = decomposition_measures(Weights(u, A), discount) | trace_measures(Weights(u, A), discount, transition)
    seed, tasks = (axis.ravel() for axis in np.meshgrid(seeds, seen, indexing="ij"))
    columns = {name: measure.ravel() for name, measure in measures.items()}
    return pd.DataFrame({**setting, "seed": seed, "tasks_seen": tasks, **columns})


def preconditioners_table(paths: list[Path]) -> pd.DataFrame:
    """A row an entry of [G; H]: its mean over the trials of one setting."""
    setting = named(paths[0].parent)
    u, A = join_arrays(paths, "history_u", "history_A")
    K = preconditioner(seen(Weights(u[:, -1], A[:, -1]), float(setting["discount"])).A).mean(axis=0)
    row, column = (index.ravel() for index in np.indices(K.shape))
    return pd.DataFrame({**setting, "row": row + 1, "column": column + 1, "mean": K.ravel()})
