"""Gather the values, baselines and weights of pretraining on sampled contexts."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures, preconditioner, project_identifiable
from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.statistics import bootstrap_means, interval
from ictd.storage import join_arrays, load_arrays
from ictd.tables import load_table, long_table, save_tables
from ictd.transformer import Weights
from studies.sampled_prompts.grid import SETTING
from studies.sampled_prompts.selection import BASELINES
from studies.sampled_prompts.traces import trace_measures

# Tasks over which transition matrices are averaged.
AVERAGED = 10_000
# The baselines' parameters that were chosen on the tuning tasks, by the arrays that hold them.
CHOSEN = {
    "ridge": ["ridge"],
    "theta_td": ["theta_td_updates", "theta_td_step"],
    "batch_td": ["batch_td_updates", "batch_td_step"],
    "td_lambda": ["td_lambda_decay", "td_lambda_step"],
    "ce_uniform": ["ce_uniform_steps"],
    "ce_prior": ["ce_prior_steps"],
    "lstd_prior": ["lstd_prior_steps"],
}
# What the intervals over tasks are beside: single baselines, and the one that is best in the mean.
BESIDE = ("lstd", "ce_uniform", "best")


def main(
    runs: list[Path],
    values: list[Path],
    paper: list[Path],
    baselines: list[Path],
    attention: list[Path],
    env_options: dict,
    output: Path,
) -> None:
    """Write ``values``, ``over_tasks``, ``baselines``, ``chosen``, ``shapes``, ``preconditioners`` and ``attention``.

    All are CSV in ``output``.  ``over_tasks`` has intervals over tasks, ``chosen`` the baselines' parameters,
    ``shapes`` the measures of weights at every snapshot, ``preconditioners`` the means over trials of [G; H] at the
    end.
    """
    beside = {path.stem: path for path in baselines}
    folders = dict.fromkeys(path.parent for path in runs)
    made = {
        "values": [values_table(path, "contexts") for path in values]
        + [values_table(path, "enumerated") for path in paper],
        "over_tasks": [over_tasks_table(path, beside) for path in values],
        "baselines": [baselines_table(path) for path in baselines],
        "chosen": [chosen_table(path) for path in baselines],
        "shapes": [shapes_table(path, env_options) for path in runs],
        "preconditioners": [
            preconditioners_table([path for path in runs if path.parent == folder]) for folder in folders
        ],
        "attention": [load_table(path).assign(attention=path.stem) for path in attention],
    }
    save_tables(output, made)


def named(path: Path) -> dict[str, str]:
    """The setting that a folder is named after; the paper's cells have no discount in their names."""
    return dict(zip(["algo", *SETTING], path.name.split("-"), strict=False))


def values_table(path: Path, prompts: str) -> pd.DataFrame:
    """A row a seed, snapshot and context length."""
    *axes, mean, median = load_arrays(path, "seeds", "tasks_seen", "context_lengths", "mean", "median")
    env, discount = path.stem.rsplit("-", 1)
    where = {"discount": discount, **named(path.parent), "on_env": env, "on_discount": discount, "prompts": prompts}
    axes = dict(zip(("seed", "tasks_seen", "context_length"), axes, strict=True))
    return long_table(axes, {"mean": mean, "median": median}, **where)


def over_tasks_table(path: Path, baselines: dict[str, Path]) -> pd.DataFrame:
    """A row a context length and baseline: 95% bootstrap intervals over tasks, of means over trials at the last
    snapshot.

    ``low`` and ``high`` are those of the ratio of the MSVE to that of the baseline; where MC is the teacher, "td" is
    the same with TD as the teacher.
    """
    setting, (env, discount) = named(path.parent), path.stem.rsplit("-", 1)
    msve, lengths, seen = load_arrays(path, "of_tasks", "context_lengths", "tasks_seen")
    methods, errors = load_arrays(baselines[f"{env}-{setting['states']}-{discount}"], "methods", "msve")
    others, rows = dict(zip(methods, errors, strict=True)), []
    twin = path.parent.with_name(path.parent.name.replace("mc", "td", 1)) / path.name
    by_td = load_arrays(twin, "of_tasks")[0] if "mc" in setting["algo"] and twin.exists() else None
    for k, length in enumerate(lengths):
        one = {name: others[name][k] for name in BASELINES}
        one["best"] = min(one.values(), key=lambda errors: np.nan_to_num(errors.mean(), nan=np.inf))
        compared = {name: one[name] for name in BESIDE} | ({} if by_td is None else {"td": by_td[k]})
        own, *beside = bootstrap_means(np.stack([msve[k], *compared.values()], axis=-1)).T
        for name, samples in zip(compared, beside, strict=True):
            low, high = interval(own / samples)
            rows.append({"context_length": length, "tasks_seen": seen[-1], "baseline": name, "low": low, "high": high})
    return pd.DataFrame(rows).assign(**setting, on_env=env, on_discount=discount)


def baselines_table(path: Path) -> pd.DataFrame:
    """A row a method and context length."""
    methods, lengths, msve = load_arrays(path, "methods", "context_lengths", "msve")
    columns = {"mean": msve.mean(axis=-1), "median": np.median(msve, axis=-1)}
    return long_table({"method": methods, "context_length": lengths}, columns, **place(path))


def chosen_table(path: Path) -> pd.DataFrame:
    """A row a context length: what was chosen on the tuning tasks, and what the samples of the posterior are worth."""
    lengths, sizes, *chosen = load_arrays(path, "context_lengths", "effective_sizes", *CHOSEN)
    names = [name for of_array in CHOSEN.values() for name in of_array]
    columns = dict(zip(names, np.column_stack(chosen).T, strict=True))
    worth = {"median_effective_size": np.median(sizes, axis=-1), "least_effective_size": sizes.min(axis=-1)}
    return long_table({"context_length": lengths}, columns | worth, **place(path))


def place(path: Path) -> dict[str, str]:
    """Environment, states and discount that a file of baselines is named after."""
    return dict(zip(("env", "states", "discount"), path.stem.split("-"), strict=True))


def shapes_table(path: Path, env_options: dict) -> pd.DataFrame:
    """A row a seed and snapshot: the measures of its weights."""
    seeds, seen, *weights = load_arrays(path, "seeds", "tasks_seen", "history_u", "history_A")
    setting = named(path.parent)
    env, states, discount = setting["env"], int(setting["states"]), float(setting["discount"])
    rng = generator(0, env, states, "beyond transitions")
    transition = sample_tasks(env, states, AVERAGED, rng, **env_options.get(env, {})).transition.mean(axis=0)
    of = Weights(*weights)
    measures = decomposition_measures(of, discount) | trace_measures(of, discount, transition)
    return long_table({"seed": seeds, "tasks_seen": seen}, measures, **setting)


def preconditioners_table(paths: list[Path]) -> pd.DataFrame:
    """A row an entry of [G; H]: its mean over the trials of one setting."""
    setting = named(paths[0].parent)
    u, A = join_arrays(paths, "history_u", "history_A")
    K = preconditioner(project_identifiable(Weights(u[:, -1], A[:, -1]), float(setting["discount"])).A).mean(axis=0)
    axes = {name: np.arange(1, size + 1) for name, size in zip(("row", "column"), K.shape, strict=True)}
    return long_table(axes, {"mean": K}, **setting)
