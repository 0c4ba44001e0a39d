"""Headline numbers of the study: recomputed by the code of ``tests/headlines.py``, or compared with the pages."""

import os
from pathlib import Path

import headlines
import pandas as pd
import pytest
from drawn import where
from tolerances import ENGINES, SEARCH

from ictd.pipeline.provenance import PROJECT
from studies.emergence import best_numbers, shares

TASKS = 20
FULL = Path(os.environ.get("RESULTS", PROJECT / "results"))


@pytest.fixture
def smoke_results(smoke):
    """The smoke run, with the settings of the study."""
    results = headlines.Results(smoke / "results-smoke")
    results.settings["emergence"] = {"best_numbers": {"tasks": TASKS, "tuning_tasks": TASKS}}
    return results


@pytest.mark.parametrize("depth", [3, 6])
def test_deflated_td(smoke_results, tmp_path, depth):
    results, table = smoke_results, tmp_path / "best_numbers.csv"
    best_numbers.main(results.env, results.states, [results.discount], [depth], TASKS, TASKS, {results.env: {}}, table)
    errors, least = headlines.deflation(results, depth, table)
    headlines.check(errors, ENGINES)
    headlines.check(least, SEARCH)
    deflated, theta = least
    assert deflated.recomputed < theta.recomputed / 5


def test_shares_of_two_numbers(smoke_results, tmp_path):
    results, table = smoke_results, tmp_path / "measures.csv"
    for algo in results.algorithms:
        shares.main(
            algo, results.env, results.states, results.depth, results.discount, True, results.env, {results.env: {}},
            TASKS, results.folder / f"weights/{results.cell(algo)}.npz", table, tmp_path / "exchanged.csv",
        )  # fmt: skip
        headlines.check([headlines.shares_of_two(results, algo, table)], ENGINES)


@pytest.mark.slow
def test_the_pages_count_the_trials_that_learn():
    """``docs/readings.md`` and the README of the study say how many trials learn with all of P and Q."""
    table = FULL / "emergence/reading_runs.csv"
    if not table.exists():
        pytest.skip(f"{table} is missing; run make emergence")
    runs = pd.read_csv(table)
    ours, study = (
        " ".join((PROJECT / page).read_text().split()) for page in ("docs/readings.md", "studies/emergence/README.md")
    )
    fails = where(runs, reading="all_parameters")
    works = where(runs, reading="all_parameters_corner_clipped_skipped")
    overflow, low, learned = (fails["diverged_at"] > 0).sum(), *((one["msve_0"] < 0.5).sum() for one in (fails, works))
    reach = f"{learned} of {len(works)} trials reach an MSVE below 0.5 on enumerated prompts"
    assert reach in ours and reach in study
    assert f"{overflow} of {len(fails)} trials overflow, and {low} of {len(fails)} trials reach an MSVE below" in ours
