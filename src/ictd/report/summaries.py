"""Tables for readers, made from the result tables, the claims and the configuration."""

from pathlib import Path

import pandas as pd
import yaml

from ictd.pipeline.grid import CELL, cells, main_setting
from ictd.report import html
from ictd.report.claim import has_pattern
from ictd.report.claim_tables import claims_overview, claims_rows, what_fails
from ictd.report.settings import difference_from_paper, settings_rows
from ictd.report.verdicts import count
from ictd.storage import load_json
from ictd.tables import load_tables, rows_with

THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6)
# Methods beside the Transformers.
BESIDE = {"theta_td": "theta^TD with its best step size", "lstd": "LSTD", "zero": "predicting zero"}


def main(claims: Path, theory: Path, tables: list[Path], settings: dict, schema: Path, output: Path) -> None:
    """Write the pages ``claims``, ``claims_ours``, ``claims_all``, ``msve``, ``mean_weights``, ``pattern``,
    ``thresholds``, ``agreement``, ``audit``, ``settings`` and ``readings`` as HTML, a table each, and ``summary``."""
    described = yaml.safe_load(schema.read_text(encoding="utf-8"))
    decided, of_theory = load_json(claims), {claim["id"] for claim in load_json(theory)}
    of = load_tables(tables)
    used = {key: value for key, value in settings.items() if key != "readings"}
    of_experiments = [claim for claim in decided if claim["id"] not in of_theory]
    readings = settings_rows(settings["readings"], described["properties"]["readings"])
    frames = {
        "claims": claims_overview([claim for claim in of_experiments if claim["kind"] == "paper"]),
        "claims_ours": claims_overview([claim for claim in of_experiments if claim["kind"] != "paper"]),
        "claims_all": claims_rows(decided),
        "msve": msve_summary(of["msve"], of["baselines"], of["weights"]),
        "mean_weights": weights_summary(of["mean_weights"]),
        "pattern": pattern_by_cell(of["mean_weights"], of["weights"]),
        "thresholds": by_threshold(of["mean_weights"], of["weights"], of["agreement"]),
        "agreement": of["agreement"],
        "audit": of["audit"],
        "settings": pd.DataFrame(settings_rows(used, described)),
        "readings": pd.DataFrame(readings).drop(columns="paper"),
    }
    html.save_frames(output, frames)
    said = summary(decided, of_theory, settings, described) + in_evaluation(of, settings)
    html.save(output / "summary.html", "summary", said)


def summary(claims: list[dict], of_theory: set[str], settings: dict, schema: dict) -> str:
    """What was run, how many of the paper's claims hold, and those that do not, in words."""
    grid = cells(settings)
    places, seeds = len({cell[1:] for cell in grid}), settings["seeds"]
    algos = " and ".join(f"multi-task {algo.upper()}" for algo in dict.fromkeys(cell.algo for cell in grid))
    paper = [claim for claim in claims if claim["kind"] == "paper"]
    of_runs = [claim for claim in paper if claim["id"] not in of_theory]
    theory = [claim for claim in paper if claim["id"] in of_theory]
    (of_experiments, hold), (of_proofs, proved) = count(of_runs), count(theory)
    of = {"looped linear Transformer": len(grid) * seeds, "setting": places, "seed": seeds, "task": settings["tasks"]}
    counts = [f"{number:,} {word}{'s' if number > 1 else ''}" for word, number in of.items()]
    return f"""<p class="lead">This run pretrained {counts[0]}: {algos}, {counts[1]}
(an environment with numbers of states n and layers L), {counts[2]} in each, {counts[3]} a seed.
{difference_from_paper(settings, schema)}</p>
<p>Of the paper's <b>{of_experiments} claims on its experiments, {hold} hold</b> everywhere. Of
<b>{of_proofs} statements and steps of its theory, {proved} hold</b> on all tasks, layers and query states tried. What
does not hold everywhere stands below, with where it fails and the value measured there.</p>
{what_fails(of_runs)}{what_fails(theory)}"""


def in_evaluation(of: dict[str, pd.DataFrame], settings: dict) -> str:
    """What the evaluation comes to in the main setting: mean MSVE at the longest context, of the Transformers and of
    the baselines, and of the former on the enumerated prompts of pretraining."""
    place = main_setting(settings)
    longest = of["msve"]["context_length"].max()
    rows = rows_with(of["msve"], **place, context_length=longest)
    beside = {name: place[name] for name in ("states", "depth")}
    others = rows_with(of["baselines"], **beside, context_length=longest).groupby("method")["msve"].mean()
    enumerated = rows_with(of["weights"], **place).groupby("algo")["enumerated_msve"].mean()
    found = {f"multi-task {algo.upper()}": mean for algo, mean in rows.groupby("algo")["msve"].mean().items()}
    found |= {name: others[method] for method, name in BESIDE.items()}
    list_of = lambda means: ", ".join(f"{name} {mean:.2g}" for name, mean in means.items())  # noqa: E731
    return f"""<p>What this is worth: on unseen tasks of the main setting, with {longest} steps, the MSVE is
{html.text(list_of(found))}. On enumerated prompts, those of pretraining, it is
{list_of(enumerated.rename(lambda algo: f"multi-task {algo.upper()}"))}. (Means over trials.)</p>\n"""


def msve_summary(msve: pd.DataFrame, baselines: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Mean and median over trials of the MSVE at the shortest and the longest context, for cells and baselines, and of
    the cells' MSVE on enumerated prompts; trials that diverged are counted, and left out of both."""
    baselines = baselines[baselines["method"] != "batch_td"]
    without_depth = baselines["method"].isin(["lstd", "zero"])
    named = baselines.assign(algo=baselines["method"], env="", depth=baselines["depth"].mask(without_depth, 0))
    both = pd.concat([msve, named.drop_duplicates([*CELL, "seed", "context_length"])], ignore_index=True)
    ends = both[both["context_length"].isin([both["context_length"].min(), both["context_length"].max()])]
    table = ends.groupby([*CELL, "context_length"], sort=False)["msve"].agg(["mean", "median"]).unstack()
    table.columns = [f"{statistic}, context of {length}" for statistic, length in table.columns]
    enumerated = weights.groupby(CELL)["enumerated_msve"].agg(["mean", "median"])
    enumerated.columns = [f"{statistic}, enumerated prompt" for statistic in enumerated.columns]
    diverged = weights.groupby(CELL)["diverged_at"].agg(lambda tasks: f"{(tasks > 0).sum()} of {len(tasks)}")
    table = table.join(enumerated).join(diverged.rename("diverged")).fillna({"diverged": ""}).reset_index()
    return table.rename(columns={"algo": "method"}).assign(
        depth=table["depth"].astype(str).mask(table["depth"] == 0, "")
    )


def weights_summary(mean_weights: pd.DataFrame) -> pd.DataFrame:
    """The measures of the mean weights that the claims rest on."""
    measures = "cosine raw_cosine cosine_A11 cosine_A12 share_A21 share_A22 diagonal_signs largest_u alpha"
    return mean_weights[CELL + measures.split()]


def pattern_by_cell(mean_weights: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """A row a cell: squared cosine to theta^TD of the mean A, as prompts see it with its interval over trials and as it
    is, and how many trials have the pattern, judged in both ways."""
    counted = weights.assign(seen=has_pattern(weights["cosine"]), raw=has_pattern(weights["raw_cosine"]))
    trials = counted.groupby(CELL, sort=False).agg(seen=("seen", "sum"), raw=("raw", "sum"), all=("seen", "size"))
    rows = mean_weights.set_index(CELL)
    trials = trials.loc[rows.index]
    pairs = zip(rows["pattern_low"], rows["pattern_high"], trials["all"], strict=True)
    ends = [f"{low:.2f} to {high:.2f}" if low <= high and number > 1 else "" for low, high, number in pairs]
    return pd.DataFrame({
        "squared cosine, as prompts see A": rows["cosine"].clip(lower=0) ** 2,
        "interval": ends,
        "squared cosine, A as it is": rows["raw_cosine"].clip(lower=0) ** 2,
        "trials with the pattern": [f"{one.seen} of {one.all}" for one in trials.itertuples()],
        "judged by A as it is": [f"{one.raw} of {one.all}" for one in trials.itertuples()],
    }).reset_index()  # fmt: skip


def by_threshold(mean_weights: pd.DataFrame, weights: pd.DataFrame, agreement: pd.DataFrame) -> pd.DataFrame:
    """A row a threshold: in how many cells or settings verdicts that rest on one half would hold with it."""
    rows = []
    for threshold in THRESHOLDS:
        in_trials = has_pattern(weights["cosine"], threshold).groupby([weights[name] for name in CELL]).all()
        found = {
            "pattern": mean_weights["pattern_low"] > threshold,
            "pattern, A as it is": has_pattern(mean_weights["raw_cosine"], threshold),
            "in every trial": in_trials,
        }
        if len(agreement):
            found["TD and MC have the same pattern"] = has_pattern(agreement["correlation_low"], threshold)
            found["the same noise pattern"] = has_pattern(agreement["residual_correlation_low"], threshold)
        rows.append({"threshold": threshold} | {name: f"{one.sum()} of {len(one)}" for name, one in found.items()})
    return pd.DataFrame(rows)
