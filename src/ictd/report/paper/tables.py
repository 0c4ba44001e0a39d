"""Numbers and tables of the paper's part that pages quote (``ictd.report.numbers``)."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from ictd.prompt import ENUMERATED
from ictd.report.paper.sentences import counted, decide
from ictd.report.part import numbers, table
from ictd.report.tables import rows_with
from ictd.report.verdicts import by_name, closest, counts_in_words, holding, measured, needs, outcome, words

# Tests of the pattern of theta^TD, and those of all of A, as the paper plots it.
PATTERN, PATTERN_FULL = "pattern", "pattern_full"


@numbers
def headline(results):
    """Numbers of sentences by verdict, and errors."""
    counts = {"": counted(results.decided), "of_figures/": _counts(results, results.on_tasks_of_figures, PATTERN_FULL)}
    found = {"sentences": sum(counts[""].values())}
    for kind, by_verdict in counts.items():
        found |= {f"sentences/{kind}{verdict.replace(' ', '_')}": number for verdict, number in by_verdict.items()}
    over_tasks = results.metrics["over_tasks"]
    for name, error in _errors(over_tasks):
        found[name] = error.mean
        found |= {f"{name}/median": error.median, f"{name}/worst": error.worst_share}
    of_cells = over_tasks[over_tasks["env"] != "any"]
    longest = rows_with(of_cells, context_length=of_cells["context_length"].max())["mean"]
    found |= {"msve/lowest": longest.min(), "msve/highest": longest.max()}
    enumerated = rows_with(of_cells, context_length=ENUMERATED)
    constant = rows_with(over_tasks, method="constant", context_length=ENUMERATED).set_index("states")["mean"]
    found["enumerated/below_constant"] = int((enumerated["mean"] < enumerated["states"].map(constant)).sum())
    tests = by_name(results.on_experiments)
    ratios = [claim["value"] for claim in tests.get("beats_constant", [])]
    times = [10**ratio for ratio in ratios if ratio is not None]
    if times:
        found |= {"times_constant/lowest": min(times), "times_constant/highest": max(times)}
    for claim in tests.get("beats_zero", []):
        if claim["low"] is not None:
            for key, end in (("", "value"), ("/low", "low"), ("/high", "high")):
                found[f"over_zero/{claim['setting']}{key}"] = 10 ** claim[end] - 1
    return found


def _errors(over_tasks: pd.DataFrame) -> Iterator[tuple[str, tuple]]:
    """The names of the MSVEs, ``msve/METHOD[-ENV]-STATES[-DEPTH]/STEPS``, each with its row."""
    for error in over_tasks.itertuples():
        place = [error.method, "" if error.env == "any" else error.env, error.states, error.depth or ""]
        name = "-".join(str(part) for part in place if part != "")
        length = "enumerated" if error.context_length == ENUMERATED else error.context_length
        yield f"msve/{name}/{length}", error


@table
def sentences(results):
    """The sentences that are counted, each with its verdict, the number of tests that hold, and the closest one."""
    by_id = {claim["id"]: claim for claim in results.claims}
    rows = []
    for sentence in results.decided:
        if sentence["kind"] == "claim":
            parts = [by_id[name] for name in sentence["parts"]]
            claim = closest(parts)
            row = {"sentence": sentence["quote"], "verdict": sentence["verdict"]}
            row["tests that hold"] = f"{holding(parts)} of {len(parts)}"
            row["closest test"] = outcome(claim)
            rows.append(row)
    return pd.DataFrame(rows, columns=["sentence", "verdict", "tests that hold", "closest test"])


@table
def choices(results):
    """Verdicts on the sentences by the tasks that decide on the MSVE, and by the matrix that has the pattern."""
    tasks = {
        "more tasks (ours)": results.on_experiments,
        "as many tasks as in the paper's figures": results.on_tasks_of_figures,
    }
    matrices = {"identifiable A (ours)": PATTERN, "A as plotted": PATTERN_FULL}
    rows = [
        {"MSVE is tested on": chosen, "pattern is tested on": matrix, **_counts(results, records, test)}
        for matrix, test in matrices.items()
        for chosen, records in tasks.items()
    ]
    return pd.DataFrame(rows)


def _counts(results, records: list[dict], pattern: str) -> dict[str, int]:
    """Number of sentences by verdict, given the records of claims, and the name of the claim on the pattern."""
    tested = [
        replace(one, tests=[pattern if name == PATTERN else name for name in one.tests]) for one in results.sentences
    ]
    return counted(decide(tested, records, results.main, results.evaluated_on[0]))


@table
def beside(results):
    """Our tests that stand beside the paper's sentences: verdicts in all cells, and extremes of what is measured."""
    names = {name.split("/")[0] for sentence in results.decided for name in sentence["beside"]}
    rows = []
    for name, group in by_name(results.on_experiments).items():
        if name in names:
            row = {"test": group[0]["statement"], "verdict": counts_in_words(group), "needs": needs(group[0])}
            finite = [claim for claim in group if claim["value"] is not None]
            for column, extreme in (("least", min), ("greatest", max)):
                row[column] = measured(extreme(finite, key=lambda claim: claim["value"])) if finite else ""
            rows.append(row)
    return pd.DataFrame(rows, columns=["test", "verdict", "needs", "least", "greatest"])


@table
def accuracy(results):
    """MSVE of all methods in the main setting, at the shortest, a fifth of the longest and the longest context."""
    env, states, depth = results.main
    rows = rows_with(results.metrics["over_tasks"], states=states)
    rows = rows[rows["env"].isin([env, "any"]) & rows["depth"].isin([depth, 0])]
    lengths = sorted(set(rows["context_length"]) - {ENUMERATED})
    shown = dict.fromkeys([lengths[0], min(lengths, key=lambda length: abs(length - lengths[-1] / 5)), lengths[-1]])
    means = []
    for method, errors in rows.groupby("method", sort=False):
        row = {"method": words(method)}
        for length in shown:
            (error,) = rows_with(errors, context_length=length).to_dict("records")
            row[f"{length} steps"] = mean_and_median(error)
        means.append(row)
    return pd.DataFrame(means)


def mean_and_median(error: dict) -> str:
    """The mean with its standard error, which is 0 for a single trial, and the median, from a row of over_tasks."""
    spread = f" ± {error['standard_error']:.2g}" if error["standard_error"] else ""
    return f"{error['mean']:.3g}{spread} ({error['median']:.3g})"
