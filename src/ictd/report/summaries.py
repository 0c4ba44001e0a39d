"""Tables for readers, made from the result tables, the claims and the configuration."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL, cells, main_setting
from ictd.report import html
from ictd.report.claim import has_pattern
from ictd.report.claim_tables import (
    claims_overview,
    claims_rows,
    sentence_parts,
    sentences_overview,
    sentences_that_do_not_hold,
    what_does_not_hold,
)
from ictd.report.sentences import counted, in_one_sentence
from ictd.report.settings import difference_from_paper, settings_rows
from ictd.report.tables import rows_with
from ictd.report.verdicts import HOLDS, count, verdict_by

THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6)
# Baselines that the summary compares with the Transformers, in words.
BASELINES = {"theta_td": "theta^TD with its best step size", "lstd": "LSTD", "zero": "predicting zero"}


def save_summaries(
    records: list[dict],
    theory_ids: set[str],
    sentences: list[dict],
    tables: dict[str, pd.DataFrame],
    settings: dict,
    schema: dict,
    folder: Path,
) -> None:
    """Write the page ``summary``, and a page for each name in ``pages`` below, as HTML.

    Parameters
    ----------
    records : list of dicts, all claims
    theory_ids : set of str, ids of the claims on the theory
    sentences : list of dicts, the paper's sentences on its experiments
    tables : dict of result tables
        By "msve", "baselines", "weights", "mean_weights", "agreement" and "audit".
    settings : dict, the settings of the paper's part
    schema : dict, the schema of the configuration
    folder : Path
    """
    of_experiments = [claim for claim in records if claim["id"] not in theory_ids]
    weights, mean_weights, agreement = tables["weights"], tables["mean_weights"], tables["agreement"]
    without_readings = {key: value for key, value in settings.items() if key != "readings"}
    readings = settings_rows(settings["readings"], schema["properties"]["readings"])
    pages = {
        "claims": sentences_overview(sentences, of_experiments),
        "claims_parts": sentence_parts(sentences, of_experiments),
        "claims_ours": claims_overview([claim for claim in of_experiments if claim["kind"] != "paper"]),
        "claims_all": claims_rows(records),
        "msve": msve_summary(tables["msve"], tables["baselines"], weights),
        "mean_weights": weights_summary(mean_weights),
        "pattern": pattern_by_cell(mean_weights, weights),
        "thresholds": by_threshold(of_experiments, mean_weights, weights),
        "agreement": agreement,
        "audit": tables["audit"],
        "settings": pd.DataFrame(settings_rows(without_readings, schema)),
        "readings": pd.DataFrame(readings).drop(columns="paper"),
    }
    html.save_frames(folder, pages)
    text = summary(records, theory_ids, sentences, settings, schema) + evaluation_summary(tables, settings)
    html.save(folder / "summary.html", "summary", text)


def summary(claims: list[dict], theory_ids: set[str], sentences: list[dict], settings: dict, schema: dict) -> str:
    """Say what was run, how many of the paper's claims hold, and which do not, as HTML."""
    grid = cells(settings)
    algos = " and ".join(f"multi-task {algo.upper()}" for algo in dict.fromkeys(cell.algo for cell in grid))
    on_theory = [claim for claim in claims if claim["kind"] == "paper" and claim["id"] in theory_ids]
    statements, proved = count(on_theory)
    numbers = {
        "looped linear Transformer": len(grid) * settings["seeds"],
        "setting": len({cell.setting for cell in grid}),
        "seed": settings["seeds"],
        "task": settings["tasks"],
    }
    counts = [f"{number:,} {word}{'s' if number > 1 else ''}" for word, number in numbers.items()]
    return f"""<p class="lead">This run pretrained {counts[0]}: {algos}, {counts[1]}
(an environment with numbers of states n and layers L), {counts[2]} in each, {counts[3]} a seed.
{difference_from_paper(settings, schema)}</p>
<p><b>{in_one_sentence(counted(sentences))}</b> A sentence holds if all of its tests hold in all cells that it speaks
of, it is refuted if one test is refuted in one of them, and it is not shown otherwise. Of <b>{statements} statements and
steps of the theory, {proved} hold</b> on all tasks, layers and query states tried. The claims that do not hold:</p>
{sentences_that_do_not_hold(sentences, claims)}{what_does_not_hold(on_theory)}"""


def evaluation_summary(tables: dict[str, pd.DataFrame], settings: dict) -> str:
    """Say how accurate the Transformers and the baselines are in the main setting, as HTML.

    It has the mean MSVE over trials at the longest context, and the Transformers' on enumerated prompts.
    """
    setting = main_setting(settings)
    longest = tables["msve"]["context_length"].max()
    size = {"states": setting["states"], "depth": setting["depth"]}
    msve = rows_with(tables["msve"], **setting, context_length=longest).groupby("algo")["msve"].mean()
    baselines = rows_with(tables["baselines"], **size, context_length=longest).groupby("method")["msve"].mean()
    enumerated = rows_with(tables["weights"], **setting).groupby("algo")["enumerated_msve"].mean()
    sampled_means = {f"multi-task {algo.upper()}": mean for algo, mean in msve.items()}
    sampled_means |= {name: baselines[method] for method, name in BASELINES.items()}
    enumerated_means = {f"multi-task {algo.upper()}": mean for algo, mean in enumerated.items()}
    return f"""<p>How accurate is it? On unseen tasks of the main setting, with {longest} steps, the MSVE is
{html.text(_listed(sampled_means))}. On enumerated prompts of unseen tasks it is
{_listed(enumerated_means)}. (Means over trials.)</p>\n"""


def _listed(means: dict[str, float]) -> str:
    return ", ".join(f"{name} {mean:.2g}" for name, mean in means.items())


def msve_summary(msve: pd.DataFrame, baselines: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Tabulate mean and median over trials of the MSVE, a row for each cell and each baseline.

    Columns are the shortest and the longest context, and enumerated prompts for cells.  Trials that diverged are
    counted and left out of both statistics.
    """
    baselines = baselines[baselines["method"] != "batch_td"]
    # Baselines have no environment of pretraining, and two of them no layers.
    depth = baselines["depth"].mask(baselines["method"].isin(["lstd", "zero"]), 0)
    as_cells = baselines.assign(algo=baselines["method"], env="", depth=depth)
    both = pd.concat([msve, as_cells.drop_duplicates([*CELL, "seed", "context_length"])], ignore_index=True)
    lengths = both["context_length"]
    ends = both[lengths.isin([lengths.min(), lengths.max()])]
    table = ends.groupby([*CELL, "context_length"], sort=False)["msve"].agg(["mean", "median"]).unstack()
    table.columns = [f"{statistic}, context of {length}" for statistic, length in table.columns]
    enumerated = weights.groupby(CELL)["enumerated_msve"].agg(["mean", "median"])
    enumerated.columns = [f"{statistic}, enumerated prompt" for statistic in enumerated.columns]
    diverged = weights.groupby(CELL)["diverged_at"].agg(lambda tasks: f"{(tasks > 0).sum()} of {len(tasks)}")
    table = table.join(enumerated).join(diverged.rename("diverged")).fillna({"diverged": ""}).reset_index()
    table = table.assign(depth=table["depth"].astype(str).mask(table["depth"] == 0, ""))
    return table.rename(columns={"algo": "method"})


def weights_summary(mean_weights: pd.DataFrame) -> pd.DataFrame:
    """Select the measures of the mean weights that decide claims."""
    measures = "cosine raw_cosine cosine_A11 cosine_A12 share_A21 share_A22 diagonal_signs largest_u alpha"
    return mean_weights[CELL + measures.split()]


def pattern_by_cell(mean_weights: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Tabulate for each cell the squared cosine to theta^TD of the mean A, and the number of trials with the pattern.

    Both are given after projection (``ictd.anatomy.project_identifiable``), with an interval over trials, and before.
    """
    has = weights.assign(projected=has_pattern(weights["cosine"]), raw=has_pattern(weights["raw_cosine"]))
    means = mean_weights.set_index(CELL)
    trials = has.groupby(CELL)[["projected", "raw"]].sum().loc[means.index]
    number = has.groupby(CELL).size().loc[means.index].astype(str)
    low, high = means["pattern_low"], means["pattern_high"]
    interval = low.map("{:.2f}".format) + " to " + high.map("{:.2f}".format)
    return pd.DataFrame({
        "squared cosine, identifiable A": means["cosine"].clip(lower=0) ** 2,
        "interval": interval.where((low <= high) & (number != "1"), ""),
        "squared cosine, full A": means["raw_cosine"].clip(lower=0) ** 2,
        "trials with the pattern": trials["projected"].astype(str) + " of " + number,
        "by the full A": trials["raw"].astype(str) + " of " + number,
    }).reset_index()  # fmt: skip


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
