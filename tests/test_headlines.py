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

TASKS = [headlines.paper_tasks_msve, headlines.claim_tasks_msve]
FULL = Path(os.environ.get("RESULTS", PROJECT / "results"))


@pytest.fixture(scope="module")
def smoke_results(smoke):
    return headlines.Results(smoke / "results-smoke")


@pytest.fixture(scope="module")
def full_results():
    if not (FULL / "manifest.json").exists():
        pytest.skip(f"{FULL} has no finished run; run make reproduce, or set RESULTS")
    return headlines.Results(FULL)


def ends(results):
    lengths = results.settings["evaluation"]["context_lengths"]
    return [lengths[0], lengths[-1]]


def check_weights(results):
    for algo in results.algorithms:
        numbers = headlines.pretrained_weights(results, algo, 50)
        assert len(numbers) >= 8  # u and A after several numbers of updates.
        headlines.check(numbers, ENGINES)


def check_claim(results):
    for algo in results.algorithms:
        numbers, verdict, stored = headlines.pattern_claim(results, algo)
        headlines.check(numbers, ROUNDING)
        assert verdict == stored


def test_first_weights(smoke_results):
    check_weights(smoke_results)


@pytest.mark.parametrize("tasks", TASKS)
def test_msve_on_sampled_prompts(smoke_results, tasks):
    headlines.check(tasks(smoke_results, ends(smoke_results)), ENGINES)


def test_claim_on_the_pattern(smoke_results):
    check_claim(smoke_results)


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


@pytest.mark.slow
class TestFullRun:
    """The paper's run."""

    def test_first_weights(self, full_results):
        check_weights(full_results)

    @pytest.mark.parametrize("tasks", TASKS)
    def test_msve_on_sampled_prompts(self, full_results, tasks):
        headlines.check(tasks(full_results, ends(full_results)), ENGINES)

    def test_claim_on_the_pattern(self, full_results):
        check_claim(full_results)
