"""The study's steps at a small size, beside slow computations."""

import itertools

import naive
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import where
from naive import larger_weights

import ictd
import ictd.baselines
from ictd.decomposition import decomposition_measures, seen
from ictd.pattern import agreement_measures, pattern_shares, remainder
from ictd.pipeline.provenance import PROJECT
from ictd.pipeline.storage import save_arrays
from ictd.pipeline.table_files import save_table
from ictd.pipeline.training_data import save_material
from ictd.pretraining import pretrain_history
from ictd.statistics import bootstrap_interval, bootstrap_means
from ictd.unseen_tasks import draw_unseen_tasks
from studies.emergence import (
    ablate,
    ablation_tables,
    course,
    course_measures,
    join_tables,
    phase,
    reading_tables,
    readings,
)
from studies.emergence.batched_engine import Transformers, theta_masks

torch.set_num_threads(1)
GAMMA, STATES, DEPTH, LENGTHS, TEST = 0.9, 3, 2, [4, 9], 6
SIZES = {"smallest": 0.1, "largest": 40, "number": 7}
SCALES = ["context_length", "none"]
MEASURES = ["unseen", "alpha", "cosine", "theta", "preconditioner", "outside", "H", "diagonal", "symmetric", "u"]


def enumerated(tasks, i):
    return [naive.enumerated_prompt(tasks.transition[i], tasks.reward[i], GAMMA, s) for s in range(STATES)]


def prompts_of(data, i, length):
    """Whole prompts of all query states; those of length 0 are enumerated."""
    if not length:
        return enumerated(data.tasks, i)
    path = data.paths[i, : length + 1]
    return [naive.sampled_prompt(path, data.tasks.reward[i], GAMMA, s) for s in range(STATES)]


def errors_of(weights, data, length, scaled, depth=DEPTH):
    """MSVE of each task, by whole prompts."""
    errors = []
    for i in range(len(data.tasks)):
        values = [naive.transformer(weights, depth, prompt, scaled) for prompt in prompts_of(data, i, length)]
        errors.append((data.tasks.stationary[i] * (np.array(values) - data.value[i]) ** 2).sum())
    return np.array(errors)


def best_size(tuning, length, scaled, depth=DEPTH):
    """Of log-spaced sizes, times n where attention is divided by it, the factor of theta^TD's A that is best."""
    theta, factor = ictd.theta_td(STATES), STATES if scaled else 1
    sizes = [factor * 0.1 * 400 ** (i / 6) for i in range(7)]
    means = [errors_of(ictd.Weights(theta.u, size * theta.A), tuning, length, scaled, depth).mean() for size in sizes]
    return sizes[int(np.argmin(means))]


def weights_of(seeds):
    parts = [larger_weights(STATES, seed) for seed in seeds]
    return ictd.Weights(np.stack([part.u for part in parts]), np.stack([part.A for part in parts]))


@pytest.fixture(scope="module")
def ablations(tmp_path_factory):
    folder, runs = tmp_path_factory.mktemp("ablations"), weights_of(range(4))
    paths = []
    for algo, scale in zip(("td", "mc"), SCALES, strict=True):
        paths.append(folder / f"weights/{algo}-loop-3-2.npz")
        save_arrays(paths[-1], seeds=np.array([2, 5, 6, 9]), u=runs.u, A=runs.A, diverged_at=np.array([0, 0, 8, 0]))
        ablate.main(
            STATES, DEPTH, GAMMA, scale, "boyan", {}, TEST, 10, LENGTHS, SIZES, paths[-1],
            folder / f"ablations/{algo}-loop-3-2.npz",
        )  # fmt: skip
    ablation_tables.main(sorted((folder / "ablations").iterdir())[::-1], paths, GAMMA, folder / "tables")
    return {path.stem: pd.read_csv(path) for path in (folder / "tables").iterdir()}


def test_variants_are_evaluated_on_whole_prompts(ablations):
    data = draw_unseen_tasks(0, STATES, TEST, 9, GAMMA, "boyan", "ablation")
    tuning = draw_unseen_tasks(0, STATES, 10, 9, GAMMA, "boyan", "ablation tuning")
    runs = weights_of([0, 1, 3])
    assert ablations["ablations"]["algo"].iloc[0] == "td" and len(ablations["ablations"]) == 2 * 13 * 3 * 3
    for algo, scaled in (("td", True), ("mc", False)):
        cell = {"algo": algo, "env": "loop", "states": 3, "depth": 2}
        table, beside = (where(ablations[name], **cell) for name in ("ablations", "baselines"))
        measures = where(ablations["measures"], **cell)
        assert measures["seed"].tolist() == [2, 5, 9] and list(measures)[5:] == MEASURES
        expected = decomposition_measures(runs, GAMMA, scaled)
        for name in MEASURES:
            np.testing.assert_allclose(measures[name], expected[name])
        parts = ablate.without_parts(runs, GAMMA)
        for name, (k, seed), length in itertools.product(("whole", "G"), enumerate([2, 5, 9]), [0, *LENGTHS]):
            errors = errors_of(parts[name][k], data, length, scaled)
            row = where(table, variant=name, seed=seed, context_length=length)
            assert row[["mean", "median"]].to_numpy()[0] == pytest.approx([errors.mean(), np.median(errors)], rel=1e-9)
        few = draw_unseen_tasks(0, STATES, 10, 9, GAMMA, "boyan", "ablation tuning")
        controls, factors = (where(ablations[name], **cell) for name in ("controls", "factors"))
        assert len(controls) == 4 * 3 * 3 * 3 and len(factors) == 4 * 3
        for name, length in itertools.product(("theta", "no_u"), [0, *LENGTHS]):
            one, tried = parts[name], np.geomspace(0.5, 16, 16)
            scores = [
                np.mean([errors_of(ictd.Weights(one.u[k], f * one.A[k]), few, length, scaled) for k in range(3)])
                for f in tried
            ]  # fmt: skip
            factor = where(factors, variant=name, context_length=length)["factor"].item()
            assert factor == pytest.approx(tried[np.nanargmin(scores)])
            for k, seed in enumerate([2, 5, 9]):
                of = where(controls, variant=name, seed=seed, context_length=length).set_index("control")
                bigger = errors_of(ictd.Weights(one.u[k], factor * one.A[k]), data, length, scaled)
                longer = errors_of(one[k], data, length, scaled, 3 * DEPTH)
                wanted = [bigger.mean(), np.median(bigger), longer.mean(), np.median(longer)]
                found = of.loc[["scaled", "repeated_3"], ["mean", "median"]].to_numpy().ravel()
                np.testing.assert_allclose(found, wanted, rtol=1e-8)
        for length in (0, *LENGTHS):
            size, row = best_size(tuning, length, scaled), where(beside, context_length=length).iloc[0]
            errors = errors_of(ictd.Weights(np.zeros(6), size * ictd.theta_td(STATES).A), data, length, scaled)
            assert row[["best_coefficient", "best_mean", "best_median"]].tolist() == pytest.approx(
                [size, errors.mean(), np.median(errors)]
            )


def test_a_cell_without_a_run_that_lasted_is_answered_in_a_sentence(tmp_path):
    runs = weights_of(range(2))
    save_arrays(tmp_path / "td-loop-3-2.npz", seeds=np.arange(2), u=runs.u, A=runs.A, diverged_at=np.array([3, 8]))
    with pytest.raises(ValueError, match="All runs of td-loop-3-2 diverged, which leaves nothing to take apart"):
        ablate.main(
            STATES, DEPTH, GAMMA, "none", "boyan", {}, TEST, 10, LENGTHS, SIZES, tmp_path / "td-loop-3-2.npz",
            tmp_path / "ablation.npz",
        )  # fmt: skip


def test_blocks_are_removed_from_what_prompts_see():
    weights = weights_of([0])
    parts, A = ablate.without_parts(weights, GAMMA), seen(weights, GAMMA).A
    for block, (rows, columns) in zip(
        ("11", "12", "21", "22"), itertools.product((slice(3), slice(3, 6)), repeat=2), strict=True
    ):
        left = A.copy()
        left[:, rows, columns] = 0
        np.testing.assert_array_equal(parts[f"no_A{block}"].A, left)
        np.testing.assert_array_equal(parts[f"no_A{block}"].u, weights.u)
    coefficient = (-np.trace(A[0, :3, :3]) + np.trace(A[0, :3, 3:])) / 6
    np.testing.assert_allclose(parts["theta"].A[0], coefficient * ictd.theta_td(3).A)
    K = (A[0, :, 3:] - A[0, :, :3]) / 2
    np.testing.assert_allclose(parts["structure"].A[0], np.hstack([-K, K]))
    np.testing.assert_allclose(parts["G"].A[0], np.vstack([np.hstack([-K, K])[:3], np.zeros((3, 6))]))
    np.testing.assert_array_equal(parts["no_u"].A, A)
    np.testing.assert_array_equal(parts["no_u"].u, 0 * weights.u)


def test_residuals_are_correlated_by_pairs_of_runs(ablations):
    table, runs = ablations["correlations"], weights_of([0, 1, 3])
    left = dict(zip([2, 5, 9], remainder(seen(runs, GAMMA).A), strict=True))
    assert table[["kind", "algo", "seed"]].to_numpy().tolist() == [
        ["algos", "td", 2], ["algos", "td", 5], ["algos", "td", 9], ["algos, seeds", "td", 2], ["seeds", "td", 2],
        ["seeds", "mc", 2],
    ]  # fmt: skip
    one, other = left[2].ravel(), left[5].ravel()
    cosine = one @ other / np.sqrt((one @ one) * (other @ other))
    np.testing.assert_allclose(table["cosine"], [1, 1, 1, *[cosine] * 3])
    assert table["null_states"].isna().all() and table["null_entries"].between(0.2, 0.5).all()


@pytest.mark.parametrize(("algo", "scale"), [("td", "context_length"), ("mc", "none")])
def test_long_runs_are_measured_at_their_snapshots(tmp_path, algo, scale):
    scaled, options = scale == "context_length", {"threshold": 0.3}
    course.main(algo, "loop", STATES, DEPTH, 3, 25, 3, GAMMA, 16, 20, 0.01, 0.2, scale, options, tmp_path / "3.npz")
    tasks = ictd.sample_tasks("loop", STATES, 25, ictd.generator(3, "loop", STATES, "course tasks"), **options)
    steps = 20 if algo == "mc" else 1
    unrolls = ictd.unroll(tasks, 16, GAMMA, steps, ictd.generator(3, "loop", STATES, "course unrolls"))
    start = ictd.initial_weights(STATES, 0.2, ictd.generator(3, "loop", STATES, "weights"))
    run = pretrain_history(
        tasks, unrolls, algo, DEPTH, GAMMA, 0.01, start.u, start.A, tasks_seen=[1, 5, 25], scaled=scaled
    ).weights
    stored = np.load(tmp_path / "3.npz")
    assert stored["tasks_seen"].tolist() == [1, 5, 25]
    np.testing.assert_array_equal(stored["A"], run.A)
    np.testing.assert_array_equal(stored["u"], run.u)
    given = algo, "loop", STATES, DEPTH, GAMMA, scale, "boyan", {}, TEST, LENGTHS
    course_measures.main(*given, [tmp_path / "3.npz"] * 2, tmp_path / "t.csv")
    table = pd.read_csv(tmp_path / "t.csv")
    assert table["tasks_seen"].tolist() == [1, 5, 25] * 2 and set(table["seed"]) == {3}
    data = draw_unseen_tasks(0, STATES, TEST, 9, GAMMA, "boyan", "ablation")
    measures = decomposition_measures(run, GAMMA, scaled)
    for k in range(3):
        for name in MEASURES:
            assert table[name][k] == pytest.approx(measures[name][k])
        for length in (0, *LENGTHS):
            assert table[f"msve_{length}"][k] == pytest.approx(errors_of(run[k], data, length, scaled).mean())
        squares = []
        for i in range(TEST):
            values = np.array(
                [naive.transformer(run[k], DEPTH, prompt, scaled) for prompt in enumerated(data.tasks, i)]
            )
            error = data.tasks.reward[i] + GAMMA * data.tasks.transition[i] @ values - values
            squares.append((data.tasks.stationary[i] * error**2).sum())
        assert table["bellman"][k] == pytest.approx(np.sqrt(np.mean(squares)))


@pytest.mark.parametrize("scale", SCALES)
def test_the_plane_has_a_row_for_each_run(tmp_path, scale):
    scaled, rate = scale == "context_length", 0.01
    given = {"discount": GAMMA, "batch_size": 8, "rollout_steps": 15, "initial_gain": 0.2, "attention_scale": scale}
    sizes = {"test_tasks": TEST, "tuning_tasks": 8, "step_sizes": SIZES}
    for name, learning_rate in (("a", rate), ("b", 1e200)):
        phase.main(
            ["td", "mc"], "boyan", STATES, 5, [1, 3], 20, **given, **sizes, learning_rate=learning_rate, env_options={},
            output=tmp_path / f"{name}.csv",
        )  # fmt: skip
    join_tables.main([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "both.csv")
    both = pd.read_csv(tmp_path / "both.csv")
    assert list(both) == phase.COLUMNS and len(both) == 8
    assert (both["diverged_at"][4:] > 0).all() and both[["msve", "cosine"]][4:].isna().all(axis=None)
    tasks = ictd.sample_tasks("boyan", STATES, 20, ictd.generator(5, "boyan", STATES, "phase tasks"))
    unrolls = ictd.unroll(tasks, 8, GAMMA, 15, ictd.generator(5, "boyan", STATES, "phase unrolls"))
    start = ictd.initial_weights(STATES, 0.2, ictd.generator(5, "boyan", STATES, "weights"))
    data, tuning = (
        draw_unseen_tasks(5, STATES, size, 1, GAMMA, "boyan", purpose)
        for purpose, size in (("phase", TEST), ("phase tuning", 8))
    )
    for row, (depth, algo) in zip(both[:4].itertuples(), itertools.product([1, 3], ["td", "mc"]), strict=True):
        run = pretrain_history(tasks, unrolls, algo, depth, GAMMA, rate, start.u, start.A, scaled=scaled).weights
        assert (row.algo, row.env, row.states, row.depth, row.seed, row.diverged_at) == (algo, "boyan", 3, depth, 5, 0)
        assert row.msve == pytest.approx(errors_of(run[0], data, 0, scaled, depth).mean())
        size = best_size(tuning, 0, scaled, depth)
        theta = ictd.Weights(np.zeros(6), size * ictd.theta_td(STATES).A)
        assert row.theta_msve == pytest.approx(errors_of(theta, data, 0, scaled, depth).mean())
        for name, values in decomposition_measures(run, GAMMA, scaled).items():
            assert name not in phase.MEASURES or getattr(row, name) == pytest.approx(values[0])


READINGS = {
    "as_is": {},
    "all": {"parameters": "all", "layers": "separate", "clip": 0.1, "attention_scale": "none"},
    "fast": {"learning_rate": 1e200},
}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Files of readings, and what they are made of."""
    folder, stored = tmp_path_factory.mktemp("readings"), []
    for seeds in ([0, 1], [2]):
        tasks = [
            ictd.sample_tasks("boyan", STATES, 15, ictd.generator(seed, "boyan", STATES, "tasks")) for seed in seeds
        ]
        unrolls = [
            ictd.unroll(one, 8, GAMMA, 12, np.random.default_rng(seed)) for seed, one in zip(seeds, tasks, strict=True)
        ]
        for name, parts in (("tasks", tasks), ("unrolls", unrolls)):
            save_material(folder / name / f"{seeds[0]}-{seeds[-1]}.npz", seeds, parts)
        stored += zip(tasks, unrolls, strict=True)
    ours = {
        "attention_scale": "context_length", "parameters": "theta", "layers": "looped", "initial_gain": 0.3,
        "learning_rate": 0.01, "clip": 0, "precision": "float64", "corner": "drawn", "skip": False,
    }  # fmt: skip
    files = {name: sorted((folder / name).iterdir()) for name in ("tasks", "unrolls")}
    for name, changes in READINGS.items():
        readings.main(
            ["td", "mc"], "boyan", STATES, DEPTH, GAMMA, ours | changes, "loop", {"threshold": 0.3}, TEST, LENGTHS,
            **files, output=folder / f"{name}.npz",
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
        assert found["scaled"] == (changes.get("attention_scale") != "none")
        if name == "fast":
            assert (found["diverged_at"] > 0).all() and np.isnan(found["A"]).all()
            continue
        assert not found["diverged_at"].any()
        for (a, algo), (i, (tasks, unrolls)) in itertools.product(enumerate(("td", "mc")), enumerate(stored)):
            if name == "as_is":
                start = ictd.initial_weights(STATES, 0.3, ictd.generator(i, "boyan", STATES, "weights"))
                run = ictd.pretrain(tasks, unrolls, algo, DEPTH, GAMMA, 0.01, start.u, start.A)
                np.testing.assert_allclose(found["A"][a, i], run.A)
                np.testing.assert_allclose(found["P"][a, i], run.P())
                data = draw_unseen_tasks(i, STATES, TEST, 9, GAMMA, "loop", threshold=0.3)
                for k, length in enumerate(LENGTHS):
                    np.testing.assert_allclose(found["msve"][a, i, k], errors_of(run, data, length, True))
                np.testing.assert_allclose(found["enumerated_msve"][a, i], errors_of(run, data, 0, True))
            else:
                np.testing.assert_allclose(found["Q"][a, i, :6, :6], found["A"][a, i])
                np.testing.assert_allclose(found["P"][a, i, -1], [*found["u"][a, i], 1])
                assert np.abs(found["P"][a, i, :-1]).max() > 0.01


def test_tables_of_readings(read):
    folder, _ = read
    verdicts, runs = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("readings", "reading_runs"))
    assert verdicts["reading"].unique().tolist() == runs["reading"].unique().tolist() == [*READINGS]
    assert set(verdicts["algo"]) == {"td", "mc", "both"} and len(runs) == 3 * 2 * 3
    for reading, (a, algo) in itertools.product(READINGS, enumerate(("td", "mc"))):
        found, rows = np.load(folder / f"{reading}.npz"), where(runs, reading=reading, algo=algo)
        np.testing.assert_array_equal(rows["diverged_at"], found["diverged_at"][a])
        weights = ictd.Weights(found["u"][a], found["A"][a])
        shares = decomposition_measures(weights, GAMMA, bool(found["scaled"]))
        for name in ("alpha", "theta", "preconditioner", "outside"):
            np.testing.assert_allclose(rows[name], shares[name])
        for k, length in enumerate(LENGTHS):
            np.testing.assert_allclose(rows[f"msve_{length}"], found["msve"][a, :, k].mean(axis=1))
        np.testing.assert_allclose(rows["msve_0"], found["enumerated_msve"][a].mean(axis=1))
        for i, row in enumerate(rows.itertuples()):
            P, Q = found["P"][a, i], found["Q"][a, i]
            np.testing.assert_allclose(row.beyond_P, (P[:-1] ** 2).sum() / (P**2).sum(), atol=1e-12)
            outside = (Q[-1] ** 2).sum() + (Q[:-1, -1] ** 2).sum()
            np.testing.assert_allclose(row.beyond_Q, outside / (Q**2).sum(), atol=1e-12)
        judged = where(verdicts, reading=reading, algo=algo).set_index("claim")
        squares = pattern_shares(bootstrap_means(seen(weights, GAMMA).A, 2000))["pattern"]
        np.testing.assert_allclose(judged.loc["pattern", "value"], np.quantile(squares, 0.025))
        assert judged.loc["finite", "verdict"] == ("fails" if reading == "fast" else "holds")
        ratios = np.log10(found["msve"][a, :, 1].mean(axis=-1) / 5)
        np.testing.assert_allclose(judged.loc["beats_zero", "value"], bootstrap_interval(ratios)[1])
    both = where(verdicts, reading="as_is", algo="both").set_index("claim")
    stored = np.load(folder / "as_is.npz")
    pair = [seen(ictd.Weights(u, A), GAMMA).A for u, A in zip(stored["u"], stored["A"], strict=True)]
    distances = agreement_measures(*(bootstrap_means(A, 2000) for A in pair))["distance"]
    assert both.loc["same_place", "value"] == pytest.approx(np.quantile(distances, 0.975))


def test_masks_and_means_over_layers():
    masks = theta_masks(2)
    assert masks[0].sum() == 4 and masks[0, -1, :4].all() and masks[1].sum() == 16 and masks[1, :4, :4].all()
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(2, 3, 2, 5, 5))
    P[..., -1, -1] = [[2.0, -1.0], [-4.0, 3.0], [0.5, 0.25]]
    found = Transformers(P, Q, 6, True).matrices()
    for run in range(3):
        signs = np.sign(P[run, :, -1, -1])
        mean_P, mean_Q = ((signs[:, None, None] * part[run]).mean(axis=0) for part in (P, Q))
        np.testing.assert_allclose(found[0][run], mean_P / mean_P[-1, -1])
        np.testing.assert_allclose(found[1][run], mean_Q * mean_P[-1, -1])
