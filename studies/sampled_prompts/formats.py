"""Evaluate weights on sampled contexts in three formats: a column for each step, grouped, and with pseudo-steps."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.pipeline.grid import Cell
from ictd.prompt import Context
from ictd.statistics import bootstrap_ratios, standard_error
from ictd.storage import join_arrays, load_arrays, save_table
from ictd.transformer import Weights
from studies.sampled_prompts.evaluate import compiled_msve
from studies.sampled_prompts.grid import Run
from studies.sampled_prompts.training_data import algorithm, prompt_format

# Names of the pretraining prompts in the table, by the format in the name of a run.
PROMPTS = {"": "contexts", "grouped_": "grouped", "enumerated_": "enumerated"}


def main(
    evaluation_env: str,
    discount: float,
    scaled_attention: bool,
    tasks: int,
    test_tasks: int,
    context_lengths: list[int],
    lengths: list[int],
    env_options: dict,
    runs: list[Path],
    cells: list[Path],
    baselines: list[Path],
    output: Path,
) -> None:
    """Write a row for each set of trials, format and context length up to the longest of pretraining.

    ``prompts`` names the pretraining prompts: "paper" for the paper's cells, else "enumerated", "contexts" or "grouped"
    in the main setting, with equal tasks and batches, after ``tasks`` tasks.  ``shown`` is the format of the unseen
    contexts: "step", "grouped" or "pseudo".  ``mean`` and ``standard_error`` over tasks are computed from the MSVE
    averaged over trials; ``median`` over tasks is averaged over trials.  ``lstd`` is the mean MSVE of LSTD on the same
    contexts, and ``low`` and ``high`` are the ends of the 95% bootstrap interval over tasks of the ratio to it.
    ``enumerated_low`` and ``enumerated_high`` are the same for the ratio to weights that were pretrained on enumerated
    prompts and are shown grouped columns, NaN for the paper's cells.
    """
    shown_lengths = [length for length in context_lengths if length <= lengths[1]] or context_lengths[:1]
    lstd = {path.stem: lstd_msve(path, shown_lengths) for path in baselines}
    trained = [*(weights_of_run(paths, tasks) for paths in by_folder(runs)), *map(weights_of_cell, cells)]
    scaled = {"paper": scaled_attention}
    options = env_options[evaluation_env]
    table, unseen, errors = [], {}, {}
    for setting, weights in trained:
        states = setting["states"]
        if states not in unseen:
            unseen[states] = draw_unseen_tasks(
                0, states, test_tasks, max(context_lengths), discount, evaluation_env, "beyond", **options
            )
        found = formats_msve(
            weights, unseen[states], shown_lengths, setting["depth"], scaled.get(setting["prompts"], True)
        )
        errors[tuple(setting.values())] = found
    for key, found in errors.items():
        setting = dict(zip(trained[0][0], key, strict=True))
        reference = errors.get(tuple((setting | {"prompts": "enumerated"}).values()))
        if setting["prompts"] == "paper":
            reference = None
        other = lstd[f"{evaluation_env}-{setting['states']}-{float(discount)}"]
        for shown, msve in found.items():
            by_task = msve.mean(axis=0)  # (lengths, tasks)
            to_lstd = bootstrap_ratios(by_task.T, other.T)
            to_enumerated = [(np.nan, np.nan, np.nan)] * len(shown_lengths)
            if reference is not None:
                to_enumerated = bootstrap_ratios(by_task.T, reference["grouped"].mean(axis=0).T)
            for k, length in enumerate(shown_lengths):
                row = {
                    **setting, "shown": shown, "context_length": length, "mean": by_task[k].mean(),
                    "standard_error": standard_error(by_task[k]), "median": np.median(msve[:, k], axis=-1).mean(),
                    "lstd": other[k].mean(),
                }  # fmt: skip
                _, row["low"], row["high"] = to_lstd[k]
                row["enumerated_ratio"], row["enumerated_low"], row["enumerated_high"] = to_enumerated[k]
                table.append(row)
    save_table(output, pd.DataFrame(table))


def formats_of(context: Context) -> dict[str, Context]:
    """A context in the three formats, by their names in the table."""
    n = context.dimension
    return {"step": context, "grouped": context.grouped(), "pseudo": context.grouped(np.full((n, n), 1 / n))}


def formats_msve(
    weights: Weights, data: UnseenTasks, lengths: list[int], depth: int, scaled: bool
) -> dict[str, np.ndarray]:
    """MSVE (trials, lengths, tasks) of weights with a leading axis of trials, by the names of the formats."""
    grams = {}
    for length in lengths:
        for name, context in formats_of(data.context(length)).items():
            grams.setdefault(name, []).append(context.gram_matrix(data.discount, scaled))
    return {name: compiled_msve(weights, data, grams[name], depth) for name in grams}


def lstd_msve(path: Path, lengths: list[int]) -> np.ndarray:
    """MSVE (lengths, tasks) of LSTD from a file of baselines."""
    methods, computed, msve = load_arrays(path, "methods", "context_lengths", "msve")
    return msve[list(methods).index("lstd")][[list(computed).index(length) for length in lengths]]


def by_folder(paths: list[Path]) -> list[list[Path]]:
    """Files in groups of the same folder, in the order given."""
    folders = dict.fromkeys(path.parent for path in paths)
    return [[path for path in paths if path.parent == folder] for folder in folders]


def weights_of_run(paths: list[Path], tasks: int) -> tuple[dict, Weights]:
    """The pretraining prompts of a run of the study, and its weights (trials, ...) after a number of tasks."""
    run = Run.parse(paths[0].parent.name)
    tasks_seen, u, A = join_arrays(paths, "tasks_seen", "history_u", "history_A")
    at = list(tasks_seen[: u.shape[1]]).index(min(tasks, tasks_seen.max()))
    cell = Cell(algorithm(run.target), run.env, run.states, run.depth)
    setting = {"prompts": PROMPTS[prompt_format(run.target)], **cell._asdict()}
    return setting, Weights(u[:, at], A[:, at])


def weights_of_cell(path: Path) -> tuple[dict, Weights]:
    """The cell of the paper that a file of weights is named after, and its weights (trials, ...)."""
    u, A = load_arrays(path, "u", "A")
    return {"prompts": "paper", **Cell.parse(path.stem)._asdict()}, Weights(u, A)
