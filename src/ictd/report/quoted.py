"""Numbers and tables of the paper's part that pages quote (``ictd.report.numbers``)."""

from collections.abc import Iterator

import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report.claim import as_records
from ictd.report.paper_claims import check_claims
from ictd.report.sentences import Sentence, counted, decide
from ictd.report.tables import rows_with
from ictd.report.verdicts import (
    by_name,
    closest,
    counts_in_words,
    holding,
    measured,
    needs,
    outcome,
    words,
)

# Tests of the pattern of theta^TD, and those of all of A, as the paper plots it.
PATTERN, PATTERN_FULL = "pattern", "pattern_full"


def quoted_numbers(
    tables: dict[str, pd.DataFrame], records: list[dict], sentences: list[dict]
) -> dict[str, float | int]:
    """Numbers by their names in pages.

    Parameters
    ----------
    tables : dict of the result tables over_tasks, learning, pretrained and neu
    records : list of records of all claims
    sentences : list of records of the paper's sentences
    """
    counts = counted(sentences)
    numbers = {"sentences": sum(counts.values())}
    numbers |= {f"sentences/{verdict.replace(' ', '_')}": count for verdict, count in counts.items()}
    for name, error in _errors(tables["over_tasks"]):
        numbers[name] = error.mean
        numbers |= {f"{name}/median": error.median, f"{name}/worst": error.worst_share}
    longest = tables["over_tasks"]["context_length"].max()
    of_cells = rows_with(tables["over_tasks"], context_length=longest)
    of_cells = of_cells[of_cells["env"] != "any"]["mean"]
    numbers |= {"msve/lowest": of_cells.min(), "msve/highest": of_cells.max()}
    for claim in records:
        if claim["id"].startswith("beats_zero/") and claim["low"] is not None:
            for key, end in (("", "value"), ("/low", "low"), ("/high", "high")):
                numbers[f"over_zero/{claim['setting']}{key}"] = 10 ** claim[end] - 1
    return numbers | _expected_updates(tables["pretrained"], tables["neu"])


def _errors(over_tasks: pd.DataFrame) -> Iterator[tuple[str, tuple]]:
    """The names of the MSVEs, ``msve/METHOD[-ENV]-STATES[-DEPTH]/STEPS``, each with its row."""
    for error in over_tasks.itertuples():
        place = [error.method, "" if error.env == "any" else error.env, error.states, error.depth or ""]
        name = "-".join(str(part) for part in place if part != "")
        length = "enumerated" if error.context_length == ENUMERATED else error.context_length
        yield f"msve/{name}/{length}", error


def _expected_updates(pretrained: pd.DataFrame, neu: pd.DataFrame) -> dict[str, float]:
    """Ratios of norms of expected updates.

    ``update_at_theta_td/CELL`` compares theta^TD with step size one with the pretrained weights, as a median over
    trials.  ``separate_over_looped`` compares separate parameters of the layers with shared ones: the medians of cells,
    and the largest ratio at theta^TD.
    """
    trained = rows_with(pretrained, position=0.0)
    at_theta = (trained["theta_td"] / trained["looped_norm"]).groupby([trained[key] for key in CELL]).median()
    numbers = {f"update_at_theta_td/{'-'.join(map(str, cell))}": ratio for cell, ratio in at_theta.items()}
    ratios = (trained["separate_norm"] / trained["looped_norm"]).groupby([trained[key] for key in CELL]).median()
    numbers |= {"separate_over_looped/lowest": ratios.min(), "separate_over_looped/highest": ratios.max()}
    norms = neu.pivot(index=["algo", "env", "states", "layer"], columns="space", values="norm")
    largest = (norms["separate"] / norms["looped"]).groupby("algo").max()
    return numbers | {f"separate_over_looped/theta_td/{algo}": ratio for algo, ratio in largest.items()}


def quoted_tables(
    tables: dict[str, pd.DataFrame],
    records: list[dict],
    sentences: list[Sentence],
    decided: list[dict],
    main: tuple[str, int, int],
) -> dict[str, pd.DataFrame]:
    """Tables by their names in pages.

    Parameters
    ----------
    tables : dict of the result tables that claims are decided on, and of over_tasks
    records, decided : lists of records of all claims, and of the paper's sentences
    sentences : list of Sentence
    main : tuple, env, states and depth of the main setting
    """
    return {
        "sentences": sentences_table(records, decided),
        "choices": choices_table(tables, sentences, main),
        "beside": beside_table(records, decided),
        "accuracy": accuracy_table(tables["over_tasks"], main),
    }


def sentences_table(records: list[dict], decided: list[dict]) -> pd.DataFrame:
    """The sentences that are counted, each with its verdict, the number of tests that hold, and the closest one."""
    by_id = {claim["id"]: claim for claim in records}
    rows = []
    for sentence in decided:
        if sentence["kind"] == "claim":
            parts = [by_id[name] for name in sentence["parts"]]
            claim = closest(parts)
            row = {"sentence": sentence["quote"], "verdict": sentence["verdict"]}
            row["tests that hold"] = f"{holding(parts)} of {len(parts)}"
            row["closest test"] = outcome(claim)
            rows.append(row)
    return pd.DataFrame(rows)


def choices_table(tables: dict[str, pd.DataFrame], sentences: list[Sentence], main: tuple) -> pd.DataFrame:
    """Verdicts on the sentences by the tasks that decide on the MSVE, and by the matrix that has the pattern."""
    on_tasks_of_figures = {"unseen_msve": tables["msve"], "unseen_baselines": tables["baselines"]}
    tasks = {"more tasks (ours)": {}, "the tasks of the paper's figures": on_tasks_of_figures}
    matrices = {"identifiable A (ours)": PATTERN, "A as plotted": PATTERN_FULL}
    rows = []
    for matrix, test in matrices.items():
        for chosen, replaced in tasks.items():
            records = as_records(check_claims(sentences, tables | replaced, main))
            # The other test takes the place of the pattern's.
            others = [claim for claim in records if claim["id"].split("/")[0] != PATTERN or test == PATTERN]
            others += [
                claim | {"id": claim["id"].replace(test, PATTERN)}
                for claim in records
                if claim["id"].split("/")[0] == test != PATTERN
            ]
            counts = counted(decide(sentences, others, main))
            rows.append({"MSVE is tested on": chosen, "pattern is tested on": matrix, **counts})
    return pd.DataFrame(rows)


def beside_table(records: list[dict], decided: list[dict]) -> pd.DataFrame:
    """Our tests that stand beside the paper's sentences: verdicts in all cells, and extremes of what is measured."""
    names = {name.split("/")[0] for sentence in decided for name in sentence["beside"]}
    rows = []
    for name, group in by_name(records).items():
        if name in names:
            row = {"test": group[0]["statement"], "verdict": counts_in_words(group), "needs": needs(group[0])}
            finite = [claim for claim in group if claim["value"] is not None]
            for column, extreme in (("least", min), ("greatest", max)):
                row[column] = measured(extreme(finite, key=lambda claim: claim["value"])) if finite else ""
            rows.append(row)
    return pd.DataFrame(rows, columns=["test", "verdict", "needs", "least", "greatest"])


def accuracy_table(over_tasks: pd.DataFrame, main: tuple) -> pd.DataFrame:
    """MSVE of all methods in the main setting, at the shortest, a fifth of the longest and the longest context."""
    env, states, depth = main
    rows = rows_with(over_tasks, states=states)
    rows = rows[rows["env"].isin([env, "any"]) & rows["depth"].isin([depth, 0])]
    lengths = sorted(set(rows["context_length"]) - {ENUMERATED})
    shown = dict.fromkeys([lengths[0], min(lengths, key=lambda length: abs(length - lengths[-1] / 5)), lengths[-1]])
    table = []
    for method, errors in rows.groupby("method", sort=False):
        row = {"method": words(method)}
        for length in shown:
            (error,) = rows_with(errors, context_length=length).to_dict("records")
            row[f"{length} steps"] = mean_and_median(error)
        table.append(row)
    return pd.DataFrame(table)


def mean_and_median(error: dict) -> str:
    """The mean with its standard error, which is 0 for a single trial, and the median, from a row of over_tasks."""
    spread = f" ± {error['standard_error']:.2g}" if error["standard_error"] else ""
    return f"{error['mean']:.3g}{spread} ({error['median']:.3g})"
