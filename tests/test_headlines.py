"""Headline numbers of a run, recomputed by the independent code of ``headlines.py``.

The smoke run is always recomputed.  A slow test recomputes a full run in ``results/``, or in the folder that the
environment variable RESULTS names.
"""

import json
import os
import re
from pathlib import Path

import headlines
import pytest
from html_page import Page
from tolerances import ENGINES, ROUNDING

from ictd.pipeline.provenance import PROJECT
from ictd.report.paper.sentences import counted, in_one_sentence

FULL = Path(os.environ.get("RESULTS", PROJECT / "results"))


@pytest.fixture(scope="module", params=["smoke", pytest.param("full", marks=pytest.mark.slow)])
def results(request, smoke):
    """The smoke run, and the paper's run."""
    if request.param == "smoke":
        return headlines.Results(smoke / "results-smoke")
    if not (FULL / "manifest.json").exists():
        pytest.skip(f"{FULL} has no finished run; run make reproduce, or set RESULTS")
    return headlines.Results(FULL)


def test_first_weights(results):
    for algo in results.algorithms:
        numbers = headlines.pretrained_weights(results, algo, 50)
        assert len(numbers) >= 8  # u and A after several numbers of updates.
        headlines.check(numbers, ENGINES)


def test_msve_on_sampled_prompts(results):
    lengths = results.settings["evaluation"]["context_lengths"]
    headlines.check(headlines.claim_tasks_msve(results, [lengths[0], lengths[-1]]), ENGINES)


def test_claim_on_the_pattern(results):
    for algo in results.algorithms:
        numbers, verdict, stored = headlines.pattern_claim(results, algo)
        headlines.check(numbers, ROUNDING)
        assert verdict == stored


def test_the_summary_is_of_the_claims_of_the_run(results):
    claims, sentences = (json.loads((results.folder / f"{name}.json").read_text()) for name in ("claims", "sentences"))
    report = (results.folder / "report.html").read_text(encoding="utf-8")
    text = " ".join(Page(re.search('<div id="table-summary">(.*?)<!--', report, re.DOTALL)[1]).text.split())
    assert in_one_sentence(counted(sentences)) in text
    names = ("beats_zero", "beats_constant")
    zero, constant = (
        [one["verdict"] == "holds" for one in claims if one["id"].startswith(f"{name}/")] for name in names
    )
    assert f"predicting zero in {sum(zero)} of {len(zero)} cells" in text
    assert f"for all states in {sum(constant)}." in text
    for sentence in sentences:
        is_listed = sentence["kind"] == "claim" and sentence["verdict"] != "holds"
        assert (sentence["quote"].replace("theta^TD", "θTD") in text) == is_listed
