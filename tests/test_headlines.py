"""Headline numbers of a run, recomputed by the independent code of ``headlines.py``.

The smoke run is always recomputed.  A slow test recomputes a full run in ``results/``, or in the folder that the
environment variable RESULTS names.
"""

import os
from pathlib import Path

import headlines
import naive
import numpy as np
import pytest
from tolerances import DIFFERENCES, ENGINES, ROUNDING

import ictd
from ictd.pipeline.provenance import PROJECT

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


@pytest.mark.parametrize("tasks", [headlines.paper_tasks_msve, headlines.claim_tasks_msve])
def test_msve_on_sampled_prompts(results, tasks):
    lengths = results.settings["evaluation"]["context_lengths"]
    headlines.check(tasks(results, [lengths[0], lengths[-1]]), ENGINES)


def test_claim_on_the_pattern(results):
    for algo in results.algorithms:
        numbers, verdict, stored = headlines.pattern_claim(results, algo)
        headlines.check(numbers, ROUNDING)
        assert verdict == stored


def test_the_gradient_equals_finite_differences():
    weights, step = naive.larger_weights(3), 1e-6
    (task,) = ictd.sample_tasks("boyan", 3, 1, np.random.default_rng(0)).transition
    context = headlines.enumerated_context(task, np.array([1.0, -0.5, 0.3]), 0.9)
    model = 4, 3  # Layers, and the divisor of attention.
    parts = headlines.gradient(context, weights.u, weights.A, *model)
    slopes = np.concatenate([part.reshape(3, -1) for part in parts], axis=1)
    flat = np.append(weights.u, weights.A)
    for k in range(len(flat)):
        ahead, behind = (naive.weights_of(flat + sign * step * (np.arange(len(flat)) == k), 3) for sign in (1, -1))
        rise = headlines.transformer(context, ahead.u, ahead.A, *model)
        rise = rise - headlines.transformer(context, behind.u, behind.A, *model)
        np.testing.assert_allclose(slopes[:, k], rise / (2 * step), atol=DIFFERENCES * np.abs(slopes).max())
