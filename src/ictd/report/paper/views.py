"""Tables that only the report of the paper's part shows, as HTML."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL, cells
from ictd.pipeline.provenance import PROJECT
from ictd.prompt import ENUMERATED
from ictd.report import claim_tables, html
from ictd.report.claim import has_pattern
from ictd.report.names import LOOKS
from ictd.report.paper import sentence_tables, tables
from ictd.report.paper.sentences import counted, in_one_sentence
from ictd.report.part import table
from ictd.report.verdicts import (
    HOLDS,
    by_name,
    count,
    holding,
    verdict_by,
    verdict_in_words,
    verdict_on,
    words,
)
from ictd.storage import load_text

THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6)


@table
def summary(results):
    """By our thresholds, at the settings of this run."""
    on_theory = [claim for claim in results.on_theory if claim["kind"] == "paper"]
    statements, proved = count(on_theory)
    others = [
        f"{html.text(group[0]['statement'].rstrip('.'))} is {verdict_in_words(group)}."
        for group in by_name(on_theory).values()
        if verdict_on(group) != HOLDS
    ]
    tests = by_name(results.claims)
    names = "pattern", "converged", "beats_zero", "beats_constant"
    pattern, final, below_zero, below_constant = (holding(tests.get(name, [])) or "none" for name in names)
    return f"""<ul class="lead">
<li><b>{in_one_sentence(counted(results.decided))}</b>{_not_in_this_run(results)}</li>
<li>Of {len(cells(results.settings))} cells (algorithm and setting of pretraining), <b>the mean weights resemble
{html.text("theta^TD")} in {pattern}</b> (squared cosine above one half), and have converged in {final}. Tested on
{words(results.evaluated_on[0])} with the longest context, the mean squared value error (MSVE) is lower than that of
predicting zero in {below_zero}, and lower than that of one constant for all states in {below_constant}.</li>
<li>Of <b>{statements} statements and steps of the theory, {proved} hold</b> on all tasks, layers and query
states tried. {" ".join(others)}</li>
</ul>"""


@table
def verdict_chart(results):
    """The paper's sentences, and the verdicts of their tests in each cell (algorithm of pretraining, environment, n
    states, L layers): ✓ holds, ? not shown, ✗ refuted, empty without a test. A square leads to the test that is closest
    to its threshold.
    """
    return sentence_tables.verdict_chart(results.decided, results.claims, cells(results.settings), results.main)


@table
def run(results):
    """What was pretrained, and with which settings."""
    settings = results.settings
    grid = cells(settings)
    *others, last = [f"multi-task {LOOKS[algo].words}" for algo in settings["algos"]]
    algos = " and ".join([", ".join(others), last] if others else [last])
    numbers = {
        "looped linear Transformer": len(grid) * settings["seeds"],
        "setting": len({cell.setting for cell in grid}),
        "seed": settings["seeds"],
        "task": settings["tasks"],
    }
    counts = [f"{number:,} {word}{'s' if number > 1 else ''}" for word, number in numbers.items()]
    return f"""<p>{counts[0]}: {algos}, {counts[1]}, {counts[2]} in each, {counts[3]} for each seed.
{difference_from_paper(settings, results.schema)}</p>"""


def _not_in_this_run(results) -> str:
    """How many sentences are about settings that a run does not have."""
    number = sum(one.kind == "claim" for one in results.sentences) - sum(counted(results.decided).values())
    return f" {number} more are about settings that are not in this run." if number else ""


@table
def claims(results):
    """A test holds if its 95% interval is on the claim's side of the threshold, is refuted if it is on the other side,
    and is not shown otherwise. A sentence has the worst verdict of its tests in all cells that it covers.

    It covers the main setting, or the cells of one hyperparameter study. The closest test is the one with the worst
    verdict that is closest to its threshold, or farthest beyond it. Tests beside a sentence are ours: they are
    stricter, or look at the same from another side, and decide nothing.
    """
    counted, others = (
        html.table(sentence_tables.sentences_overview(results.decided, results.on_experiments, counted))
        for counted in (True, False)
    )
    return f"{counted}<h4>Questions, speculation, repetitions and interpretations, which are not counted</h4>\n{others}"


@table
def theory(results):
    """The statements of the theory.

    An inequality holds in a setting if its left side exceeds its right side by at most an allowance for rounding, for
    every task, layer and query state. The table also shows the smallest ratio of the right side to the left side, among
    tasks whose left side is at least a thousand times this allowance. Limits are tested only if the discount to the
    power of the largest depth is below 1e-6.
    """
    statements = results.theory["statements"]
    tightest = statements[statements["layer"] > 0].groupby("statement")["tightest"].min()
    groups = by_name(results.on_theory)
    overview = claim_tables.claims_overview(results.on_theory)
    ratios = [f"{tightest[name]:.3g}" if tightest.get(name, 0) > 0 else "" for name in groups]
    overview.insert(2, "least bound / measured", ratios)
    overview.insert(0, "section", [group[0]["section"] for group in groups.values()])
    return html.table(overview)


@table
def msve(results):
    """MSVE on unseen tasks, at the shortest and the longest context, and on enumerated prompts. The setting
    evaluation.claim_tasks is the number of these tasks in each trial. Columns: the mean over tasks with its standard
    error over trials (the median over tasks), and the share of the total error that the worst hundredth of the tasks
    contributes. The tasks are those of Figures 1, 5, 7 and 10. The methods TD and MC are the pretrained
    Transformers. The method theta^TD is the Transformer with the paper's parameters and the best step size. One
    constant is the mean observed reward over 1 - gamma. Its tuned form adds rewards of zero, and LSTD with pseudo-steps
    adds steps from each state to all states equally; step size and numbers of additions are the best on other tasks.
    """
    runs = results.metrics["weights"].groupby(CELL)["diverged_at"]
    diverged = runs.agg(lambda tasks: f"{(tasks > 0).sum()} of {len(tasks)}")
    evaluations = {results.evaluated_on[0]: results.metrics} | results.elsewhere
    rows = []
    for place, metrics in evaluations.items():
        lengths = metrics["over_tasks"]["context_length"]
        ends = [lengths[lengths != ENUMERATED].min(), lengths.max(), ENUMERATED]
        of_methods = metrics["over_tasks"].groupby(["method", "env", "states", "depth"], sort=False)
        for (method, env, states, depth), errors in of_methods:
            is_cell = env != "any"
            row = {"method": method, "env": env if is_cell else "", "states": states, "depth": str(depth or "")}
            row |= {"evaluated on": words(place)} if results.elsewhere else {}
            for length in dict.fromkeys(ends):
                name = "enumerated" if length == ENUMERATED else f"{length} steps"
                (error,) = errors[errors["context_length"] == length].to_dict("records")
                row[f"mean (median), {name}"] = tables.mean_and_median(error)
                row[f"worst 1 %, {name}"] = f"{error['worst_share']:.0%}"
            row["diverged"] = diverged[method, env, states, depth] if is_cell else ""
            rows.append(row)
    return html.table(pd.DataFrame(rows))


@table
def thresholds(results):
    """For each test whose threshold is one half, the number of cells in which it would hold at another threshold.

    Tests that compare TD with MC are counted in settings instead of cells. The rank correlation of MSVE and
    context length is compared with the negative square root of the threshold.
    """
    weights, mean_weights = results.metrics["weights"], results.metrics["mean_weights"]
    tests = by_name(results.on_experiments)
    lines = []
    for threshold in THRESHOLDS:
        # The rank correlation is compared with the negative square root.
        compared = {
            "msve_falls": -np.sqrt(threshold),
            "pattern": threshold,
            "same_pattern": threshold,
            "same_noise": threshold,
        }
        counts = {name: _number_that_holds(tests[name], bound) for name, bound in compared.items() if name in tests}
        trials = weights.assign(has=has_pattern(weights["cosine"], threshold))
        full = has_pattern(mean_weights["raw_cosine"], threshold)
        every = trials.groupby(CELL)["has"].all()
        counts["pattern, full A"] = f"{full.sum()} of {len(full)}"
        counts["pattern in every trial"] = f"{every.sum()} of {len(every)}"
        lines.append({"threshold": threshold, **counts})
    return html.table(pd.DataFrame(lines))


def _number_that_holds(group: list[dict], threshold: float) -> str:
    """In how many settings a claim would hold with another threshold."""
    held = [
        claim["low"] is not None
        and verdict_by(claim["relation"], threshold, claim["value"], claim["low"], claim["high"]) == HOLDS
        for claim in group
    ]
    return f"{sum(held)} of {len(held)}"


@table
def readings(results):
    """Our readings of what the paper leaves open. They are not statements of the paper."""
    rows = settings_rows(results.settings["readings"], results.schema["properties"]["readings"])
    return html.table(pd.DataFrame(rows).drop(columns="paper"))


@table
def settings(results):
    """The hyperparameters of this run."""
    without_readings = {key: value for key, value in results.settings.items() if key != "readings"}
    return html.table(pd.DataFrame(settings_rows(without_readings, results.schema)))


@table
def audit(results):
    """Both engines train the first seed of each cell on its first tasks. The table shows the largest difference between
    their entries of u and A at the snapshots in this part of the run, divided by the largest entry; "tasks" is the
    number of tasks at the last of these snapshots. The evaluation difference compares the MSVE that is computed from
    averages over the context with the MSVE that is computed from whole prompts. A difference above the tolerance stops
    the run.
    """
    return html.table(results.metrics["audit"])


@table
def studies(results):
    """Each study has a page, once its command has run."""
    items = [_study(readme, results.folder) for readme in sorted(PROJECT.glob("studies/*/README.md"))]
    return f"<ul>{''.join(items)}</ul>"


def _study(readme: Path, folder: Path) -> str:
    """A study's title, with links to its page, if it has run before, and to its README, as an item of a list."""
    title = re.search("^# (.*)\n", load_text(readme), re.MULTILINE)[1]
    name, beside = readme.parent.name, os.path.relpath(readme, folder)
    page, made = f"{name}/{name}.html", f"<code>make {name}</code>"
    has_run = (folder / page).exists()
    shown = f'<a class="file" href="{page}">page</a> of {made}' if has_run else f"{made} makes <code>{page}</code>"
    return f'<li>{html.text(title)}: {shown}, <a class="file" href="{beside}">README</a></li>'


def settings_rows(settings: dict, schema: dict, section: str = "") -> list[dict]:
    """Tabulate settings.

    Parameters
    ----------
    settings : dict, values by configuration key
    schema : dict, the JSON schema of these settings
    section : str, what precedes the names of nested keys

    Returns
    -------
    list of dicts with key, value, the paper's value, and meaning
    """
    rows = []
    for key, value in settings.items():
        entry = schema["properties"][key]
        if "properties" in entry:
            rows += settings_rows(value, entry, f"{section}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            paper = json.dumps(entry["paper"]) if "paper" in entry else ""
            rows.append({"key": section + key, "value": text, "paper": paper, "meaning": entry["description"]})
    return rows


def difference_from_paper(settings: dict, schema: dict) -> str:
    """A sentence that names the settings that differ from the paper's."""
    other = [row["key"] for row in settings_rows(settings, schema) if row["paper"] not in ("", row["value"])]
    if not other:
        return "The settings of this run are the paper's."
    return (
        f"The settings of this run are not the paper's: {', '.join(other)}. Its verdicts are on this run, not on the"
        " paper; docs/results.md has those at the paper's settings."
    )
