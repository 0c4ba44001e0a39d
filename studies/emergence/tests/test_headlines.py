"""The error of deflated TD and the share of two numbers, recomputed by the code of ``tests/headlines.py``."""

import headlines
import pytest
from tolerances import ENGINES, SEARCH

from studies.emergence import best_numbers, shares

TASKS = 20


@pytest.fixture
def smoke_results(smoke):
    """The smoke run, with the settings of the study."""
    results = headlines.Results(smoke / "results-smoke")
    results.settings["emergence"] = {"best_numbers": {"tasks": TASKS, "tuning_tasks": TASKS}}
    return results


@pytest.mark.parametrize("depth", [3, 6])
def test_deflated_td(smoke_results, tmp_path, depth):
    results, table = smoke_results, tmp_path / "best_numbers.csv"
    best_numbers.main(results.env, results.states, [results.discount], [depth], TASKS, TASKS, {}, table)
    errors, least = headlines.deflation(results, depth, table)
    headlines.check(errors, ENGINES)
    headlines.check(least, SEARCH)
    deflated, theta = least
    assert deflated.recomputed < theta.recomputed / 5


def test_shares_of_two_numbers(smoke_results, tmp_path):
    results, table = smoke_results, tmp_path / "measures.csv"
    for algo in results.algorithms:
        shares.main(
            algo, results.env, results.states, results.depth, results.discount, True, results.env, {}, {}, TASKS,
            results.folder / f"weights/{results.cell(algo)}.npz", table, tmp_path / "exchanged.csv",
        )  # fmt: skip
        headlines.check([headlines.shares_of_two(results, algo, table)], ENGINES)
