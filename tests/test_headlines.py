"""Headline numbers of a run, recomputed from its files by slow code that the workflow does not use.

The package only draws the random numbers that are not stored: initial weights, unseen tasks and their trajectories.
The smoke run is always recomputed.  A slow test recomputes a full run in ``results/``, or in the folder that the
environment variable RESULTS names.
"""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import naive
import naive_theory
import numpy as np
import pytest
import torch
from drawn import where
from html_page import Page
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.pipeline.grid import cells
from ictd.pipeline.provenance import PROJECT
from ictd.report.paper.sentences import counted, in_one_sentence
from ictd.report.tables import load_table
from ictd.storage import load_json

FULL = Path(os.environ.get("RESULTS", PROJECT / "results"))


@pytest.fixture(scope="module", params=["smoke", pytest.param("full", marks=pytest.mark.slow)])
def run(request):
    """The smoke run, or the paper's run, with its main setting."""
    folder = request.getfixturevalue("smoke") / "results-smoke" if request.param == "smoke" else FULL
    if not (folder / "manifest.json").exists():
        pytest.skip(f"{FULL} has no finished run; run make reproduce, or set RESULTS")
    settings = load_json(folder / "manifest.json")["settings"]
    env, n, depth = (settings[key][0] for key in ("envs", "states", "depths"))
    return SimpleNamespace(folder=folder, env=env, n=n, depth=depth, **settings["readings"] | settings)


def cell_of(run, algo):
    return f"{algo}-{run.env}-{run.n}-{run.depth}"


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_first_weights(run, algo):
    """Algorithms 1 and 2, from the stored tasks and batches, compared with the snapshots of the first seed."""
    place = f"{run.env}-{run.n}"
    (name, *_) = sorted(path.name for path in (run.folder / "tasks" / place).glob("0-*.npz"))
    tasks, stored = (np.load(run.folder / path / name) for path in (f"tasks/{place}", f"runs/{cell_of(run, algo)}"))
    start = ictd.initial_weights(run.n, run.initial_gain, ictd.generator(0, run.env, run.n, "weights"))
    u, A = (torch.tensor(part, requires_grad=True) for part in (start.u, start.A))
    adam = torch.optim.Adam([u, A], lr=run.learning_rate)
    snapshots = stored["tasks_seen"][0]
    assert (snapshots <= 50).sum() >= 4
    for k in range(50):
        r, (p, counts) = tasks["reward"][0, k], np.zeros((2, run.n, run.n))
        p[tasks["followers"]] = tasks["transition"][0, k]
        counts[tasks["followers"]] = tasks["transitions"][0, k]  # Of S_t to S_{t+1} in the batch.
        Z = naive_theory.prompts(p, r, run.discount)
        for _ in range(run.depth):
            Z = Z + naive_theory.prompt_layer(Z, u, A) / (run.n if run.scaled_attention else 1)
        value = -Z[:, -1, -1]
        w = value.detach().numpy()
        if algo == "td":
            error = (counts * (r[:, None] + run.discount * w - w[:, None])).sum(axis=1)
        else:
            returns = np.load(run.folder / f"returns/{place}" / name)["return_sums"][0, k]
            error = returns - counts.sum(axis=1) * w
        adam.zero_grad()
        # Errors are constants in the semi-gradient, and Adam minimises.
        (-value @ torch.from_numpy(error / counts.sum())).backward()
        adam.step()
        for i in np.flatnonzero(snapshots == k + 1):
            for part, wanted in ((u, stored["u"]), (A, stored["A"])):
                assert np.abs(part.detach().numpy() - wanted[0, i]).max() < ENGINES * np.abs(wanted).max()


@pytest.mark.parametrize("end", [0, -1])
def test_msve_on_sampled_prompts(run, end):
    """Means over the tasks that decide the claims, of the pretrained Transformers and of LSTD."""
    lengths, env = run.evaluation["context_lengths"], run.evaluation_env
    m, given = lengths[end], {"states": run.n, "context_length": lengths[end]}
    unseen, baselines = (load_table(run.folder / f"metrics/unseen_{name}.csv") for name in ("msve", "baselines"))
    unseen = where(unseen, env=run.env, depth=run.depth, **given)
    weights = {algo: np.load(run.folder / f"weights/{cell_of(run, algo)}.npz") for algo in run.algos}
    for seed in range(run.seeds):
        rngs = [ictd.generator(seed, env, run.n, purpose) for purpose in ("claims", "claims contexts")]
        tasks = ictd.sample_tasks(env, run.n, run.evaluation["claim_tasks"], rngs[0], **run.env_options.get(env, {}))
        errors = {name: [] for name in (*weights, "lstd")}
        for p, r, path in zip(
            tasks.transition, tasks.reward, ictd.sample_paths(tasks, max(lengths), rngs[1]), strict=True
        ):
            path, v = path[: m + 1], np.linalg.solve(np.eye(run.n) - run.discount * p, r)
            ridge = run.evaluation["lstd_ridge"]
            estimates = {"lstd": naive.lstd(path, r[path[:-1]], run.n, run.discount, ridge)}
            for algo, arrays in weights.items():
                model = ictd.Weights(arrays["u"][seed], arrays["A"][seed])
                case = model, run.depth, path, r, run.discount, run.scaled_attention
                estimates[algo] = naive.sampled_values(*case)
            for name, estimate in estimates.items():
                errors[name].append(naive.stationary(p) @ (v - estimate) ** 2)
        for name, found in errors.items():
            rows = where(unseen, algo=name) if name in weights else where(baselines, method=name, **given)
            assert np.mean(found) == pytest.approx(where(rows, seed=seed)["msve"].item(), rel=ENGINES)


def squared_cosine(A, discount):
    """Squared cosine between A and theta^TD's, zero if it is negative.

    All matrices A + a z' with a = [-gamma 1; 1] have the same outputs.  The cosine is computed for the matrix whose
    lower half has columns that sum to zero.
    """
    n = len(A) // 2
    A = A - np.outer(np.repeat([-discount, 1], n), A[n:].mean(axis=0))
    theta = np.kron([[-1, 1], [0, 0]], np.eye(n))
    return max(0, (A * theta).sum() / np.linalg.norm(A) / np.linalg.norm(theta)) ** 2


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_claim_on_the_pattern(run, algo):
    A = np.load(run.folder / f"weights/{cell_of(run, algo)}.npz")["A"]
    (claim,) = (one for one in load_json(run.folder / "claims.json") if one["id"] == f"pattern/{cell_of(run, algo)}")
    low, high = naive.bca_interval(A, lambda mean: squared_cosine(mean, run.discount), 10_000)
    found = squared_cosine(A.mean(axis=0), run.discount), low, high
    assert found == pytest.approx([claim[name] for name in ("value", "low", "high")], rel=ROUNDING)
    half = claim["threshold"]
    assert claim["verdict"] == ("holds" if low > half else "refuted" if high < half else "not shown")


def test_the_summary_is_of_the_claims_of_the_run(run):
    claims, sentences = (load_json(run.folder / f"{name}.json") for name in ("claims", "sentences"))
    report = (run.folder / "report.html").read_text(encoding="utf-8")
    text = " ".join(Page(re.search('<div id="table-summary">(.*?)<!--', report, re.DOTALL)[1]).text.split())
    assert in_one_sentence(counted(sentences)) in text
    pattern, final, zero, constant = (
        sum(one["verdict"] == "holds" for one in claims if one["id"].startswith(f"{name}/")) or "none"
        for name in ("pattern", "converged", "beats_zero", "beats_constant")
    )
    assert f"in {pattern} (squared cosine above one half), and have converged in {final}." in text
    assert f"predicting zero in {zero}, and lower than that of one constant for all states in {constant}." in text
    verdicts = {claim["id"]: claim["verdict"].replace(" ", "-") for claim in claims}
    counts = [sentence for sentence in sentences if sentence["kind"] == "claim"]
    for sentence, row in zip(counts, re.findall('<tr><th scope="row">(.*?)</tr>', report), strict=True):
        squares = re.findall(r'<td>(?:<a class="(.*?)")?', row)
        for cell, square in zip(cells(vars(run)), squares, strict=True):
            names = str(cell), cell.setting, f"{cell.env}-{cell.states}" if cell.depth == run.depth else ""
            found = [verdicts[part] for part in sentence["parts"] if part.split("/")[1] in names]
            assert square == max(found, key=["holds", "not-shown", "refuted"].index, default="")
