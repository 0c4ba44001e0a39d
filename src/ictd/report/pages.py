"""The pages with tables: summaries, the slider over pretraining, and computing times.

Each page is a function with the decorator ``page``.  The docstring of the function is the page's title and its caption,
and the order of the functions is that of the pages in Snakemake's report.  The rules read this module, so it imports
nothing that takes long; functions import what they need.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ictd.report import html
from ictd.report.registry import title_and_caption
from ictd.report.settings import settings_rows
from ictd.storage import load_json, save_table


class Page(NamedTuple):
    """A page with a table; ``make`` takes what ``main`` gathers, and returns a DataFrame, a list of rows, or HTML."""

    title: str
    caption: str
    make: Callable


PAGES: dict[str, Page] = {}


def page(make: Callable) -> Callable:
    """Register a function that makes a page, under the name of the function."""
    PAGES[make.__name__] = Page(*title_and_caption(make), make)
    return make


def main(
    claims: Path,
    theory: Path,
    sentences: Path,
    tables: list[Path],
    settings: dict,
    schema: Path,
    cells: list[str],
    rules: list[str],
    benchmarks: Path,
    compute: Path,
    folder: Path,
) -> None:
    """Write the pages as HTML, and computing times as CSV.

    ``claims`` has all claims, ``theory`` those on the theory, and ``sentences`` the paper's sentences on its
    experiments.  The slider shows ``cells`` in this order.  Computing times are those of ``rules``, from the folder
    ``benchmarks``.
    """
    import yaml

    from ictd.report.compute import compute_table, load_benchmarks
    from ictd.report.slider import runs_of, slider
    from ictd.report.tables import load_tables

    table = load_tables(tables)
    records, on_theory = load_json(claims), load_json(theory)
    theory_ids = {claim["id"] for claim in on_theory}
    times = compute_table(load_benchmarks(benchmarks, rules))
    save_table(compute, times)
    run = {
        "claims": records,
        "on_theory": on_theory,
        "on_experiments": [claim for claim in records if claim["id"] not in theory_ids],
        "sentences": load_json(sentences),
        "settings": settings,
        "schema": yaml.safe_load(schema.read_text(encoding="utf-8")),
        "times": times,
    }
    save_pages(table, run, folder)
    runs = runs_of(cells, table["mean_entries"], table["learning"], table["weights"], settings["discount"])
    html.save(folder / "slider.html", "slider", slider(runs))


def save_pages(tables: dict, run: dict, folder: Path) -> None:
    """Write all PAGES, each with its caption, from tables by their names and from what else ``main`` gathers."""
    for name, one in PAGES.items():
        content = one.make(tables, run)
        caption = f'<p class="caption">{html.text(one.caption)}</p>\n' if one.caption else ""
        html.save(
            folder / f"{name}.html", name, caption + (content if isinstance(content, str) else html.table(content))
        )


@page
def summary(tables, run):
    """Summary."""
    from ictd.report.summaries import evaluation_summary, summary

    text = summary(run["claims"], run["on_theory"], run["sentences"], run["settings"], run["schema"])
    return text + evaluation_summary(tables["over_tasks"], run["settings"])


@page
def claims(tables, run):
    """The paper's claims on its experiments.

    The sentences with which the paper claims something about its experiments, in the paper's order, and our tests of
    them. A sentence is tested in the cells that it covers: the main setting, or the cells of one hyperparameter study.
    A test holds if its whole 95% interval is on the claim's side of the threshold, it is refuted if the whole interval
    is on the other side, and it is not shown if the interval contains the threshold. A sentence holds if all of its
    parts hold, it is refuted if one part is refuted, and it is not shown otherwise. Questions, speculation, repetitions
    and interpretations are not counted as claims. The column "parts" lists the parts that do not hold, with their
    estimates and intervals.
    """
    from ictd.report import claim_tables

    return claim_tables.sentences_overview(run["sentences"], run["on_experiments"])


@page
def claims_parts(tables, run):
    """Parts of the paper's claims.

    The tests of each sentence: a row for each test and a column for each cell, with the verdict, the estimate and the
    95% interval.
    """
    from ictd.report import claim_tables

    return claim_tables.sentence_parts(run["sentences"], run["on_experiments"])


@page
def claims_ours(tables, run):
    """Our claims and checks.

    Tests that decide no sentence of the paper: our own claims, and checks of statements that are true by construction.
    The column "measured" has the smallest and the largest estimate over settings, and the outermost ends of the
    intervals.
    """
    from ictd.report import claim_tables

    return claim_tables.claims_overview([claim for claim in run["on_experiments"] if claim["kind"] != "paper"])


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
    from ictd.report.theory_claims import theory_overview

    return theory_overview(run["on_theory"], tables["statements"])


@page
def msve(tables, run):
    """MSVE.

    MSVE on unseen tasks, at the shortest and the longest context, and on enumerated prompts. The setting
    evaluation.claim_tasks is the number of these tasks in each trial. Columns: the mean over tasks with its standard
    error over trials (the median over tasks), and the share of the total error that the worst hundredth of the tasks
    contributes. The tasks are not those of Figures 1, 5, 7 and 10. The methods TD and MC are the pretrained
    Transformers. The method theta^TD is the Transformer with the paper's parameters and the best step size.
    """
    from ictd.report import summaries

    return summaries.msve_summary(tables["over_tasks"], tables["weights"])


@page
def mean_weights(tables, run):
    """Mean weights.

    Measures of the mean parameters of each cell, compared with in-context TD. All measures except the cosine of the
    full A are of the identifiable A, without directions that change no output. Columns: cosine between A and in-context
    TD, and between their blocks A11 and A12; shares of the blocks A21 and A22, which are zero in in-context TD, in the
    squared norm of A; share of diagonal entries with the right sign; largest absolute entry of u; step size alpha.
    """
    from ictd.report import summaries

    return summaries.weights_summary(tables["mean_weights"])


@page
def agreement(tables, run):
    """Agreement of TD and MC.

    The agreement between the mean A of multi-task TD and of multi-task MC: correlation, correlation of the residuals
    after removal of the component along in-context TD, and distance divided by the mean norm, with 95% BCa intervals
    over trials in parentheses. Trials with the same seed share tasks, batches and initial values. The columns "no
    common seed" compare the mean over the even seeds of TD with the mean over the odd seeds of MC, which share nothing.
    """
    from ictd.report import summaries

    return summaries.agreement_summary(tables["agreement"])


@page
def pattern(tables, run):
    """Pattern of the weights.

    Does the pattern of in-context TD emerge? The table shows the squared cosine between the mean A and in-context TD
    with its 95% BCa interval over trials, and the number of trials in which the squared cosine is above one half. Both
    are of the identifiable A, without directions that change no output. The squared cosine of the full A is shown for
    comparison.
    """
    from ictd.report import summaries

    return summaries.pattern_by_cell(tables["mean_weights"], tables["weights"])


@page
def thresholds(tables, run):
    """Other thresholds.

    Other thresholds: for each test whose threshold is one half, the number of cells in which it would hold at another
    threshold. Tests that compare TD with MC are counted in settings instead of cells. The rank correlation of MSVE and
    context length is compared with the negative square root of the threshold.
    """
    from ictd.report import summaries

    return summaries.by_threshold(run["on_experiments"], tables["mean_weights"], tables["weights"])


@page
def readings(tables, run):
    """Readings.

    Our readings of what the paper leaves open. They are not statements of the paper.
    """
    rows = settings_rows(run["settings"]["readings"], run["schema"]["properties"]["readings"])
    return [{key: row[key] for key in row if key != "paper"} for row in rows]


@page
def settings(tables, run):
    """Settings.

    The hyperparameters of this run.
    """
    return settings_rows({key: run["settings"][key] for key in run["settings"] if key != "readings"}, run["schema"])


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
def compute(tables, run):
    """Computing time.

    Time and memory of the jobs of each rule, from Snakemake's benchmarks, without figures and report, and the times
    that the paper reports. Jobs run in parallel, so the elapsed time of the workflow is about the sum divided by the
    number of cores. CPU time and memory of jobs shorter than half a second are not measured.
    """
    return run["times"]


@page
def claims_all(tables, run):
    """Every claim.

    Every test in every setting, those of the paper's sentences first: estimate, 95% interval, threshold, verdict,
    verdict after the correction for the number of settings (false discovery rate of 2.5%, Benjamini and Hochberg), and
    number of trials whose own value meets the threshold. Intervals of means are BCa bootstrap intervals over trials,
    from 10,000 resamples; intervals of shares of trials are Clopper-Pearson intervals.
    """
    from ictd.report import claim_tables

    return claim_tables.claims_rows(run["claims"])
