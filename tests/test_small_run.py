"""The paper's steps from tasks to pages at a small size, beside slow computations."""

import inspect
import itertools
import json

import naive
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from drawn import where
from html_page import Page
from projects import ROOT
from tolerances import ENGINES

import ictd
from ictd.decomposition import seen
from ictd.mrp import truncation_bias
from ictd.pattern import agreement_measures, pattern_measures, pattern_shares
from ictd.pipeline.grid import Cell
from ictd.pipeline.storage import load_named, save_arrays, save_json
from ictd.pipeline.training_data import save_material, stored_runs
from ictd.pretraining import pretrain_history
from ictd.report import about, claim, claim_tables, compute, paper_claims, result_tables, summaries
from ictd.report.reference import differences
from ictd.statistics import bootstrap_interval, bootstrap_means
from ictd.steps import audit, baselines, evaluate, pretrain, tasks, unrolls
from ictd.unseen_tasks import draw_unseen_tasks

torch.set_num_threads(1)
LENGTHS, SIZES = [4, 9], np.geomspace(0.2, 3, 4)
SETTINGS = {
    "discount": 0.9, "batch_size": 8, "rollout_steps": 30, "learning_rate": 0.01, "initial_gain": 0.3, "depth": 2,
    "attention_scale": "context_length", "engine": "fused", "snapshots": 3, "on_divergence": "record",
    "evaluation_env": "loop", "context_lengths": LENGTHS, "tuning_tasks": 7, "lstd_ridge": 0.1, "tolerance": 1e-8,
    "step_sizes": {"smallest": 0.2, "largest": 3, "number": 4},
}  # fmt: skip
OPTIONS = {"boyan": {}, "loop": {"threshold": 0.3}}
CELLS = [Cell(algo, *rest) for rest in (("boyan", 3, 2), ("boyan", 2, 2), ("loop", 3, 2)) for algo in ("td", "mc")]
TASKS, TEST, GROUPS = 12, 5, ["0-1", "2-2"]
EVALUATED = {"weights": "weights", "evaluations": "evaluation"}
AUDITED = {"tasks": 5, "unseen_tasks": TEST, "env_options": OPTIONS["loop"]}


def carry_out(step, **given):
    """Call a step with what it takes of the settings, and with what is given."""
    step.main(**{name: {**SETTINGS, **given}[name] for name in inspect.signature(step.main).parameters})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run; the mean weights of Boyan's chain with two states are those of runs that diverged."""
    folder = tmp_path_factory.mktemp("run")
    for cell, group in itertools.product(CELLS, GROUPS):
        at = {"env": cell.env, "states": cell.states, "env_options": OPTIONS[cell.env]}
        place = f"{cell.env}-{cell.states}/{group}.npz"
        files = {"tasks": folder / "tasks" / place, "unrolls": folder / "unrolls" / place}
        if cell.algo == "td":
            carry_out(tasks, **at, seeds=group, tasks=TASKS, output=files["tasks"])
            carry_out(unrolls, **at, tasks=files["tasks"], output=files["unrolls"])
        rate = 1e200 if (cell.algo, cell.states, group) == ("mc", 2, "2-2") else 0.01
        given = {**at, **files, "learning_rate": rate, "diverged": folder / "diverged"}
        # One job for both algorithms in the last setting, and for each in the others.
        cells = [cell] if cell.env == "boyan" else CELLS[-2:] if cell.algo == "td" else []
        carry_out(pretrain, **given, outputs=[folder / f"runs/{one}/{group}.npz" for one in cells])
    for cells in ([cell] for cell in CELLS[:2]), [CELLS[2:4], CELLS[4:]]:
        for some in cells:
            carry_out(
                evaluate, **some[0]._asdict() | {"env_options": OPTIONS["loop"]}, tasks=TEST,
                runs=[folder / f"runs/{cell}/{group}.npz" for cell in some for group in GROUPS],
                **{name: [folder / f"{kind}/{cell}.npz" for cell in some] for name, kind in EVALUATED.items()},
            )  # fmt: skip
    for states in (3, 2):
        files = {
            name: [folder / f"baselines/{states}-2.{end}"] for name, end in (("tuned", "json"), ("baselines", "npz"))
        }
        carry_out(baselines, seeds=3, tasks=TEST, env_options=OPTIONS["loop"], **files)
    cells = sorted(CELLS)
    material = {
        name: [folder / f"{kind}/{cell.env}-{cell.states}/0-1.npz" for cell in cells]
        for name, kind in (("task_sets", "tasks"), ("unrolls", "unrolls"))
    }
    trained = [folder / f"runs/{cell}/0-1.npz" for cell in cells]
    carry_out(audit, **material | AUDITED, trained=trained, output=folder / "audit.json")
    carry_out(
        result_tables, weights=[folder / f"weights/{cell}.npz" for cell in CELLS], audit=folder / "audit.json",
        evaluations=[folder / f"evaluation/{cell}.npz" for cell in CELLS], env_options=OPTIONS,
        baselines=[folder / "baselines/3-2.npz", folder / "baselines/2-2.npz"], output=folder / "metrics",
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def metrics(run):
    return {path.stem: pd.read_csv(path) for path in (run / "metrics").glob("[!.]*")}


def made(env, states, seed):
    """Tasks, unrolls and initial weights of a run."""
    streams = {name: ictd.generator(seed, env, states, name) for name in ("tasks", "unrolls", "weights")}
    drawn = ictd.sample_tasks(env, states, TASKS, streams["tasks"], **OPTIONS[env])
    batches = ictd.unroll(drawn, 8, 0.9, 30, streams["unrolls"])
    return drawn, batches, ictd.initial_weights(states, 0.3, streams["weights"])


def test_tasks_and_unrolls_are_those_of_their_streams(run):
    for (env, states), group in itertools.product((("boyan", 3), ("loop", 3)), GROUPS):
        stored, counted = (np.load(run / f"{name}/{env}-{states}/{group}.npz") for name in ("tasks", "unrolls"))
        assert stored["seeds"].tolist() == counted["seeds"].tolist() == ([0, 1] if group == "0-1" else [2])
        for i, seed in enumerate(stored["seeds"]):
            drawn, batches, _ = made(env, states, int(seed))
            for of, one, arrays in ((stored, drawn, "reward stationary"), (counted, batches, "returns")):
                for name in arrays.split():
                    np.testing.assert_array_equal(of[name][i], getattr(one, name))
            for of, one, name in ((stored, drawn, "transition"), (counted, batches, "transitions")):
                whole = np.zeros((TASKS, states, states))
                whole[:, of["followers"]] = of[name][i]
                np.testing.assert_array_equal(whole, getattr(one, name))


def test_what_is_stored_is_what_was_drawn(tmp_path):
    rng = np.random.default_rng(0)
    sets = [ictd.sample_tasks("loop", 4, 3, rng) for _ in range(2)]
    batches = [ictd.unroll(one, 6, 0.9, 4, rng) for one in sets]
    for name, parts in (("tasks", sets), ("unrolls", batches)):
        save_material(tmp_path / f"{name}.npz", [7, 9], parts)
        assert not np.load(tmp_path / f"{name}.npz")["followers"].all()
    found = list(stored_runs("loop", 4, 0.1, tmp_path / "tasks.npz", tmp_path / "unrolls.npz"))
    assert [seed for seed, *_ in found] == [7, 9]
    for (_, *both, _), *drawn in zip(found, sets, batches, strict=True):
        for one, other in zip(both, drawn, strict=True):
            for name, array in vars(other).items():
                np.testing.assert_array_equal(getattr(one, name), array)
                assert getattr(one, name).dtype == array.dtype


def test_runs_and_their_courses(run):
    for cell, seed in itertools.product(CELLS, range(3)):
        stored = np.load(run / f"weights/{cell}.npz")
        assert stored["seeds"].tolist() == [0, 1, 2] and stored["tasks_seen"].tolist() == [1, 3, 12]
        if (cell.algo, cell.states, seed) == ("mc", 2, 2):
            assert stored["diverged_at"][2] > 0 and np.isnan(stored["A"][2]).all()
            continue
        assert stored["diverged_at"][seed] == 0
        drawn, batches, start = made(cell.env, cell.states, seed)
        history = pretrain_history(
            drawn, batches, cell.algo, 2, 0.9, 0.01, start.u, start.A, "autograd", np.array([1, 3, 12])
        )
        for name, array in (("A", history.weights.A), ("u", history.weights.u)):
            np.testing.assert_allclose(stored[f"history_{name}"][seed], array, atol=ENGINES)
            np.testing.assert_array_equal(stored[name][seed], stored[f"history_{name}"][seed, -1])
        truth = ictd.value_function(drawn.transition, drawn.reward, 0.9)
        error = (drawn.stationary * (history.estimates - truth) ** 2).sum(axis=1)
        expected = [error[:1].mean(), error[1:3].mean(), error[3:].mean()]
        np.testing.assert_allclose(stored["online_msve"][seed], expected, atol=ENGINES)


def test_a_run_that_diverges_stops_unless_it_is_to_be_recorded(run, tmp_path):
    files = {name: run / f"{name}/boyan-2/0-1.npz" for name in ("tasks", "unrolls")}
    given = {"env": "boyan", "states": 2, "learning_rate": 1e60, "on_divergence": "fail", **files}
    out = tmp_path / "td-boyan-2-2/out.npz"
    (tmp_path / "td-boyan-2-2-seed-0.npz").touch()
    with pytest.raises(ValueError, match=r"^td-boyan-2-2, seed 0: .* at task \d+ of 12; its finite snapshots are in"):
        carry_out(pretrain, **given, diverged=tmp_path, outputs=[out])
    kept = np.load(tmp_path / "td-boyan-2-2-seed-0.npz")
    drawn, batches, start = made("boyan", 2, 0)
    for size, u, A in zip(kept["tasks_seen"], kept["u"], kept["A"], strict=True):
        before = ictd.pretrain(drawn[:size], batches[:size], "td", 2, 0.9, 1e60, start.u, start.A)
        np.testing.assert_array_equal(A, before.A)
        np.testing.assert_array_equal(u, before.u)
    assert 1 <= len(kept["tasks_seen"]) < 3 and not out.exists()
    carry_out(pretrain, **given | {"learning_rate": 0.01}, diverged=tmp_path, outputs=[out])
    assert not (tmp_path / "td-boyan-2-2-seed-0.npz").exists()


def errors_of(weights, data, length):
    """MSVE of each task by whole prompts, those of length 0 enumerated."""
    errors, states = [], data.tasks.states
    for i in range(len(data.tasks)):
        p, r, path = data.tasks.transition[i], data.tasks.reward[i], data.paths[i, : length + 1]
        prompts = [
            naive.sampled_prompt(path, r, 0.9, s) if length else naive.enumerated_prompt(p, r, 0.9, s)
            for s in range(states)
        ]
        values = np.array([naive.transformer(weights, 2, prompt) for prompt in prompts])
        errors.append((data.tasks.stationary[i] * (values - data.value[i]) ** 2).sum())
    return np.array(errors)


def test_evaluations_and_baselines_by_whole_prompts(run, metrics):
    for cell, seed in itertools.product(CELLS, range(3)):
        stored, found = np.load(run / f"weights/{cell}.npz"), np.load(run / f"evaluation/{cell}.npz")
        data = draw_unseen_tasks(seed, cell.states, TEST, 9, 0.9, "loop", **OPTIONS["loop"])
        weights = ictd.Weights(stored["u"][seed], stored["A"][seed])
        rows = where(metrics["msve"], **cell._asdict(), seed=seed)
        for k, length in enumerate(LENGTHS):
            errors = errors_of(weights, data, length)
            np.testing.assert_allclose(found["msve"][seed, k], errors)
            np.testing.assert_allclose(where(rows, context_length=length)["msve"], [errors.mean()])
        enumerated = errors_of(weights, data, 0)
        np.testing.assert_allclose(found["enumerated_msve"][seed], enumerated)
        row = where(metrics["weights"], **cell._asdict(), seed=seed).iloc[0]
        np.testing.assert_allclose(row["enumerated_msve"], enumerated.mean())
        assert row["diverged_at"] == stored["diverged_at"][seed]
        for name, value in pattern_measures(seen(weights, 0.9)).items():
            np.testing.assert_allclose(row[name], value)
        np.testing.assert_allclose(row["raw_cosine"], pattern_measures(weights)["cosine"])
        assert found["diverged_at"].tolist() == stored["diverged_at"].tolist()
    for states in (3, 2):
        tuned, theta = json.loads((run / f"baselines/{states}-2.json").read_text()), ictd.theta_td(states)
        tuning = draw_unseen_tasks(0, states, 7, 9, 0.9, "loop", "tuning", **OPTIONS["loop"])
        models = [ictd.Weights(theta.u, size * theta.A) for size in SIZES]
        scores = [np.mean([errors_of(model, tuning, length) for length in LENGTHS]) for model in models]
        np.testing.assert_allclose(tuned["msve"], scores)
        np.testing.assert_allclose(tuned["step_sizes"], SIZES)
        best = int(np.argmin(scores))
        assert tuned["step_size"] == tuned["step_sizes"][best]
        for seed, (k, length) in itertools.product(range(3), enumerate(LENGTHS)):
            data = draw_unseen_tasks(seed, states, TEST, 9, 0.9, "loop", **OPTIONS["loop"])
            lstd = [
                naive.lstd(path[: length + 1], r, 0.9, 0.1)
                for path, r in zip(data.paths, data.tasks.reward, strict=True)
            ]
            expected = {"theta_td": errors_of(models[best], data, length), "lstd": data.error(np.array(lstd))}
            expected |= {"batch_td": expected["theta_td"], "zero": (data.tasks.stationary * data.value**2).sum(axis=1)}
            stored = np.load(run / f"baselines/{states}-2.npz")
            for name, errors in expected.items():
                np.testing.assert_allclose(stored[name][seed, k], errors)
                row = where(metrics["baselines"], method=name, states=states, depth=2, seed=seed, context_length=length)
                np.testing.assert_allclose(row["msve"], [errors.mean()])


def test_an_evaluation_without_the_attention_scale(run, tmp_path):
    carry_out(
        evaluate, states=3, env_options=OPTIONS["loop"], tasks=TEST, attention_scale="none",
        runs=[run / "runs/td-loop-3-2/2-2.npz"],
        **{name: [tmp_path / name / "td-loop-3-2.npz"] for name in EVALUATED},
    )  # fmt: skip
    stored = np.load(tmp_path / "weights/td-loop-3-2.npz")
    data = draw_unseen_tasks(2, 3, TEST, 9, 0.9, "loop", **OPTIONS["loop"])
    prompts = [naive.sampled_prompt(data.paths[1, :5], data.tasks.reward[1], 0.9, s) for s in range(3)]
    weights = ictd.Weights(stored["u"][0], stored["A"][0])
    values = [naive.transformer(weights, 2, prompt, scaled=False) for prompt in prompts]
    error = (data.tasks.stationary[1] * (np.array(values) - data.value[1]) ** 2).sum()
    np.testing.assert_allclose(np.load(tmp_path / "evaluations/td-loop-3-2.npz")["msve"][0, 0, 1], error)


def test_tables_over_seeds_and_settings(run, metrics):
    for cell in CELLS:
        stored, row = np.load(run / f"weights/{cell}.npz"), where(metrics["mean_weights"], **cell._asdict()).iloc[0]
        mean = ictd.Weights(stored["u"].mean(axis=0), stored["A"].mean(axis=0))
        for name, value in pattern_measures(seen(mean, 0.9)).items():
            np.testing.assert_allclose(row[name], value)
        np.testing.assert_allclose(row["raw_cosine"], pattern_measures(mean)["cosine"])
        resampled = pattern_shares(bootstrap_means(seen(ictd.Weights(stored["u"], stored["A"]), 0.9).A, 2000))
        for name, values in resampled.items():
            ends = row[[f"{name}_low", f"{name}_high"]].tolist()
            np.testing.assert_allclose(ends, np.quantile(values, [0.025, 0.975]))
        learning = where(metrics["learning"], **cell._asdict())
        for seed, (k, size) in itertools.product(range(3), enumerate((1, 3, 12))):
            one = where(learning, seed=seed, tasks_seen=size).iloc[0]
            of = [seen(ictd.Weights(stored["history_u"][seed, i], stored["history_A"][seed, i]), 0.9) for i in (k, -1)]
            measures, (now, last) = pattern_measures(of[0]), (one.A for one in of)
            to_go = np.linalg.norm(last - now) / np.linalg.norm(last)
            expected = [measures["cosine"], measures["alpha"], to_go, stored["online_msve"][seed, k]]
            np.testing.assert_allclose(one[["cosine", "alpha", "to_go", "online_msve"]].tolist(), expected)
    agreement = metrics["agreement"]
    assert agreement[["env", "states", "depth"]].to_numpy().tolist() == [
        ["boyan", 3, 2],
        ["boyan", 2, 2],
        ["loop", 3, 2],
    ]
    stored = [np.load(run / f"weights/{algo}-loop-3-2.npz") for algo in ("td", "mc")]
    td, mc = (seen(ictd.Weights(one["u"], one["A"]), 0.9).A for one in stored)
    for name, value in agreement_measures(td.mean(axis=0), mc.mean(axis=0)).items():
        np.testing.assert_allclose(agreement[name][2], value)
    for name, values in agreement_measures(bootstrap_means(td, 2000), bootstrap_means(mc, 2000)).items():
        ends = [agreement[f"{name}_{end}"][2] for end in ("low", "high")]
        np.testing.assert_allclose(ends, np.quantile(values, [0.025, 0.975]))
    apart = agreement_measures(td[::2].mean(axis=0), mc[1])
    expected = [apart["correlation"], apart["remainder_correlation"]]
    np.testing.assert_allclose([agreement["apart"][2], agreement["remainder_apart"][2]], expected)
    assert agreement["distance"].isna().tolist() == [False, True, False]
    assert list(agreement)[:6] == ["env", "states", "depth", "correlation", "remainder_correlation", "distance"]
    only = {cell: dict(np.load(run / f"weights/{cell}.npz")) for cell in CELLS if cell.algo == "mc"}
    assert result_tables.agreement_table(only, 0.9).empty
    for row in metrics["truncation"].itertuples():
        rng = ictd.generator(0, row.env, row.states, "truncation")
        drawn = ictd.sample_tasks(row.env, row.states, 1000, rng, **OPTIONS[row.env])
        value = ictd.value_function(drawn.transition, drawn.reward, 0.9)
        assert row.largest_bias == np.abs(truncation_bias(drawn.transition, value, 0.9, 30)).max()
        assert row.typical_value == pytest.approx(np.sqrt(np.mean(value**2)))
    assert metrics["truncation"][["env", "states"]].to_numpy().tolist() == [["boyan", 2], ["boyan", 3], ["loop", 3]]


def test_files_of_other_cells_or_seeds_are_refused(run, tmp_path):
    at = {"env": "loop", "states": 3, "env_options": OPTIONS["loop"], "tasks": TEST}
    files = {name: run / f"{name}/loop-3/0-1.npz" for name in ("tasks", "unrolls")} | {"diverged": tmp_path}
    with pytest.raises(ValueError, match=r"runs/td-loop-3-4/x\.npz is in no folder of this setting; name it td-"):
        carry_out(pretrain, **at | files, outputs=[tmp_path / "runs/td-loop-3-4/x.npz"])
    td, mc = (run / f"runs/{algo}-loop-3-2" for algo in ("td", "mc"))

    def evaluated(runs, weights, evaluations):
        files = {"weights": weights, "evaluations": evaluations}
        carry_out(evaluate, **at, runs=runs, **{name: [tmp_path / name / f"{one}-loop-3-2.npz" for one in algos]
                                                for name, algos in files.items()})  # fmt: skip

    for words, *given in (
        ("runs are of td-loop-3-2, not of td-loop-3-2 mc-loop-3-2; give", [td / "0-1.npz"], ["td", "mc"], ["td", "mc"]),
        ("runs of mc-loop-3-2 have other seeds than those of td-loop-3-2", [td / "0-1.npz", mc / "2-2.npz"],
         ["td", "mc"], ["td", "mc"]),
        ("files are named td-loop-3-2 and mc-loop-3-2; give", [td / "0-1.npz"], ["td"], ["mc"]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            evaluated(*given)
    assert not list(tmp_path.rglob("*.npz"))


def test_the_audit_trains_the_first_tasks_again(run, metrics):
    table = metrics["audit"]
    assert [Cell(*row[:4]) for row in table.itertuples(index=False)] == sorted(CELLS)
    assert set(table["tasks"]) == {3} and set(table["seed"]) == {0} and (table["difference"] < 1e-10).all()
    assert (table["evaluation_difference"] < 1e-10).all() and (table["evaluation_difference"] > 0).any()
    files = {"task_sets": [run / "tasks/loop-3/0-1.npz"] * 2, "unrolls": [run / "unrolls/loop-3/0-1.npz"] * 2}
    files["trained"] = [run / f"runs/{algo}-loop-3-2/0-1.npz" for algo in ("td", "mc")]
    said = r"audit.tolerance, 1e-08: mc-loop-3-2, seed 0, weights after 3 tasks by [\d.e-]+ of the largest; do not use"
    wrong = run / "wrong/mc-loop-3-2/0-1.npz"
    names = ("seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at")
    arrays = load_named(files["trained"][1], *names)
    arrays["A"][0, 1, 0, 0] += 1e-6
    save_arrays(wrong, **arrays)
    with pytest.raises(ValueError, match=said):
        carry_out(audit, **files | AUDITED | {"trained": [files["trained"][0], wrong]}, output=run / "no.json")
    assert not (run / "no.json").exists()


@pytest.fixture(scope="module")
def decided(run):
    """All claims, with one on the theory."""
    theory = [{"id": "lemma/x", "section": "S", "setting": "x", "statement": "Lemma X.", "statistic": "n", "value": 0.0,
               "relation": "<", "threshold": 1, "p": None, "kind": "paper", "where": "", "verdict": "holds",
               "corrected": "holds", "shown": "", "end": "", "trials": None, "trials_hold": None}]  # fmt: skip
    save_json(run / "theory.json", theory)
    names = ("msve", "baselines", "weights", "mean_weights", "agreement", "learning", "truncation")
    tables = [run / f"metrics/{name}.csv" for name in names]
    grid = {"cells": sorted(map(str, CELLS)), "seeds": 3, "context_lengths": LENGTHS, "pretraining_tasks": 12}
    grid["snapshots"] = 3
    place = {"env": "boyan", "states": 3, "depth": 2, "theory": run / "theory.json", "output": run / "claims.json"}
    paper_claims.main(ROOT / "report/claims.toml", tables, **place, **grid)
    return json.loads((run / "claims.json").read_text())


def test_claims_have_the_values_of_their_tables(decided, metrics):
    values = {one["id"]: one["value"] for one in decided}
    for cell in CELLS:
        rows = where(metrics["msve"], **cell._asdict())
        first, last = (where(rows, context_length=length)["msve"].to_numpy() for length in LENGTHS)
        if not np.isnan(last).any():
            trends = np.sign(last - first)
            assert values[f"msve_falls/{cell}"] == pytest.approx(bootstrap_interval(trends)[1])
            zero = where(metrics["baselines"], method="zero", states=cell.states, context_length=9)["msve"].to_numpy()
            ratio = bootstrap_interval(np.log10(last / zero))[1]
            assert values[f"beats_zero/{cell}"] == pytest.approx(ratio)
            change = bootstrap_interval(np.log10(last / first))[1]
            assert values[f"msve_lower/{cell}"] == pytest.approx(change)
            half = where(metrics["learning"], **cell._asdict(), tasks_seen=3)["to_go"].to_numpy()
            assert values[f"converged/{cell}"] == pytest.approx(bootstrap_interval(half)[1])
        row = where(metrics["mean_weights"], **cell._asdict()).iloc[0]
        lost = (where(metrics["weights"], **cell._asdict())["diverged_at"] > 0).sum()
        assert values[f"finite/{cell}"] == lost == (cell == Cell("mc", "boyan", 2, 2))
        if not lost:
            expected = {
                "pattern": row["pattern_low"], "pattern_A11": row["pattern_A11_low"],
                "pattern_A12": row["pattern_A12_low"], "pattern_A21": row["pattern_A21_high"],
                "pattern_A22": row["pattern_A22_high"], "pattern_P": row["largest_u"],
                "signs": round((1 - row["diagonal_signs"]) * 2 * cell.states),
                "consistent": sum(c <= 0.5**0.5 for c in where(metrics["weights"], **cell._asdict())["cosine"]),
            }  # fmt: skip
            for name, value in expected.items():
                assert values[f"{name}/{cell}"] == pytest.approx(value), name
    row = where(metrics["agreement"], env="loop").iloc[0]
    assert values["same_pattern/loop-3-2"] == pytest.approx(max(0, row["correlation_low"]) ** 2)
    assert values["same_noise/loop-3-2"] == pytest.approx(max(0, row["remainder_correlation_low"]) ** 2)
    assert values["same_place/loop-3-2"] == pytest.approx(row["distance_high"])
    assert values["same_pattern_apart/loop-3-2"] == pytest.approx(max(0, row["apart"]) ** 2)
    assert values["same_noise_apart/loop-3-2"] == pytest.approx(max(0, row["remainder_apart"]) ** 2)
    truncation = where(metrics["truncation"], env="loop").iloc[0]
    assert values["truncation/loop-3"] == pytest.approx(truncation["largest_bias"] / truncation["typical_value"])
    assert values["theta_td/3-2"] < 1e-10 and "theta_td/2-2" in values
    sections = {one["id"]: one["section"] for one in decided}
    assert sections["pattern/td-boyan-3-2"] == "Experiments" and decided[-1]["id"] == "lemma/x"
    assert sections["pattern/td-boyan-2-2"] == "Hyperparameter Study: Number of States"
    assert sections["same_place/loop-3-2"] == "Hyperparameter Study: MRP"
    verdict = {one["id"]: one["verdict"] for one in decided}
    for study, settings in (("states", ["boyan-2-2"]), ("env", ["loop-3-2"])):
        kinds = ("pattern", "msve_falls", "msve_lower")
        of_study = [f"{kind}/{algo}-{one}" for kind in kinds for algo in ("td", "mc") for one in settings]
        assert values[f"robust_{study}/all"] == sum(verdict[name] == "fails" for name in of_study)
    assert "robust_depth/all" not in values
    assert [name for name in values if name.startswith("theta_td/")] == ["theta_td/3-2", "theta_td/2-2"]
    falls = [name.split("/")[1] for name in values if name.startswith("msve_falls/")]
    assert falls == [*map(str, CELLS)]


def test_pages_of_tables(run, decided, metrics):
    settings = yaml.safe_load((ROOT / "config.yaml").read_text())
    settings = {"seeds": 3, "tasks": 12, "evaluation": settings["evaluation"], "readings": settings["readings"]}
    settings["evaluation"]["context_lengths"] = LENGTHS
    settings |= {"algos": ["td", "mc"], "envs": ["boyan", "loop"], "states": [3, 2], "depths": [2]}
    wanted = dict(settings)
    names = ("msve", "baselines", "weights", "mean_weights", "agreement", "audit")
    summaries.main(
        run / "claims.json", run / "theory.json", [run / f"metrics/{name}.csv" for name in names], settings,
        ROOT / "workflow/schemas/config.schema.yaml", run / "tables",
    )  # fmt: skip
    rows = {path.stem: Page(path).rows() for path in (run / "tables").glob("[!.]*")}
    assert set(rows) == {
        "summary", "claims", "claims_ours", "claims_all", "msve", "mean_weights", "pattern", "thresholds", "agreement",
        "audit", "settings", "readings",
    }  # fmt: skip
    assert len(rows["claims_all"]) == len(decided) and "x" in [row[0] for row in rows["claims_all"]]
    of = {
        kind: {one["id"].split("/")[0] for one in decided if one["kind"] == kind} for kind in ("paper", "ours", "check")
    }
    assert len(rows["claims"]) == len(of["paper"]) - 1 and len(rows["claims_ours"]) == len(of["ours"] | of["check"])
    text = Page(run / "tables/summary.html").text
    failing = {one["id"].split("/")[0] for one in decided if one["verdict"] == "fails" and one["kind"] == "paper"}
    assert f"{len(of['paper']) - 1} claims on its experiments, {len(of['paper'] - failing) - 1} hold" in text
    assert "1 statements and steps of its theory, 1 hold" in text and "pretrained 18 looped" in " ".join(text.split())
    assert "The settings of this run are not the paper's: seeds, " in text
    for one in decided:
        shown = one["statement"].replace("theta^TD", "θTD")
        assert (shown in text) == (one["id"].split("/")[0] in failing)
    keys = [row[0] for row in rows["settings"]]
    assert keys[0] == "seeds" and "evaluation.lstd_ridge" in keys and len(rows["settings"][0]) == 4
    assert rows["settings"][0][1:3] == ["3", "20"] and len(rows["readings"][0]) == 3
    assert len(rows["readings"]) >= len(wanted["readings"])
    counts = {len(rows[name]) for name in ("mean_weights", "audit", "pattern")}
    assert counts == {6} and len(rows["agreement"]) == 3


def test_summary_of_msve(metrics):
    table = summaries.msve_summary(metrics["msve"], metrics["baselines"], metrics["weights"])
    methods = [("theta_td", "2")] * 2 + [("lstd", "")] * 2 + [("zero", "")] * 2
    assert sorted(zip(table["method"], table["depth"], strict=True))[:2] == [("lstd", "")] * 2
    assert set(methods) == {pair for pair in zip(table["method"], table["depth"], strict=True) if len(pair[0]) > 2}
    assert table["method"].tolist()[:6] == ["td"] * 3 + ["mc"] * 3 and table["states"].tolist()[:6] == [3, 2, 3] * 2
    for cell in CELLS:
        row = where(table, method=cell.algo, env=cell.env, states=cell.states).iloc[0]
        for length in LENGTHS:
            of = where(metrics["msve"], **cell._asdict(), context_length=length)["msve"].dropna()
            expected = [of.mean(), of.median()]
            np.testing.assert_allclose(
                [row[f"mean, context of {length}"], row[f"median, context of {length}"]], expected
            )
        of = where(metrics["weights"], **cell._asdict())["enumerated_msve"].dropna()
        np.testing.assert_allclose(
            [row["mean, enumerated prompt"], row["median, enumerated prompt"]], [of.mean(), of.median()]
        )
        assert row["diverged"] == ("1 of 3" if cell == Cell("mc", "boyan", 2, 2) else "0 of 3")
    lstd = where(table, method="lstd", states=2).iloc[0]
    of = where(metrics["baselines"], method="lstd", states=2, context_length=9)["msve"]
    np.testing.assert_allclose(lstd["mean, context of 9"], of.mean())
    assert lstd["diverged"] == "" and where(table, method="theta_td")["depth"].tolist() == ["2", "2"]


def test_computing_times(tmp_path):
    times = {"tasks/a": (4.0, 2.0, 10.0), "tasks/b": (2.0, 1.0, 30.0), "claims": (1.0, 0.0, 5.0)}
    for name, row in times.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pd.DataFrame([row], columns=["s", "cpu_time", "max_rss"]).to_csv(
            tmp_path / f"{name}.tsv", sep="\t", index=False, na_rep="NA"
        )
    compute.main(tmp_path, [*times, "tasks/removed"], tmp_path / "t.csv", tmp_path / "t.html")
    table = pd.read_csv(tmp_path / "t.csv")
    assert table["rule"].tolist()[:3] == ["tasks", "claims", "these rules together"]
    # Jobs that ended before Snakemake looked at them are not measured, but for their time.
    np.testing.assert_array_equal(
        table.iloc[:3, 1:].astype(float), [[2, 6, 3, 30], [1, 1, np.nan, np.nan], [3, 7, 3, 30]]
    )
    # 50 minutes and 15 hours on 150 cores.
    assert table["CPU time (s)"].tolist()[3:] == [150 * 50 * 60, 150 * 15 * 3600]
    assert len(table) == 5 and Page(tmp_path / "t.html").rows()[0] == ["tasks", "2", "6", "3", "30"]
    frame = compute.compute_table({"tasks": [pd.DataFrame([times["claims"]], columns=["s", "cpu_time", "max_rss"])]})
    assert frame.index.tolist() == [0, 1, 2, 3]


def test_what_was_done_again_under_another_cut_counts_once():
    cells = {f"{rule}/{algo}-boyan-5-30/0-9": 2.0 for rule in ("pretrain", "rest") for algo in ("td", "mc")}
    later = {"pretrain/boyan-5-30/0-9": 3.0, "rest/boyan-5-30/0-9": 1.0, "pretrain/td-boyan-3-30/0-9": 1.0}
    kept = compute.counted(cells | later | {"claims": 5.0})
    of_rest = [job for job in cells if job.startswith("rest")]
    assert kept == ["pretrain/boyan-5-30/0-9", *of_rest, "pretrain/td-boyan-3-30/0-9", "claims"]


def test_records_say_what_is_not_finite():
    of = claim.Statements(ROOT / "report/claims.toml")
    made = [of.claim("finite", ["a"], 0, section="S"), of.claim("finite", ["b"], np.inf, section="S")]
    assert [record["value"] for record in claim.as_records(made)] == [0, None]
    overview = claim_tables.claims_overview(claim.as_records(made))
    assert overview["verdict"].tolist() == ["fails in 1 of 2 settings: b (not finite)"]


def test_what_differs_from_reference_numbers_is_named():
    old = pd.DataFrame(
        {"algo": ["td", "td", "mc"], "seed": [1, 2, 1], "x": [1.0, np.nan, 5.0], "said": ["a", "b", "c"]}
    )
    assert differences(old.iloc[::-1], old, ["algo", "seed"]) == []
    assert differences(old.assign(x=old["x"] * (1 + 0.9e-6)), old, ["algo", "seed"]) == []
    new = old.assign(x=[1.0, 2.0, 5.0 * (1 + 1.2e-6)], said=["a", "b", "d"])
    new = pd.concat([new[1:], new[:1].assign(seed=9)])
    assert differences(new, old, ["algo", "seed"]) == [
        "td-1 is missing", "td-9 is not in the reference", f"mc-1: x is {5.0 * (1 + 1.2e-6)}, in the reference 5.0",
        "td-2: x is 2.0, in the reference nan", "mc-1: said is d, in the reference c",
    ]  # fmt: skip
    zero = pd.DataFrame({"id": ["a"], "value": [0.0]})
    assert differences(zero + pd.DataFrame({"id": [""], "value": [9e-13]}), zero, ["id"]) == []
    assert len(differences(zero + pd.DataFrame({"id": [""], "value": [2e-12]}), zero, ["id"])) == 1


def test_what_snakemakes_report_says_first(tmp_path, monkeypatch):
    settings = {"seeds": 3, "readings": {}}
    save_json(tmp_path / "m.json", {"commit": None, "versions": {"python": "3"}, "settings": settings})
    kinds = [("paper", "a/1", "holds"), ("paper", "a/2", "fails"), ("paper", "b/1", "holds"), ("check", "c/1", "holds")]
    save_json(tmp_path / "c.json", [{"kind": kind, "id": name, "verdict": verdict} for kind, name, verdict in kinds])
    given = {"manifest": tmp_path / "m.json", "claims": tmp_path / "c.json", "output": tmp_path / "a.rst"}
    monkeypatch.setattr(about, "CONTAINER", ())
    about.main(schema=ROOT / "workflow/schemas/config.schema.yaml", deployment="", **given)
    said = (tmp_path / "a.rst").read_text()
    assert "1 of 2 claims and statements of the paper, 1 of 1 checks hold in every place" in said
    assert "are not the paper's: seeds." in said and "python 3, matplotlib" in said
    assert "of Snakemake itself; the conda environments" in said and "git does not track" in said
    assert "made with conda from the files in ``envs/`` (in a container)" in about.environment("conda", True)
