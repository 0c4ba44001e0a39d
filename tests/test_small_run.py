"""The paper's steps from tasks to pages at a small size, compared with slow computations."""

import inspect
import itertools

import naive
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import where
from tolerances import ENGINES

import ictd
from ictd import training_data
from ictd.baselines import BASELINES, Given
from ictd.evaluation import baseline_msve, draw_unseen_tasks, factor_scores, layer_measures
from ictd.pipeline.grid import Cell
from ictd.pretraining import pretrain_history
from ictd.statistics import bootstrap
from ictd.steps import audit, baselines, evaluate, pretrain, returns, tasks, weights
from ictd.steps import metrics as metrics_step
from ictd.steps import unseen as unseen_step
from ictd.storage import load_named, save_arrays
from ictd.weight_measures import agreement_measures, pattern_measures, project_identifiable

torch.set_num_threads(1)
LENGTHS, SIZES = [4, 9], np.geomspace(0.2, 3, 4)
OPTIONS = {"boyan": {}, "loop": {"threshold": 0.3}}
SETTINGS = {
    "discount": 0.9, "batch_size": 8, "rollout_steps": 30, "learning_rate": 0.01, "initial_gain": 0.3, "depth": 2,
    "scaled_attention": True, "engine": "compiled", "snapshots": 3, "on_divergence": "record",
    "evaluation_env": "loop", "context_lengths": LENGTHS, "tuning_tasks": 7, "claim_tasks": 6, "lstd_ridge": 0.1,
    "tolerance": 1e-8,
    "step_sizes": {"smallest": 0.2, "largest": 3, "number": 4},
    "env_options": OPTIONS,
}  # fmt: skip
CELLS = [Cell(algo, *rest) for rest in (("boyan", 3, 2), ("boyan", 5, 2), ("loop", 3, 2)) for algo in ("td", "mc")]
DIVERGED = Cell("mc", "boyan", 5, 2)
TASKS, TEST, GROUPS = 12, 5, ["0-1", "2-2"]
STORED = {"task_sets": "tasks", "returns": "returns"}
AUDITED = {"tasks": 5, "unseen_tasks": TEST}


def carry_out(step, **given):
    """Call a step with the settings that it takes, and with the given arguments."""
    step.main(**{name: {**SETTINGS, **given}[name] for name in inspect.signature(step.main).parameters})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run; the last run by MC on Boyan's chain with five states diverges."""
    folder = tmp_path_factory.mktemp("run")
    for cell, group in itertools.product(CELLS, GROUPS):
        at = cell._asdict()
        place = f"{cell.env}-{cell.states}/{group}.npz"
        files = {"tasks": folder / "tasks" / place, "returns": []}
        if cell.algo == "td":
            carry_out(tasks, **at, seeds=group, tasks=TASKS, output=files["tasks"])
        else:
            files["returns"] = [folder / "returns" / place]
            carry_out(returns, **at, tasks=files["tasks"], output=files["returns"][0])
        rate = 1e200 if (cell, group) == (DIVERGED, "2-2") else 0.01
        given = {**at, **files, "learning_rate": rate, "diverged": folder / "diverged"}
        carry_out(pretrain, **given, output=folder / f"runs/{cell}/{group}.npz")
    files = {kind: [folder / f"{kind}/{cell}.npz" for cell in CELLS] for kind in ("weights", "evaluations")}
    files["baselines"] = [folder / f"baselines/{size}.npz" for size in ("3-2", "5-2")]
    for cell, joined in zip(CELLS, files["weights"], strict=True):
        carry_out(weights, depth=2, runs=[folder / f"runs/{cell}/{group}.npz" for group in GROUPS], output=joined)
    carry_out(evaluate, **files, tasks=TEST)
    carry_out(baselines, seeds=3, tasks=TEST, outputs=files["baselines"])
    carry_out(metrics_step, **files, output=folder / "metrics")
    carry_out(unseen_step, **files, output=folder / "metrics")
    audited = {name: sorted(folder.glob(f"{kind}/*/0-1.npz")) for name, kind in STORED.items()}
    audited["trained"] = [folder / f"runs/{cell}/0-1.npz" for cell in sorted(CELLS)]
    carry_out(audit, **audited, **AUDITED, output=folder / "metrics/audit.csv")
    return folder


@pytest.fixture(scope="module")
def trained(run):
    return {cell: dict(np.load(run / f"weights/{cell}.npz")) for cell in CELLS}


@pytest.fixture(scope="module")
def metrics(run):
    return {path.stem: pd.read_csv(path) for path in (run / "metrics").iterdir()}


def model(trained, seed):
    return ictd.Weights(trained["u"][seed], trained["A"][seed])


def check(row, expected):
    """Compare entries of a row of a table with numbers by the names of columns."""
    np.testing.assert_allclose(row[list(expected)].to_numpy(float), [*expected.values()], rtol=1e-8)


def measures_of(weights):
    """Measures of projected weights, and the cosine of those that are not."""
    raw = {"raw_cosine": pattern_measures(weights)["cosine"]}
    return pattern_measures(project_identifiable(weights, 0.9)) | raw


def made(env, states, seed):
    """Tasks, batches and initial weights of a run."""
    streams = {name: ictd.generator(seed, env, states, name) for name in ("tasks", "batches", "weights")}
    drawn = ictd.sample_tasks(env, states, TASKS, streams["tasks"], **OPTIONS[env])
    batches = ictd.unroll(drawn, 8, 0.9, 30, streams["batches"])
    return drawn, batches, ictd.initial_weights(states, 0.3, streams["weights"])


def test_batches_of_other_seeds_are_refused(run):
    files = run / "tasks/loop-3/2-2.npz", run / "returns/loop-3/0-1.npz"
    with pytest.raises(ValueError, match=r"returns/loop-3/0-1\.npz has other seeds than .*tasks/loop-3/2-2\.npz"):
        next(tasks.stored_runs(*files))


def test_the_library_pretrains_the_runs_of_the_workflow(tmp_path, monkeypatch):
    """Tasks, batches, returns and initial weights have the same streams, also if tasks take several blocks."""
    monkeypatch.setattr(training_data, "BLOCK", 50)
    drawn, summed, out = (tmp_path / f"{name}.npz" for name in ("tasks", "returns", "run"))
    at = Cell("mc", "loop", 3, 2)._asdict()
    carry_out(tasks, **at, seeds="0-2", tasks=120, output=drawn)
    carry_out(returns, **at, tasks=drawn, output=summed)
    carry_out(pretrain, **at, tasks=drawn, returns=[summed], diverged=tmp_path, output=out)
    settings = {name: SETTINGS[name] for name in ("learning_rate", "batch_size", "rollout_steps", "initial_gain")}
    settings |= {"updates": 120, "seeds": range(3), "progress": False}
    found = ictd.pretrain(ictd.TaskDistribution("loop", 3, **OPTIONS["loop"]), 2, 0.9, target="mc", **settings)
    for name, array in vars(found.weights).items():
        np.testing.assert_array_equal(np.load(out)[name][:, -1], array)


def test_runs_and_their_snapshots(run, trained):
    """Pretrained on tasks and batches of their streams, although files omit transitions that never occur."""
    assert not np.load(run / "tasks/loop-3/0-1.npz")["followers"].all()
    for cell, seed in itertools.product(CELLS, range(3)):
        stored = trained[cell]
        assert stored["seeds"].tolist() == [0, 1, 2] and stored["tasks_seen"].tolist() == [1, 3, 12]
        if seed == 1:
            assert ictd.load_model(run, str(cell), 1) == ictd.Model(model(stored, 1), 2, 0.9)
        if (cell, seed) == (DIVERGED, 2):
            assert stored["diverged_at"][2] > 0 and np.isnan(stored["A"][2]).all()
            continue
        assert stored["diverged_at"][seed] == 0
        drawn, batches, start = made(cell.env, cell.states, seed)
        of_run = cell.algo, 2, 0.9, 0.01, start
        history = pretrain_history(drawn, batches, *of_run, "torch", np.array([1, 3, 12]))
        for name, array in vars(history.weights).items():
            np.testing.assert_allclose(stored[f"history_{name}"][seed], array, atol=ENGINES)
            np.testing.assert_array_equal(stored[name][seed], stored[f"history_{name}"][seed, -1])
        truth = ictd.value_function(drawn.transition, drawn.reward, 0.9)
        error = (drawn.stationary * (history.estimates - truth) ** 2).sum(axis=1)
        expected = [error[:1].mean(), error[1:3].mean(), error[3:].mean()]
        np.testing.assert_allclose(stored["online_msve"][seed], expected, atol=ENGINES)


def test_a_divergence_stops_the_run_unless_it_is_recorded(run, tmp_path):
    files = {"tasks": run / "tasks/boyan-5/0-1.npz", "returns": []}
    given = {"algo": "td", "env": "boyan", "states": 5, "learning_rate": 1e60, "on_divergence": "fail", **files}
    out, left = tmp_path / "run.npz", tmp_path / "td-boyan-5-2-seed-0.npz"
    with pytest.raises(ValueError, match=r"^td-boyan-5-2, seed 0: .* at task \d+ of 12; its finite snapshots are in"):
        carry_out(pretrain, **given, diverged=tmp_path, output=out)
    kept = np.load(left)
    drawn, batches, start = made("boyan", 5, 0)
    for size, u, A in zip(kept["tasks_seen"], kept["u"], kept["A"], strict=True):
        history = pretrain_history(drawn[:size], batches[:size], "td", 2, 0.9, 1e60, start)
        assert history.weights[-1] == ictd.Weights(u, A)
    assert 1 <= len(kept["tasks_seen"]) < 3 and not out.exists()
    carry_out(pretrain, **given | {"learning_rate": 0.01}, diverged=tmp_path, output=out)
    assert out.exists() and not left.exists()


def unseen(seed, states, size=TEST, *stream):
    return draw_unseen_tasks(seed, states, size, 9, 0.9, "loop", *stream, **OPTIONS["loop"])


def test_evaluations_equal_those_on_whole_prompts(run, trained, metrics):
    for cell, seed in itertools.product(CELLS, range(3)):
        found, weights = np.load(run / f"evaluations/{cell}.npz"), model(trained[cell], seed)
        data = unseen(seed, cell.states)
        errors = np.array([naive.errors(weights, data, length, 2) for length in (0, *LENGTHS)])
        np.testing.assert_allclose(found["enumerated_msve"][seed], errors[0])
        np.testing.assert_allclose(found["msve"][seed], errors[1:])
        rows = where(metrics["msve"], **cell._asdict(), seed=seed)
        np.testing.assert_allclose(rows["msve"], errors[1:].mean(axis=1))
        row = where(metrics["weights"], **cell._asdict(), seed=seed).iloc[0]
        others = {"enumerated_msve": errors[0].mean(), "diverged_at": trained[cell]["diverged_at"][seed]}
        check(row, measures_of(weights) | others)


def test_baselines_are_tuned_on_other_tasks(run, metrics):
    """Candidates are compared by errors on whole prompts; each trial has its own tasks."""
    states = 5
    theta, tuning = ictd.theta_td(states), unseen(0, states, 7, "tuning")
    models = [ictd.Weights(theta.u, size * theta.A) for size in SIZES]
    scores = [np.mean([naive.errors(model, tuning, length, 2) for length in LENGTHS]) for model in models]
    tuned = where(metrics["step_sizes"], states=states, depth=2)
    np.testing.assert_allclose(tuned["msve"], scores)
    np.testing.assert_allclose(tuned["step_size"], SIZES)
    contexts, given = [tuning.context(length) for length in LENGTHS], Given(0.9, 2, 0.1, True, {})
    of_zeros = factor_scores(BASELINES["constant_tuned"], tuning, contexts, given, SIZES)
    factors = {"theta_td": SIZES[np.argmin(scores)], "constant_tuned": SIZES[of_zeros.argmin()]}
    given, stored = Given(0.9, 2, 0.1, True, factors), np.load(run / f"baselines/{states}-2.npz")
    for seed in range(3):
        data = unseen(seed, states)
        expected = baseline_msve(factors.keys() | {"lstd", "zero"}, data, [data.context(m) for m in LENGTHS], given)
        for name, errors in expected.items():
            np.testing.assert_allclose(stored[name][seed], errors)
            rows = where(metrics["baselines"], method=name, states=states, depth=2, seed=seed)
            np.testing.assert_allclose(rows["msve"], errors.mean(axis=1))


def test_tables_over_seeds(trained, metrics):
    """Means over seeds, and intervals over resampled seeds, with and without common seeds."""
    stored = [trained[cell] for cell in CELLS[-2:]]
    for cell, one in zip(CELLS[-2:], stored, strict=True):
        mean = ictd.Weights(one["u"].mean(axis=0), one["A"].mean(axis=0))
        check(where(metrics["mean_weights"], **cell._asdict()).iloc[0], measures_of(mean))
        A = project_identifiable(ictd.Weights(one["history_u"], one["history_A"]), 0.9).A
        left = np.linalg.norm(A - A[:, -1:], axis=(2, 3)) / np.linalg.norm(A[:, -1:], axis=(2, 3))
        np.testing.assert_allclose(where(metrics["learning"], **cell._asdict())["to_go"], left.ravel())
    td, mc = (project_identifiable(ictd.Weights(one["u"], one["A"]), 0.9).A for one in stored)
    apart = agreement_measures(td[0], mc[1])
    expected = agreement_measures(td.mean(axis=0), mc.mean(axis=0))
    expected |= {"apart": apart["correlation"], "residual_apart": apart["residual_correlation"]}
    resampled = bootstrap(agreement_measures, td, mc)["distance"]
    _, expected["distance_low"], expected["distance_high"] = resampled.estimate()
    check(where(metrics["agreement"], env="loop").iloc[0], expected)


def test_claims_are_decided_on_more_tasks(trained, metrics):
    """Each trial has its own tasks, the same for all cells; theta^TD has its tuned step size."""
    claim_tasks = {(seed, states): unseen(seed, states, 6, "claims") for seed in range(3) for states in (3, 5)}
    for cell in CELLS:
        rows, layers = (where(metrics[name], **cell._asdict()) for name in ("unseen_msve", "layers"))
        assert len(rows) == 3 * len(LENGTHS)
        models = [model(trained[cell], seed) for seed in range(3)]
        for seed in range(3):
            measured = layer_measures(models[seed], claim_tasks[seed, cell.states], 2)
            row = layers[layers["seed"] == seed][["layer_is_td", "converging"]]
            np.testing.assert_allclose(row, [[*measured.values()]])
        kept = [0, 1] if cell == DIVERGED else [0, 1, 2]
        for length in (0, *LENGTHS):
            errors = np.array([naive.errors(models[seed], claim_tasks[seed, cell.states], length, 2) for seed in kept])
            means = errors.mean(axis=1)
            if length:
                found = rows[(rows["context_length"] == length) & rows["seed"].isin(kept)]["msve"]
                np.testing.assert_allclose(found, means, rtol=1e-8)
            place = {"method": cell.algo, "env": cell.env, "states": cell.states, "context_length": length}
            expected = {"mean": errors.mean(), "median": np.median(errors), "worst_share": errors.max() / errors.sum()}
            expected["standard_error"] = means.std(ddof=1) / np.sqrt(len(kept))
            check(where(metrics["over_tasks"], **place).iloc[0], expected)
    theta, tuned = ictd.theta_td(5), where(metrics["step_sizes"], states=5).sort_values("msve")["step_size"].iloc[0]
    baseline = ictd.Weights(theta.u, tuned * theta.A)
    means = [naive.errors(baseline, claim_tasks[i, 5], length, 2).mean() for i in range(3) for length in LENGTHS]
    rows = where(metrics["unseen_baselines"], method="theta_td", states=5)
    np.testing.assert_allclose(rows.sort_values(["seed", "context_length"])["msve"], means, rtol=1e-8)


def test_mean_entries_are_those_of_the_runs_that_did_not_diverge(trained, metrics):
    for cell, stored in trained.items():
        kept, entries = stored["diverged_at"] == 0, where(metrics["mean_entries"], **cell._asdict())
        assert kept.sum() == (2 if cell == DIVERGED else 3)
        for matrix in ("u", "A"):
            found = where(entries, matrix=matrix).sort_values(["tasks_seen", "row", "column"])["mean"]
            np.testing.assert_allclose(found, stored[f"history_{matrix}"][kept].mean(axis=0).ravel())


def test_the_audit_trains_the_first_tasks_again(run, metrics, tmp_path):
    table = metrics["audit"]
    assert [Cell(*row[:4]) for row in table.itertuples(index=False)] == sorted(CELLS)
    assert set(table["tasks"]) == {3} and set(table["seed"]) == {0} and (table["difference"] < 1e-10).all()
    assert (table["evaluation_difference"] < 1e-10).all() and (table["evaluation_difference"] > 0).any()
    files = {name: [run / f"{kind}/loop-3/0-1.npz"] for name, kind in STORED.items()}
    files["trained"] = [run / f"runs/{algo}-loop-3-2/0-1.npz" for algo in ("td", "mc")]
    said = r"audit.tolerance, 1e-08: mc-loop-3-2, seed 0, weights after 3 tasks by [\d.e-]+ of the largest; do not use"
    wrong, arrays = tmp_path / "mc-loop-3-2/0-1.npz", load_named(files["trained"][1], "tasks_seen", "u", "A")
    arrays["A"][0, 1, 0, 0] += 1e-6
    save_arrays(wrong, **arrays)
    with pytest.raises(ValueError, match=said):
        carry_out(audit, **files | AUDITED | {"trained": [files["trained"][0], wrong]}, output=tmp_path / "no.csv")
    assert not (tmp_path / "no.csv").exists()
