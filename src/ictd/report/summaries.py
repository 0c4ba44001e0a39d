"""Tables for readers, made from the result tables, the claims and the configuration."""

import numpy as np
import pandas as pd

from ictd.baselines import shown_baselines
from ictd.pipeline.grid import CELL, cells, main_setting
from ictd.prompt import ENUMERATED
from ictd.report import html
from ictd.report.claim import HALF, has_pattern
from ictd.report.claim_tables import sentences_that_do_not_hold, what_does_not_hold
from ictd.report.names import LOOKS
from ictd.report.sentences import counted, in_one_sentence
from ictd.report.settings import difference_from_paper
from ictd.report.tables import rows_with
from ictd.report.verdicts import HOLDS, count, number, verdict_by

THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6)
# Measures of the agreement of TD and MC, in words.
AGREEMENT = {
    "correlation": "correlation",
    "residual_correlation": "residual correlation",
    "distance": "distance",
    "apart": "correlation, no common seed",
    "residual_apart": "residual correlation, no common seed",
}


def summary(claims: list[dict], on_theory: list[dict], sentences: list[dict], settings: dict, schema: dict) -> str:
    """Say what was run, how many of the paper's claims hold, and which do not, as HTML."""
    grid = cells(settings)
    algos = " and ".join(f"multi-task {algo.upper()}" for algo in dict.fromkeys(cell.algo for cell in grid))
    on_theory = [claim for claim in on_theory if claim["kind"] == "paper"]
    statements, proved = count(on_theory)
    numbers = {
        "looped linear Transformer": len(grid) * settings["seeds"],
        "setting": len({cell.setting for cell in grid}),
        "seed": settings["seeds"],
        "task": settings["tasks"],
    }
    counts = [f"{number:,} {word}{'s' if number > 1 else ''}" for word, number in numbers.items()]
    return f"""<p class="lead">This run pretrained {counts[0]}: {algos}, {counts[1]}
(an environment with numbers of states n and layers L), {counts[2]} in each, {counts[3]} for each seed.
{difference_from_paper(settings, schema)}</p>
<p><b>{in_one_sentence(counted(sentences))}</b> A sentence holds if all of its tests hold in all cells that it
covers, it is refuted if one test is refuted in one of them, and it is not shown otherwise. Of
<b>{statements} statements and steps of the theory, {proved} hold</b> on all tasks, layers and query states tried.
What does not hold:</p>
{sentences_that_do_not_hold(sentences, claims)}{what_does_not_hold(on_theory)}"""


def evaluation_summary(over_tasks: pd.DataFrame, settings: dict) -> str:
    """Say how accurate the Transformers and the baselines are in the main setting, as HTML.

    ``over_tasks`` is the table of the step ``ictd.steps.evaluate_claims``.
    """
    setting = main_setting(settings)
    number = settings["seeds"] * settings["evaluation"]["claim_tasks"]
    rows = rows_with(over_tasks, states=setting["states"])
    # Baselines do not depend on the environment of pretraining, and LSTD and zero not on the number of layers.
    rows = rows[rows["env"].isin([setting["env"], "any"]) & rows["depth"].isin([setting["depth"], 0])]
    lengths = rows["context_length"]
    sampled = rows[lengths == lengths.max()].set_index("method")
    enumerated = rows[lengths == ENUMERATED].set_index("method")
    names = {algo: LOOKS[algo].label for algo in settings["algos"]}
    baselines = {name: LOOKS[name].label for name in shown_baselines()}
    return f"""<p>How accurate is it? On {number:,} unseen tasks of the main setting, with {lengths.max()} steps, the
MSVE is {html.text(_listed(sampled, names | baselines))}. On enumerated prompts of these tasks it is
{_listed(enumerated, names)}. (Means over tasks, with their standard errors over trials; medians over tasks.)</p>\n"""


def _listed(rows: pd.DataFrame, names: dict[str, str]) -> str:
    """The error of each method, with its name, from rows by method."""
    return "; ".join(f"{mean_and_median(rows.loc[method])} for {name}" for method, name in names.items())


def mean_and_median(row) -> str:
    """The mean of errors with its standard error, and the median, from a row of the table ``over_tasks``."""
    return f"{_with_standard_error(row, 2)} (median {row['median']:.2g})"


def _with_standard_error(row, digits: int) -> str:
    """The mean of errors with its standard error; a single trial has none, and 0 in the table ``over_tasks``."""
    error = f" ± {row['standard_error']:.{digits - 1}g}" if row["standard_error"] else ""
    return f"{row['mean']:.{digits}g}{error}"


def msve_summary(over_tasks: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the MSVE on unseen tasks, a row for each cell and each baseline.

    There are two columns for the shortest and the longest context, and for enumerated prompts: the mean with its
    standard error and the median, and the share of the worst hundredth of the tasks in the sum.  Trials that diverged
    are counted and left out.
    """
    lengths = over_tasks["context_length"]
    ends = [lengths[lengths != ENUMERATED].min(), lengths.max(), ENUMERATED]
    diverged = weights.groupby(CELL)["diverged_at"].agg(lambda tasks: f"{(tasks > 0).sum()} of {len(tasks)}")
    rows = []
    for (method, env, states, depth), errors in over_tasks.groupby(["method", "env", "states", "depth"], sort=False):
        is_cell = env != "any"
        row = {"method": method, "env": env if is_cell else "", "states": states, "depth": str(depth or "")}
        for length in dict.fromkeys(ends):
            name = "enumerated" if length == ENUMERATED else f"{length} steps"
            (error,) = errors[errors["context_length"] == length].to_dict("records")
            row[f"mean (median), {name}"] = f"{_with_standard_error(error, 3)} ({error['median']:.3g})"
            row[f"worst 1 %, {name}"] = f"{error['worst_share']:.0%}"
        row["diverged"] = diverged[method, env, states, depth] if is_cell else ""
        rows.append(row)
    return pd.DataFrame(rows)


def weights_summary(mean_weights: pd.DataFrame) -> pd.DataFrame:
    """Select the measures of the mean weights that decide claims."""
    measures = "cosine raw_cosine cosine_A11 cosine_A12 share_A21 share_A22 diagonal_signs largest_u alpha"
    return mean_weights[CELL + measures.split()]


def pattern_by_cell(mean_weights: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Tabulate for each cell the squared cosine to theta^TD of the mean A, and the number of trials with the pattern.

    Both are given after projection (``ictd.weight_measures.project_identifiable``), with an interval over trials, and
    before.
    """
    has = weights.assign(projected=has_pattern(weights["cosine"]), raw=has_pattern(weights["raw_cosine"]))
    means = mean_weights.set_index(CELL)
    trials = has.groupby(CELL)[["projected", "raw"]].sum().loc[means.index]
    size = has.groupby(CELL).size().loc[means.index].astype(str)
    low, high = means["pattern_low"], means["pattern_high"]
    ends = [end.map(lambda share: number(share, HALF)) for end in (low, high)]
    interval = ends[0] + " to " + ends[1]
    return pd.DataFrame({
        "squared cosine, identifiable A": means["cosine"].clip(lower=0) ** 2,
        "interval": interval.where((low <= high) & (size != "1"), ""),
        "squared cosine, full A": means["raw_cosine"].clip(lower=0) ** 2,
        "trials with the pattern": trials["projected"].astype(str) + " of " + size,
        "by the full A": trials["raw"].astype(str) + " of " + size,
    }).reset_index()  # fmt: skip


def agreement_summary(agreement: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the agreement of TD and MC in each setting: each measure with its interval in one column.

    A single trial has no interval, and no other trial without a common seed.
    """
    table = agreement[CELL[1:]].copy()
    for name, heading in AGREEMENT.items():
        columns = agreement[[name, f"{name}_low", f"{name}_high"]]
        table[heading] = [_with_interval(*row) for row in columns.itertuples(index=False)]
    return table


def _with_interval(value: float, low: float, high: float) -> str:
    """A value and its interval as text; NaN is left out."""
    if np.isnan(value):
        return ""
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} ({low:.3f} to {high:.3f})"


def by_threshold(claims: list[dict], mean_weights: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Tabulate, for thresholds other than one half, in how many cells or settings the claims that use one half hold.

    Parameters
    ----------
    claims : list of records of the claims on the experiments
    mean_weights, weights : result tables
    """
    lines = []
    for threshold in THRESHOLDS:
        # The rank correlation is compared with the negative square root.
        compared = {
            "msve_falls": -np.sqrt(threshold),
            "pattern": threshold,
            "same_pattern": threshold,
            "same_noise": threshold,
        }
        counts = {name: _number_that_holds(claims, name, bound) for name, bound in compared.items()}
        counts = {name: said for name, said in counts.items() if said}
        trials = weights.assign(has=has_pattern(weights["cosine"], threshold))
        full = has_pattern(mean_weights["raw_cosine"], threshold)
        every = trials.groupby(CELL)["has"].all()
        counts["pattern, full A"] = f"{full.sum()} of {len(full)}"
        counts["pattern in every trial"] = f"{every.sum()} of {len(every)}"
        lines.append({"threshold": threshold, **counts})
    return pd.DataFrame(lines)


def _number_that_holds(claims: list[dict], name: str, threshold: float) -> str:
    """In how many settings a claim would hold with another threshold; empty if it is not made."""
    group = [claim for claim in claims if claim["id"].split("/")[0] == name]
    held = [
        claim["low"] is not None
        and verdict_by(claim["relation"], threshold, claim["value"], claim["low"], claim["high"]) == HOLDS
        for claim in group
    ]
    return f"{sum(held)} of {len(held)}" if held else ""
