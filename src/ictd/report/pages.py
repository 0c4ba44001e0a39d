"""The pages with tables.

Each page is a function with the decorator ``page``, which takes the tables by their names and what else ``main``
gathers, and returns a DataFrame or HTML.  The docstring of the function is the page's title and its caption, and the
order of the functions is that of the pages in Snakemake's report.  The rules read the docstrings without importing this
module (``ictd.pipeline.rules.registered``).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from ictd.pipeline.grid import CELL, cells, main_setting
from ictd.prompt import ENUMERATED
from ictd.report import claim_tables, html
from ictd.report.claim import has_pattern
from ictd.report.quoted import accuracy_table, mean_and_median
from ictd.report.registry import title_and_caption
from ictd.report.sentences import counted, in_one_sentence
from ictd.report.settings import difference_from_paper, settings_rows
from ictd.report.tables import load_tables
from ictd.report.theory_claims import theory_overview
from ictd.report.verdicts import HOLDS, by_name, count, holding, verdict_by
from ictd.storage import load_json

THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6)

PAGES: dict[str, Callable] = {}


def page(make: Callable) -> Callable:
    """Register a function that makes a page, under its name."""
    PAGES[make.__name__] = make
    return make


def main(
    claims: Path,
    theory: Path,
    sentences: Path,
    tables: list[Path],
    settings: dict,
    schema: Path,
    folder: Path,
) -> None:
    """Write the pages as HTML.

    ``claims`` has all claims, ``theory`` those on the theory, and ``sentences`` the paper's sentences on its
    experiments.
    """
    table = load_tables(tables)
    records, on_theory = load_json(claims), load_json(theory)
    theory_ids = {claim["id"] for claim in on_theory}
    run = {
        "claims": records,
        "on_theory": on_theory,
        "on_experiments": [claim for claim in records if claim["id"] not in theory_ids],
        "sentences": load_json(sentences),
        "settings": settings,
        "schema": yaml.safe_load(schema.read_text(encoding="utf-8")),
    }
    save_pages(table, run, folder)


def save_pages(tables: dict, run: dict, folder: Path) -> None:
    """Write all PAGES, each with its caption, from tables by their names and from what else ``main`` gathers."""
    for name, make in PAGES.items():
        _, caption = title_and_caption(make)
        content = make(tables, run)
        body = content if isinstance(content, str) else html.table(content)
        above = f'<p class="caption">{html.text(caption)}</p>\n' if caption else ""
        html.save(folder / f"{name}.html", name, above + body)


@page
def summary(tables, run):
    """Summary."""
    settings = run["settings"]
    grid = cells(settings)
    algos = " and ".join(f"multi-task {algo.upper()}" for algo in dict.fromkeys(cell.algo for cell in grid))
    on_theory = [claim for claim in run["on_theory"] if claim["kind"] == "paper"]
    accuracy = accuracy_table(tables["over_tasks"], tuple(main_setting(settings).values()))
    statements, proved = count(on_theory)
    numbers = {
        "looped linear Transformer": len(grid) * settings["seeds"],
        "setting": len({cell.setting for cell in grid}),
        "seed": settings["seeds"],
        "task": settings["tasks"],
    }
    counts = [f"{number:,} {word}{'s' if number > 1 else ''}" for word, number in numbers.items()]
    tests = by_name(run["claims"])
    below_zero, below_constant = (holding(tests.get(name, [])) for name in ("beats_zero", "beats_constant"))
    return f"""<p class="lead">This run pretrained {counts[0]}: {algos}, {counts[1]}
(an environment with numbers of states n and layers L), {counts[2]} in each, {counts[3]} for each seed.
{difference_from_paper(settings, run["schema"])}</p>
<p><b>{in_one_sentence(counted(run["sentences"]))}</b> A sentence holds if all of its tests hold in all cells that it
covers, it is refuted if one test is refuted in one of them, and it is not shown otherwise. Of
<b>{statements} statements and steps of the theory, {proved} hold</b> on all tasks, layers and query states tried.
What does not hold:</p>
{claim_tables.sentences_that_do_not_hold(run["sentences"], run["claims"])}\
{claim_tables.what_does_not_hold(on_theory)}
<p>How accurate is it? With the longest context, the MSVE is lower than that of predicting zero in {below_zero} of
{len(grid)} cells, and lower than that of one constant for all states in {below_constant}.</p>
<p>MSVE on {settings["seeds"] * settings["evaluation"]["claim_tasks"]:,} unseen tasks of the main
setting: the mean over tasks with its standard error over trials (the median over tasks). One constant is the mean
observed reward over 1 − γ. Numbers of pseudo-steps, of zeros for the constant, are tuned on other tasks.</p>
{html.table(accuracy)}"""


@page
def claims(tables, run):
    """The paper's claims on its experiments.

    A sentence is tested in the cells that it covers: the main setting, or the cells of one hyperparameter study. A test
    holds if its whole 95% interval is on the claim's side of the threshold, it is refuted if the whole interval is on
    the other side, and it is not shown if the interval contains the threshold. A sentence holds if all of its tests
    hold in all cells that it covers, it is refuted if one test is refuted in one cell, and it is not shown otherwise.
    The closest test is the one with the worst verdict that is closest to its threshold, or farthest beyond it. Tests
    beside a sentence are ours: they are stricter, or look at the same from another side, and decide nothing.
    """
    counted, others = (
        html.table(claim_tables.sentences_overview(run["sentences"], run["on_experiments"], counted))
        for counted in (True, False)
    )
    return f"{counted}<h4>Questions, speculation, repetitions and interpretations, which are not counted</h4>\n{others}"


@page
def theory(tables, run):
    """The theory's claims.

    The statements of the theory. An inequality holds in a setting if its left side exceeds its right side by at most an
    allowance for rounding, for every task, layer and query state. The table also shows the smallest ratio of the right
    side to the left side, among tasks whose left side is at least a thousand times this allowance. From about 250
    layers on (with a discount of 0.9), the allowance exceeds the bounds of Lemmas 1 and 4; there both lemmas are
    checked in decimal arithmetic, on two tasks of each setting. Limits are tested only if the discount to the power of
    the largest depth is below 1e-6.
    """
    return theory_overview(run["on_theory"], tables["statements"])


@page
def msve(tables, run):
    """MSVE.

    MSVE on unseen tasks, at the shortest and the longest context, and on enumerated prompts. The setting
    evaluation.claim_tasks is the number of these tasks in each trial. Columns: the mean over tasks with its standard
    error over trials (the median over tasks), and the share of the total error that the worst hundredth of the tasks
    contributes. The tasks are those of Figures 1, 5, 7 and 10. The methods TD and MC are the pretrained
    Transformers. The method theta^TD is the Transformer with the paper's parameters and the best step size. One
    constant is the mean observed reward over 1 - gamma. Its tuned form adds rewards of zero, and LSTD with pseudo-steps
    adds steps from each state to all states equally; step size and numbers of additions are the best on other tasks.
    """
    over_tasks = tables["over_tasks"]
    lengths = over_tasks["context_length"]
    ends = [lengths[lengths != ENUMERATED].min(), lengths.max(), ENUMERATED]
    diverged = tables["weights"].groupby(CELL)["diverged_at"].agg(lambda tasks: f"{(tasks > 0).sum()} of {len(tasks)}")
    rows = []
    for (method, env, states, depth), errors in over_tasks.groupby(["method", "env", "states", "depth"], sort=False):
        is_cell = env != "any"
        row = {"method": method, "env": env if is_cell else "", "states": states, "depth": str(depth or "")}
        for length in dict.fromkeys(ends):
            name = "enumerated" if length == ENUMERATED else f"{length} steps"
            (error,) = errors[errors["context_length"] == length].to_dict("records")
            row[f"mean (median), {name}"] = mean_and_median(error)
            row[f"worst 1 %, {name}"] = f"{error['worst_share']:.0%}"
        row["diverged"] = diverged[method, env, states, depth] if is_cell else ""
        rows.append(row)
    return pd.DataFrame(rows)


@page
def thresholds(tables, run):
    """Other thresholds.

    Other thresholds: for each test whose threshold is one half, the number of cells in which it would hold at another
    threshold. Tests that compare TD with MC are counted in settings instead of cells. The rank correlation of MSVE and
    context length is compared with the negative square root of the threshold.
    """
    weights, mean_weights = tables["weights"], tables["mean_weights"]
    lines = []
    for threshold in THRESHOLDS:
        # The rank correlation is compared with the negative square root.
        compared = {
            "msve_falls": -np.sqrt(threshold),
            "pattern": threshold,
            "same_pattern": threshold,
            "same_noise": threshold,
        }
        counts = {name: _number_that_holds(run["on_experiments"], name, bound) for name, bound in compared.items()}
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


@page
def readings(tables, run):
    """Readings.

    Our readings of what the paper leaves open. They are not statements of the paper.
    """
    rows = settings_rows(run["settings"]["readings"], run["schema"]["properties"]["readings"])
    return pd.DataFrame(rows).drop(columns="paper")


@page
def settings(tables, run):
    """Settings.

    The hyperparameters of this run.
    """
    without_readings = {key: value for key, value in run["settings"].items() if key != "readings"}
    return pd.DataFrame(settings_rows(without_readings, run["schema"]))


@page
def audit(tables, run):
    """Audit.

    Both engines train the first seed of each cell on its first tasks. The table shows the largest difference between
    their entries of u and A at the snapshots in this part of the run, divided by the largest entry; "tasks" is the
    number of tasks at the last of these snapshots. The evaluation difference compares the MSVE that is computed from
    averages over the context with the MSVE that is computed from whole prompts. A difference above the tolerance stops
    the run.
    """
    return tables["audit"]


@page
def claims_all(tables, run):
    """Every claim.

    Every test in every setting: those of the paper's sentences, our own, and checks of what is true by construction.
    Estimate, 95% interval, threshold, verdict,
    verdict after the correction for the number of settings (false discovery rate of 2.5%, Benjamini and Hochberg), and
    number of trials whose own value meets the threshold. Intervals of means are BCa bootstrap intervals over trials,
    from 10,000 resamples; intervals of shares of trials are Clopper-Pearson intervals.
    """
    return claim_tables.claims_rows(run["claims"])
