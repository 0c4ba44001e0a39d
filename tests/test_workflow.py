"""The whole workflow at smoke size, run for real."""

import json
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import copy_project, snakemake
from html_page import Page

import ictd
from ictd.grid import cells

ROOT = Path(__file__).parents[1]
SMOKE = {
    **yaml.safe_load((ROOT / "config.yaml").read_text()),
    **yaml.safe_load((ROOT / "tests/smoke.yaml").read_text()),
}
FIGURES = [*(f"figure_{k:02d}" for k in range(1, 11)), "learning"]


def test_everything_is_made_and_nothing_is_left_to_do(smoke):
    results = smoke / "results-smoke"
    assert (results / "report.html").exists()
    again = snakemake(smoke, "--cores", "1", "--dry-run")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_tables_have_a_row_for_each_observation(smoke):
    metrics = smoke / "results-smoke/metrics"
    msve = pd.read_csv(metrics / "msve.csv")
    grid = {tuple(cell) for cell in cells(SMOKE)}
    assert set(msve[["algo", "env", "states", "depth"]].itertuples(index=False, name=None)) == grid
    lengths = SMOKE["evaluation"]["context_lengths"]
    assert len(msve) == len(grid) * SMOKE["seeds"] * len(lengths)
    assert not msve.duplicated(["algo", "env", "states", "depth", "seed", "context_length"]).any()
    assert (msve["msve"] > 0).all()
    weights = pd.read_csv(metrics / "weights.csv")
    assert len(weights) == len(grid) * SMOKE["seeds"] and weights["finite"].all()
    baselines = pd.read_csv(metrics / "baselines.csv").pivot(
        index=["states", "depth", "seed", "context_length"], columns="method", values="msve"
    )
    np.testing.assert_allclose(baselines["theta_td"], baselines["batch_td"], rtol=1e-9)


def test_a_run_equals_the_library_called_by_hand(smoke):
    states, depth, seed = 4, 6, 2
    tasks = ictd.sample_tasks("loop", states, 300, ictd.generator(seed, "loop", states, "tasks"), threshold=0.5)
    unrolls = ictd.unroll(tasks, 64, 0.9, 200, ictd.generator(seed, "loop", states, "unrolls"))
    start = ictd.initial_weights(states, 0.1, ictd.generator(seed, "loop", states, "weights"))
    weights = ictd.pretrain(tasks, unrolls, "mc", depth, 0.9, 0.001, start.u, start.A)
    with np.load(smoke / "results-smoke/weights/mc-loop-4-6.npz") as stored:
        assert stored["seeds"].tolist() == [0, 1, 2]
        assert stored["A"][seed].tobytes() == weights.A.tobytes()
        assert stored["u"][seed].tobytes() == weights.u.tobytes()
        assert stored["history_A"][seed, -1].tobytes() == weights.A.tobytes()


def test_figures_show_something(smoke):
    for name in FIGURES:
        image = matplotlib.image.imread(smoke / f"results-smoke/figures/{name}.png")
        assert min(image.shape[:2]) > 200
        dark = (image[..., :3].min(axis=-1) < 0.5).mean()
        assert 0.002 < dark < 0.5, name
        assert (smoke / f"results-smoke/figures/{name}.svg").read_text().rstrip().endswith("</svg>")


def test_claims_are_decided_and_reported(smoke):
    claims = json.loads((smoke / "results-smoke/claims.json").read_text())
    assert {claim["verdict"] for claim in claims} <= {"holds", "fails"}
    for claim in claims:
        if claim["value"] is not None:
            met = (
                claim["value"] < claim["threshold"] if claim["relation"] == "<" else claim["value"] > claim["threshold"]
            )
            assert met == (claim["verdict"] == "holds")
    listed = Page(smoke / "results-smoke/report.html").rows()
    for claim in claims:
        row = next(row for row in listed if row[0] == claim["id"])
        assert row[-1] == claim["verdict"]


def test_report_is_one_page_that_needs_no_network(smoke):
    page = Page(smoke / "results-smoke/report.html")
    assert page.headings[:3] == [page.headings[0], "Claims", "Figures"]
    assert {"Readings", "Settings", "Compute", "Versions"} <= set(page.headings)
    assert len(page.images) == len(FIGURES)
    assert all(source.startswith("data:image/png;base64,") for source in page.images)
    assert not page.outside
    for name in FIGURES:
        caption = (ROOT / f"report/captions/{name}.rst").read_text().strip()
        assert caption in page.text


def test_snakemake_report_holds_figures_tables_and_the_report(smoke):
    target = smoke / "results-smoke/snakemake-report.html"
    done = snakemake(smoke, "--report", str(target))
    assert done.returncode == 0, done.stderr
    text = target.read_text()
    for name in [*FIGURES, "claims", "settings", "compute", "report"]:
        assert re.search(rf"\b{name}\.(png|html)", text), name


@pytest.mark.parametrize("changes", [["seeds_per_job=1"], ["seeds_per_job=3", "states=[4]", "depths=[6]", "seeds=3"]])
def test_same_bytes_for_other_jobs_cores_and_grids(smoke, tmp_path, changes):
    folder = copy_project(tmp_path)
    shared = [
        "weights/td-boyan-4-6.npz",
        "evaluation/mc-loop-4-6.npz",
        "figures/figure_01.png",
        "figures/figure_02.svg",
    ]
    targets = [f"results-smoke/{name}" for name in shared]
    done = snakemake(folder, *targets, "--cores", "1", "--config", *changes)
    assert done.returncode == 0, done.stderr
    for target in targets:
        assert (folder / target).read_bytes() == (smoke / target).read_bytes(), target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("discount=1", "Config: discount is 1; give less than 1."),
        ("sedes=3", "Config: there is an unknown key 'sedes'"),
        ("envs=[boyan, ring]", "Config: envs names 'ring'"),
    ],
)
def test_bad_config_stops_before_anything_runs(smoke, change, message):
    done = snakemake(smoke, "--cores", "1", "--dry-run", "--config", change)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_single_seed_algo_and_setting_is_enough(tmp_path):
    folder = copy_project(tmp_path)
    small = ["algos=[mc]", "envs=[loop]", "states=[2]", "depths=[1]", "seeds=1", "tasks=3", "discount=0", "snapshots=1"]
    done = snakemake(folder, "--cores", "2", "--config", *small)
    assert done.returncode == 0, done.stderr
    page = Page(folder / "results-smoke/report.html")
    assert len(page.images) == 5
