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
from tolerances import ENGINES

import ictd
from ictd.decomposition import seen
from ictd.mrp import truncation_bias
from ictd.pattern import agreement_measures, pattern_measures, pattern_shares
from ictd.pipeline.grid import Cell
from ictd.pipeline.provenance import PROJECT
from ictd.pipeline.storage import load_named, save_arrays, save_json
from ictd.pipeline.training_data import save_material, stored_runs
from ictd.pretraining import pretrain_history
from ictd.report import paper_claims, result_tables, summaries
from ictd.statistics import bootstrap_means
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
DIVERGED = Cell("mc", "boyan", 2, 2)
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
        at = cell._asdict() | {"env_options": OPTIONS[cell.env]}
        place = f"{cell.env}-{cell.states}/{group}.npz"
        files = {"tasks": folder / "tasks" / place, "unrolls": folder / "unrolls" / place}
        if cell.algo == "td":
            carry_out(tasks, **at, seeds=group, tasks=TASKS, output=files["tasks"])
            carry_out(unrolls, **at, tasks=files["tasks"], output=files["unrolls"])
        rate = 1e200 if (cell, group) == (DIVERGED, "2-2") else 0.01
        given = {**at, **files, "learning_rate": rate, "diverged": folder / "diverged"}
        carry_out(pretrain, **given, output=folder / f"runs/{cell}/{group}.npz")
    for some in zip(CELLS[::2], CELLS[1::2], strict=True):
        carry_out(
            evaluate, **some[0]._asdict() | {"env_options": OPTIONS["loop"]}, tasks=TEST,
            runs=[folder / f"runs/{cell}/{group}.npz" for cell in some for group in GROUPS],
            **{name: [folder / f"{kind}/{cell}.npz" for cell in some] for name, kind in EVALUATED.items()},
        )  # fmt: skip
    sizes = ["3-2", "2-2"]
    files = {"tuned": "json", "baselines": "npz"}
    files = {name: [folder / f"baselines/{size}.{end}" for size in sizes] for name, end in files.items()}
    carry_out(baselines, seeds=3, tasks=TEST, env_options=OPTIONS["loop"], settings=sizes, **files)
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
    return {path.stem: pd.read_csv(path) for path in (run / "metrics").iterdir()}


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
        if (cell, seed) == (DIVERGED, 2):
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
    given = {"algo": "td", "env": "boyan", "states": 2, "learning_rate": 1e60, "on_divergence": "fail", **files}
    out = tmp_path / "td-boyan-2-2/out.npz"
    (tmp_path / "td-boyan-2-2-seed-0.npz").touch()
    with pytest.raises(ValueError, match=r"^td-boyan-2-2, seed 0: .* at task \d+ of 12; its finite snapshots are in"):
        carry_out(pretrain, **given, diverged=tmp_path, output=out)
    kept = np.load(tmp_path / "td-boyan-2-2-seed-0.npz")
    drawn, batches, start = made("boyan", 2, 0)
    for size, u, A in zip(kept["tasks_seen"], kept["u"], kept["A"], strict=True):
        before = ictd.pretrain(drawn[:size], batches[:size], "td", 2, 0.9, 1e60, start.u, start.A)
        np.testing.assert_array_equal(A, before.A)
        np.testing.assert_array_equal(u, before.u)
    assert 1 <= len(kept["tasks_seen"]) < 3 and not out.exists()
    carry_out(pretrain, **given | {"learning_rate": 0.01}, diverged=tmp_path, output=out)
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


def test_claims_and_pages_are_made_of_the_tables(run, metrics):
    """Claims of all cells, with one on the theory behind them, and a page for each table."""
    theory = {
        "id": "lemma/x", "section": "S", "setting": "x", "statement": "Lemma X.", "statistic": "n", "value": 0.0,
        "relation": "<", "threshold": 1, "p": None, "kind": "paper", "where": "", "verdict": "holds",
        "corrected": "holds", "shown": "", "end": "", "trials": None, "trials_hold": None,
    }  # fmt: skip
    save_json(run / "theory.json", [theory])
    names = ("msve", "baselines", "weights", "mean_weights", "agreement", "learning", "truncation", "audit")
    tables = [run / f"metrics/{name}.csv" for name in names]
    files = {"theory": run / "theory.json", "output": run / "claims.json"}
    paper_claims.main(PROJECT / "report/claims.toml", tables, env="boyan", states=3, depth=2, **files)
    decided = json.loads(files["output"].read_text())
    verdicts = {one["id"]: one["verdict"] for one in decided}
    assert decided[-1] == theory and {f"msve_falls/{cell}" for cell in CELLS if cell.states == 3} < verdicts.keys()
    lost = {one["id"]: one["value"] for one in decided if one["id"].startswith("finite")}
    assert lost == {f"finite/{cell}": int(cell == DIVERGED) for cell in CELLS}
    config = yaml.safe_load((PROJECT / "config.yaml").read_text())
    settings = {"seeds": 3, "tasks": 12, "algos": ["td", "mc"], "envs": ["boyan", "loop"], "states": [3, 2]}
    settings |= {"depths": [2], "readings": config["readings"]}
    settings["evaluation"] = config["evaluation"] | {"context_lengths": LENGTHS}
    schema = PROJECT / "workflow/schemas/config.schema.yaml"
    summaries.main(files["output"], files["theory"], tables, settings, schema, run / "tables")
    rows = {path.stem: Page(path).rows() for path in (run / "tables").iterdir()}
    assert len(rows["claims_all"]) == len(decided)
    of_cells = {name: len(rows[name]) for name in ("mean_weights", "audit", "pattern")}
    assert set(of_cells.values()) == {len(CELLS)} and len(rows["agreement"]) == 3
    paper = {one["id"].split("/")[0] for one in decided if one["kind"] == "paper"}
    failing = {one["id"].split("/")[0] for one in decided if one["kind"] == "paper" and one["verdict"] == "fails"}
    text = " ".join(Page(run / "tables/summary.html").text.split())
    assert f"{len(paper) - 1} claims on its experiments, {len(paper - failing) - 1} hold" in text
    assert "1 statements and steps of its theory, 1 hold" in text and "pretrained 18 looped" in text
    for one in decided:
        said = one["statement"].replace("theta^TD", "θTD")
        assert (said in text) == (one["id"].split("/")[0] in failing)


def test_summary_of_msve(metrics):
    table = summaries.msve_summary(metrics["msve"], metrics["baselines"], metrics["weights"])
    assert where(table, method="theta_td")["depth"].tolist() == ["2", "2"] and len(where(table, method="lstd")) == 2
    for cell in CELLS:
        row = where(table, method=cell.algo, env=cell.env, states=cell.states).iloc[0]
        shown = {f"context of {m}": where(metrics["msve"], **cell._asdict(), context_length=m)["msve"] for m in LENGTHS}
        shown["enumerated prompt"] = where(metrics["weights"], **cell._asdict())["enumerated_msve"]
        for name, values in shown.items():
            assert row[f"mean, {name}"] == pytest.approx(values.mean())
            assert row[f"median, {name}"] == pytest.approx(values.median())
        assert row["diverged"] == ("1 of 3" if cell == DIVERGED else "0 of 3")
