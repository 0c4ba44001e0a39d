"""The study's steps at a small size, compared with slow computations."""

import itertools

import naive
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import where

import ictd
from ictd.evaluation import draw_unseen_tasks
from ictd.pipeline.provenance import PROJECT
from ictd.pretraining import pretrain_history
from ictd.steps import concatenate
from ictd.steps import returns as returns_step
from ictd.steps import tasks as tasks_step
from ictd.storage import save_table
from ictd.weight_measures import decomposition_measures
from studies.emergence import (
    course,
    course_measures,
    phase,
    reading_tables,
    readings,
)

torch.set_num_threads(1)
GAMMA, STATES, DEPTH, LENGTHS, TEST = 0.9, 3, 2, [4, 9], 6
SIZES = {"smallest": 0.1, "largest": 40, "number": 7}
SCALES = [True, False]


def best_size(tuning, length, scaled, depth=DEPTH):
    """The best factor of theta^TD's A among log-spaced step sizes (times n if attention is divided by n)."""
    theta, factor = ictd.theta_td(STATES), STATES if scaled else 1
    sizes = [factor * 0.1 * 400 ** (i / 6) for i in range(7)]
    models = [ictd.Weights(theta.u, size * theta.A) for size in sizes]
    return min(models, key=lambda model: naive.errors(model, tuning, length, depth, scaled).mean())


def unseen(size, stream="ablation"):
    return draw_unseen_tasks(0, STATES, size, 9, GAMMA, "boyan", stream)


@pytest.mark.parametrize(("algo", "scale"), [("td", True), ("mc", False)])
def test_long_runs_are_measured_at_their_snapshots(tmp_path, algo, scale):
    scaled, options = scale, {"threshold": 0.3}
    file = tmp_path / "2-3.npz"
    course.main(algo, "loop", STATES, DEPTH, "2-3", 25, 3, GAMMA, 16, 20, 0.01, 0.2, scale, {"loop": options}, file)
    tasks = ictd.sample_tasks("loop", STATES, 25, ictd.generator(3, "loop", STATES, "course tasks"), **options)
    steps = 20 if algo == "mc" else 1
    unrolls = ictd.unroll(tasks, 16, GAMMA, steps, ictd.generator(3, "loop", STATES, "course unrolls"))
    start = ictd.initial_weights(STATES, 0.2, ictd.generator(3, "loop", STATES, "weights"))
    run = pretrain_history(
        tasks, unrolls, algo, DEPTH, GAMMA, 0.01, start, tasks_seen=[1, 5, 25], scaled=scaled
    ).weights
    stored = np.load(file)
    assert stored["tasks_seen"].tolist() == [1, 5, 25] and stored["seeds"].tolist() == [2, 3]
    np.testing.assert_array_equal(stored["A"][1], run.A)
    np.testing.assert_array_equal(stored["u"][1], run.u)
    given = algo, "loop", STATES, DEPTH, GAMMA, scale, "boyan", {"boyan": {}}, TEST, LENGTHS
    course_measures.main(*given, [file] * 2, tmp_path / "t.csv")
    table = pd.read_csv(tmp_path / "t.csv")
    assert table["tasks_seen"].tolist() == [1, 5, 25] * 4 and table["seed"].tolist() == [2, 2, 2, 3, 3, 3] * 2
    table = table[3:6].reset_index(drop=True)
    data = unseen(TEST)
    for name, values in decomposition_measures(run, GAMMA, scaled).items():
        np.testing.assert_allclose(table[name], values)
    for k in range(3):
        for length in (0, *LENGTHS):
            errors = naive.errors(run[k], data, length, DEPTH, scaled)
            assert table[f"msve_{length}"][k] == pytest.approx(errors.mean())


@pytest.mark.parametrize("scale", SCALES)
def test_the_plane_has_a_row_for_each_run(tmp_path, scale):
    scaled, rate = scale, 0.01
    given = {"discount": GAMMA, "batch_size": 8, "rollout_steps": 15, "initial_gain": 0.2, "scaled_attention": scale}
    sizes = {"test_tasks": TEST, "tuning_tasks": 8, "step_sizes": SIZES}
    for name, learning_rate in (("a", rate), ("b", 1e200)):
        phase.main(
            ["td", "mc"], "boyan", [4, STATES], "5-6", [1, 3], 20, **given, **sizes, learning_rate=learning_rate,
            env_options={"boyan": {}}, output=tmp_path / f"both/{name}.csv",
        )  # fmt: skip
    concatenate.main([tmp_path / "both/a.csv", tmp_path / "both/b.csv"], [tmp_path / "both.csv"])
    both = pd.read_csv(tmp_path / "both.csv")
    assert list(both) == phase.COLUMNS and len(both) == 32
    assert both["seed"].tolist() == 2 * (8 * [5] + 8 * [6]) and both["states"].tolist() == 4 * (4 * [4] + 4 * [STATES])
    assert (both["diverged_at"][16:] > 0).all() and both[["msve", "cosine"]][16:].isna().all(axis=None)
    tasks = ictd.sample_tasks("boyan", STATES, 20, ictd.generator(5, "boyan", STATES, "phase tasks"))
    unrolls = ictd.unroll(tasks, 8, GAMMA, 15, ictd.generator(5, "boyan", STATES, "phase unrolls"))
    start = ictd.initial_weights(STATES, 0.2, ictd.generator(5, "boyan", STATES, "weights"))
    data, tuning = (
        draw_unseen_tasks(5, STATES, size, 1, GAMMA, "boyan", purpose)
        for purpose, size in (("phase", TEST), ("phase tuning", 8))
    )
    for row, (depth, algo) in zip(both[4:8].itertuples(), itertools.product([1, 3], ["td", "mc"]), strict=True):
        run = pretrain_history(tasks, unrolls, algo, depth, GAMMA, rate, start, scaled=scaled).weights
        assert (row.algo, row.env, row.states, row.depth, row.seed, row.diverged_at) == (algo, "boyan", 3, depth, 5, 0)
        assert row.msve == pytest.approx(naive.errors(run[0], data, 0, depth, scaled).mean())
        theta = best_size(tuning, 0, scaled, depth)
        assert row.theta_msve == pytest.approx(naive.errors(theta, data, 0, depth, scaled).mean())
        for name, values in decomposition_measures(run, GAMMA, scaled).items():
            assert name not in phase.MEASURES or getattr(row, name) == pytest.approx(values[0])


READINGS = {
    "as_is": {},
    "all": {"parameters": "all", "layers": "separate", "clip": 0.1, "scaled_attention": False},
    "fast": {"learning_rate": 1e200},
}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Files of readings, and their inputs."""
    folder, stored = tmp_path_factory.mktemp("readings"), []
    for seeds in ("0-1", "2-2"):
        files = [folder / name / f"{seeds}.npz" for name in ("tasks", "returns")]
        tasks_step.main("boyan", STATES, seeds, 15, 8, {"boyan": {}}, files[0])
        returns_step.main("boyan", STATES, GAMMA, 12, *files)
        stored += [(tasks, batches) for _, tasks, batches in tasks_step.stored_runs(*files)]
    ours = {
        "scaled_attention": True, "parameters": "theta", "layers": "looped", "initial_gain": 0.3,
        "learning_rate": 0.01, "clip": 0, "precision": "float64", "corner": "drawn", "skip": False,
    }  # fmt: skip
    files = {name: sorted((folder / name).iterdir()) for name in ("tasks", "returns")}
    for name, changes in READINGS.items():
        readings.main(
            ["td", "mc"], "boyan", STATES, DEPTH, GAMMA, ours | changes, "loop", {"loop": {"threshold": 0.3}}, TEST,
            LENGTHS, **files, output=folder / f"{name}.npz",
        )  # fmt: skip
    zero = pd.DataFrame(itertools.product(range(3), LENGTHS), columns=["seed", "context_length"])
    save_table(folder / "baselines.csv", zero.assign(method="zero", states=STATES, depth=DEPTH, msve=5.0))
    paths = [folder / f"{name}.npz" for name in READINGS]
    reading_tables.main(
        PROJECT / "report/claims.toml",
        paths,
        folder / "baselines.csv",
        "boyan",
        STATES,
        DEPTH,
        GAMMA,
        folder / "tables",
    )
    return folder, stored


def test_readings_are_pretrained_and_evaluated_by_algorithm_and_seed(read):
    folder, stored = read
    for name, changes in READINGS.items():
        found = np.load(folder / f"{name}.npz")
        assert found["seeds"].tolist() == [0, 1, 2] and found["context_lengths"].tolist() == LENGTHS
        assert found["scaled"] == (changes.get("scaled_attention", True))
        if name == "fast":
            assert (found["diverged_at"] > 0).all() and np.isnan(found["A"]).all()
            continue
        assert not found["diverged_at"].any()
        for (a, algo), (i, (tasks, unrolls)) in itertools.product(enumerate(("td", "mc")), enumerate(stored)):
            if name == "as_is":
                start = ictd.initial_weights(STATES, 0.3, ictd.generator(i, "boyan", STATES, "weights"))
                run = ictd.pretrain_history(tasks, unrolls, algo, DEPTH, GAMMA, 0.01, start).weights[-1]
                np.testing.assert_allclose(found["A"][a, i], run.A)
                np.testing.assert_allclose(found["P"][a, i], run.P())
                data = draw_unseen_tasks(i, STATES, TEST, 9, GAMMA, "loop", threshold=0.3)
                for k, length in enumerate(LENGTHS):
                    np.testing.assert_allclose(found["msve"][a, i, k], naive.errors(run, data, length, DEPTH))
                np.testing.assert_allclose(found["enumerated_msve"][a, i], naive.errors(run, data, 0, DEPTH))
            else:
                np.testing.assert_allclose(found["Q"][a, i, :6, :6], found["A"][a, i])
                np.testing.assert_allclose(found["P"][a, i, -1], [*found["u"][a, i], 1])
                assert np.abs(found["P"][a, i, :-1]).max() > 0.01


def test_tables_of_readings(read):
    folder, _ = read
    verdicts, runs = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("readings", "reading_runs"))
    assert verdicts["reading"].unique().tolist() == runs["reading"].unique().tolist() == [*READINGS]
    for reading, (a, algo) in itertools.product(READINGS, enumerate(("td", "mc"))):
        found, rows = np.load(folder / f"{reading}.npz"), where(runs, reading=reading, algo=algo)
        P, Q = found["P"][a] ** 2, found["Q"][a] ** 2
        expected = {"diverged_at": found["diverged_at"][a], "msve_0": found["enumerated_msve"][a].mean(axis=1)}
        expected["beyond_P"] = P[:, :-1].sum(axis=(1, 2)) / P.sum(axis=(1, 2))
        expected["beyond_Q"] = 1 - Q[:, :-1, :-1].sum(axis=(1, 2)) / Q.sum(axis=(1, 2))
        for name, values in expected.items():
            np.testing.assert_allclose(rows[name], values, atol=1e-12)
        judged = where(verdicts, reading=reading, algo=algo).set_index("claim")
        assert judged.loc["finite", "verdict"] == ("refuted" if reading == "fast" else "not shown")
