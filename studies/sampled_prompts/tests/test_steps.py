"""The study's steps at a small size, compared with slow computations."""

import itertools
from shutil import copy

import naive
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import where

import ictd
import ictd.baselines
from ictd.engine import Engine
from ictd.evaluation import draw_unseen_tasks
from ictd.statistics import bootstrap_ratios
from ictd.weight_measures import preconditioner, project_identifiable
from studies.sampled_prompts import baselines, evaluate, evaluate_attention, pretrain, pretrain_attention, tables
from studies.sampled_prompts.attention_engine import Attention, AttentionEngine, WeightedColumns
from studies.sampled_prompts.tests.test_attention import WholePrompts
from studies.sampled_prompts.traces import trace_measures
from studies.sampled_prompts.training_data import training_data

torch.set_num_threads(1)
GAMMA, STATES, DEPTH, LENGTHS, TEST = 0.9, 3, 2, [2, 9], 7
ENV_OPTIONS = {"boyan": {}, "loop": {"threshold": 0.3}}
TRAINING = {
    "lengths": [2, 5], "clip": 0.5, "batch_size": 8, "rollout_steps": 30, "learning_rate": 0.01, "initial_gain": 0.3,
}  # fmt: skip
SETTING = {"states": STATES, "env_options": ENV_OPTIONS}
RUNS = {"td-boyan-3-2-0.9": "boyan", "expected_mc-loop-3-2-0.9": "loop"}
SEEDS, SNAPSHOTS = [4, 5], [1, 6, 10, 30]
KINDS = {"linear": {}, "softmax": {"kind": "softmax", "corner": -0.5, "scaled_rewards": True}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Output files of the steps."""
    folder = tmp_path_factory.mktemp("sampled_prompts")
    for run, env in RUNS.items():
        paths = [folder / f"runs/{run}/{seed}-{seed}.npz" for seed in SEEDS]
        for path in paths:
            pretrain.main(
                [run.split("-")[0]], [DEPTH], [30], env, discount=GAMMA, seeds=path.stem, snapshots=3, tasks=10,
                **TRAINING, **SETTING, outputs=[path],
            )  # fmt: skip
    evaluation = {"tasks": 10, "test_tasks": TEST, "context_lengths": LENGTHS, "env_options": ENV_OPTIONS}
    shown_by_tasks = [f"{run}/{env}-0.9" for run, env in RUNS.items()]
    evaluate.main(
        True, shown_by_tasks, runs=sorted(folder.glob("runs/*/*.npz")), **evaluation,
        outputs=[folder / f"values/{run}/{on}-0.9.npz" for run in RUNS for on in ENV_OPTIONS],
    )  # fmt: skip
    (folder / "cells").mkdir()
    copy(folder / f"runs/td-boyan-3-2-0.9/{SEEDS[0]}-{SEEDS[0]}.npz", folder / "cells/td-boyan-3-2.npz")
    evaluate.main(
        False, ["td-boyan-3-2/boyan-0.9"], runs=[folder / "cells/td-boyan-3-2.npz"], **evaluation,
        outputs=[folder / "paper/td-boyan-3-2/boyan-0.9.npz"],
    )  # fmt: skip
    grids = {
        "step_sizes": {"smallest": 0.1, "largest": 4, "number": 5},
        "ridges": {"smallest": 0.1, "largest": 9, "number": 3},
        "pseudo_counts": {"smallest": 0.5, "largest": 8, "number": 3},
    }
    for env in ENV_OPTIONS:
        baselines.main(
            env, discount=GAMMA, depth=DEPTH, test_tasks=TEST, tuning_tasks=11, context_lengths=LENGTHS, updates=[1, 8],
            bayes_samples=400, **grids, **SETTING, output=folder / f"baselines/{env}-3-0.9.npz",
        )  # fmt: skip
    paths = {
        name: [folder / f"attention/{name}/{prompts}-mc/4-5.npz" for prompts in ("contexts", "enumerated")]
        for name in KINDS
    }
    pretrain_attention.main(
        KINDS, ["mc"], "loop", depth=DEPTH, discount=GAMMA, seeds="4-5", attention_tasks=9,
        **TRAINING, **SETTING, outputs=[path for name in sorted(KINDS) for path in paths[name]],
    )  # fmt: skip
    for name, attention in KINDS.items():
        evaluate_attention.main(
            attention, "loop", depth=DEPTH, discount=GAMMA, test_tasks=TEST, context_lengths=LENGTHS, **SETTING,
            runs=paths[name], output=folder / f"attention/{name}.csv",
        )  # fmt: skip
    files = {name: sorted((folder / name).rglob("*.npz")) for name in ("runs", "values", "paper", "baselines")}
    kinds = [folder / f"attention/{name}.csv" for name in KINDS]
    tables.main(**files, attention=kinds, env_options=ENV_OPTIONS, output=folder / "tables")
    return folder


def unseen(env, purpose="beyond", size=TEST):
    return draw_unseen_tasks(0, STATES, size, max(LENGTHS), GAMMA, env, purpose, **ENV_OPTIONS[env])


def material(target, env, seed, size):
    given = {name: TRAINING[name] for name in ("lengths", "batch_size", "rollout_steps")}
    return training_data(env, STATES, seed, discount=GAMMA, **given, **ENV_OPTIONS[env])(size, [target])


def start_of(env, seed):
    return ictd.initial_weights(STATES, 0.3, ictd.generator(seed, env, STATES, "weights"))


@pytest.mark.parametrize("run", RUNS)
def test_runs_keep_the_weights_of_their_engine(folder, run):
    env, target = RUNS[run], run.split("-")[0]
    for seed in SEEDS:
        found = np.load(folder / f"runs/{run}/{seed}-{seed}.npz")
        # Log-spaced from 1 to 30, and the ends of shorter runs.
        assert found["tasks_seen"].tolist() == [1, 5, 10, 30] and found["seeds"].tolist() == [seed]
        tasks, context, unrolls = material(target, env, seed, 30)
        gram = context.gram_matrix(GAMMA)
        for k, size in enumerate(found["tasks_seen"]):
            engine = Engine(start_of(env, seed), target[-2:], DEPTH, GAMMA, 0.01, clip=0.5)
            first = slice(0, size)
            engine.train(tasks.reward[first], unrolls[target][first], gram[first])
            for name, part in zip(("history_u", "history_A"), vars(engine.weights()).values(), strict=True):
                np.testing.assert_array_equal(found[name][0, k], part)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompts", ["contexts", "enumerated"])
def test_runs_with_attention_keep_the_last_weights_of_their_engine(folder, kind, prompts):
    found, attention = np.load(folder / f"attention/{kind}/{prompts}-mc/4-5.npz"), Attention(**KINDS[kind])
    assert found["seeds"].tolist() == SEEDS
    for i, seed in enumerate(SEEDS):
        tasks, context, unrolls = material("mc", "loop", seed, 9)
        engine = AttentionEngine(start_of("loop", seed), "mc", DEPTH, GAMMA, 0.01, 0.5, attention)
        shown = tasks.reward / (1 - GAMMA) if attention.scaled_rewards else tasks.reward
        if prompts == "contexts":
            columns = WeightedColumns.sampled(context, shown, GAMMA)
        else:
            columns = WeightedColumns.enumerated(tasks.transition, shown, GAMMA)
        engine.train(tasks.reward, unrolls["mc"], columns)
        np.testing.assert_array_equal(found["u"][i], engine.weights().u)
        np.testing.assert_array_equal(found["A"][i], engine.weights().A)


def test_runs_are_evaluated_on_whole_prompts(folder):
    table = pd.read_csv(folder / "tables/values.csv")
    # All four snapshots at the run's own place, two at other places.
    assert len(table) == 2 * 2 * (4 + 2) * 2 + 4 * 2
    cases = [*itertools.product(RUNS, ENV_OPTIONS, ["contexts"]), ("td-boyan-3-2-0.9", "boyan", "enumerated")]
    for run, on, prompts in cases:
        data, scaled, of_last = unseen(on), prompts == "contexts", []
        rows = where(table, algo=run.split("-")[0], env=RUNS[run], on_env=on, prompts=prompts)
        for seed in SEEDS if scaled else SEEDS[:1]:
            stored = np.load(folder / f"runs/{run}/{seed}-{seed}.npz")
            for k, size in enumerate(stored["tasks_seen"]):
                if on != RUNS[run] and size not in (10, 30):
                    assert where(rows, seed=seed, tasks_seen=size).empty
                    continue
                weights = ictd.Weights(stored["history_u"][0, k], stored["history_A"][0, k])
                errors = np.array([naive.errors(weights, data, length, DEPTH, scaled) for length in LENGTHS])
                found = where(rows, seed=seed, tasks_seen=size)[["mean", "median"]].to_numpy()
                wanted = np.transpose([errors.mean(axis=1), np.median(errors, axis=1)])
                np.testing.assert_allclose(found, wanted, rtol=1e-9)
            of_last.append(errors)
        kind = "values" if scaled else "paper"
        found = np.load(folder / kind / (run if scaled else "td-boyan-3-2") / f"{on}-0.9.npz")["msve_by_task"]
        np.testing.assert_allclose(found, np.mean(of_last, axis=0), rtol=1e-9)


@pytest.mark.parametrize("env", ENV_OPTIONS)
def test_baselines_are_of_the_same_tasks_and_tuned_on_others(folder, env):
    found, data, tuning = np.load(folder / f"baselines/{env}-3-0.9.npz"), unseen(env), unseen(env, "beyond tuning", 11)
    sizes, ridges = np.geomspace(0.1, 4, 5), np.geomspace(0.1, 9, 3)
    error = dict(zip(found["methods"], found["msve"], strict=True))
    contexts = [(data.context(length), tuning.context(length)) for length in LENGTHS]
    wanted = {
        "lstd": baselines.tuned_msve(
            data, tuning, contexts, lambda context, ridge: ictd.baselines.lstd(context, GAMMA, ridge), ridges
        ),
        "theta_td": one_step_size(data, tuning, sizes),
        "batch_td": baselines.tuned_batch_td(data, tuning, contexts, sizes, [1, 8]),
        "td_lambda": baselines.tuned_td_lambda(data, tuning, LENGTHS, np.array([size for size in sizes if size <= 1])),
    }
    chain, visited = tuning.tasks.transition.mean(axis=0), tuning.tasks.stationary.mean(axis=0)
    shares = {"ce_uniform": np.full((3, 3), 1 / 3), "ce_prior": chain, "lstd_prior": visited[:, None] * chain}
    for name, share in shares.items():

        def smoothed(context, factor, share=share):
            return baselines.certainty_equivalence(context, GAMMA, pseudo_counts=factor * share)

        wanted[name] = baselines.tuned_msve(data, tuning, contexts, smoothed, np.array([0.5, 2, 8]))
    for name, (errors, chosen) in wanted.items():
        np.testing.assert_array_equal(error[name], errors)
        np.testing.assert_array_equal(found[{"lstd": "ridge", "theta_td": "theta_td_step"}.get(name, name)], chosen)
    for k, length in enumerate(LENGTHS):
        visited = data.context(length).visits > 0
        values = ictd.value_function(chain[None], np.where(visited, data.tasks.reward, 0), GAMMA)
        np.testing.assert_allclose(error["mean_chain"][k], data.error(values))
    zero = (data.tasks.stationary * data.value**2).sum(axis=1)
    np.testing.assert_allclose(error["zero"], [zero, zero])
    for k, length in enumerate(LENGTHS):
        estimate = baselines.certainty_equivalence(data.context(length), GAMMA)
        np.testing.assert_array_equal(error["certainty_equivalence"][k], data.error(estimate))
    if env == "boyan":
        rng = ictd.generator(0, env, STATES, "beyond bayes")
        mean, least, worth = baselines.bayes(data, [tested for tested, _ in contexts], 400, rng)
        np.testing.assert_array_equal(error["posterior_mean"], mean)
        np.testing.assert_array_equal(error["bayes"], least)
        np.testing.assert_array_equal(found["effective_sizes"], worth)
    else:
        assert "bayes" not in error and np.isnan(found["effective_sizes"]).all()
        assert found["effective_sizes"].shape == (2, TEST)
    table = where(pd.read_csv(folder / "tables/baselines.csv"), env=env).set_index(["method", "context_length"])
    for (name, errors), (k, length) in itertools.product(error.items(), enumerate(LENGTHS)):
        assert table.loc[name, length][["mean", "standard_error", "median"]].tolist() == [
            errors[k].mean(), errors[k].std(ddof=1) / np.sqrt(TEST), np.median(errors[k])]  # fmt: skip


def one_step_size(data, tuning, sizes):
    """MSVE of batch TD with the best step size on average over tasks and lengths, and this step size."""

    def errors(unseen, size):
        estimates = [ictd.batch_td(unseen.context(length), GAMMA, size, DEPTH) for length in LENGTHS]
        return np.stack([unseen.error(estimate) for estimate in estimates])

    best = min(sizes, key=lambda size: errors(tuning, size).mean())
    return errors(data, best), np.full(len(LENGTHS), best)


def test_intervals_over_tasks(folder):
    table = pd.read_csv(folder / "tables/over_tasks.csv")
    assert len(table) == 2 * 2 * 2 * 3 and set(table["tasks_seen"]) == {30}
    for run, on, (k, length) in itertools.product(RUNS, ENV_OPTIONS, enumerate(LENGTHS)):
        rows = where(table, algo=run.split("-")[0], env=RUNS[run], on_env=on, context_length=length)
        own = np.load(folder / f"values/{run}/{on}-0.9.npz")["msve_by_task"][k]
        others = np.load(folder / f"baselines/{on}-3-0.9.npz")
        error = {name: errors[k] for name, errors in zip(others["methods"], others["msve"], strict=True)}
        for name in ("zero", "bayes", "posterior_mean", "mean_chain"):
            error.pop(name, None)
        best = min(error, key=lambda name: error[name].mean())
        names = ["lstd", "ce_uniform", best]
        if run.startswith("mc"):
            error["td"] = np.load(folder / f"values/{run.replace('mc', 'td')}/{on}-0.9.npz")["msve_by_task"][k]
            names.append("td")
        for row, name in zip(rows.itertuples(), names, strict=True):
            assert row.baseline in (name, "best")
            (ratio,) = bootstrap_ratios(own[:, None], error[name][:, None])
            assert [row.value, row.low, row.high] == pytest.approx([*ratio])
            assert row.value == pytest.approx(own.mean() / error[name].mean())


def test_weights_are_measured_with_the_mean_transition(folder):
    table, entries = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("weights", "preconditioners"))
    for run, env in RUNS.items():
        at, K = {"algo": run.split("-")[0], "env": env}, []
        rng = ictd.generator(0, env, STATES, "beyond transitions")
        mean = ictd.sample_tasks(env, STATES, 10_000, rng, **ENV_OPTIONS[env]).transition.mean(axis=0)
        for seed in SEEDS:
            stored = np.load(folder / f"runs/{run}/{seed}-{seed}.npz")
            weights, rows = ictd.Weights(stored["history_u"][0], stored["history_A"][0]), where(table, **at, seed=seed)
            outside = ictd.weight_measures.decomposition_measures(weights, GAMMA)["outside"]
            # The norm of N over that of A, A = K [-I, I] + N [I, I], without the components along a.
            a = np.append(np.full(STATES, -GAMMA), np.ones(STATES))
            shortest = weights.A - np.einsum("i,j,...jk->...ik", a, a / (a @ a), weights.A)
            N = (shortest[..., :STATES] + shortest[..., STATES:]) / 2
            of_shortest = 2 * (N**2).sum(axis=(-2, -1)) / (shortest**2).sum(axis=(-2, -1))
            measures = trace_measures(weights, GAMMA, mean) | {"outside": outside, "outside_shortest": of_shortest}
            for name, values in measures.items():
                np.testing.assert_allclose(rows[name], values)
            K.append(preconditioner(project_identifiable(weights, GAMMA).A[-1]))
        rows = where(entries, **at).pivot(index="row", columns="column", values="mean")
        np.testing.assert_allclose(rows, np.mean(K, axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_evaluated_on_whole_prompts(folder, kind):
    rows, attention, data = pd.read_csv(folder / "tables/attention.csv"), Attention(**KINDS[kind]), unseen("loop")
    rows = where(rows, attention=kind)
    assert len(rows) == 3 * 2 * 2 and set(rows["algo"]) == {"mc"}
    for prompts, (k, seed), length in itertools.product(("contexts", "enumerated"), enumerate(SEEDS), [0, *LENGTHS]):
        stored = np.load(folder / f"attention/{kind}/{prompts}-mc/4-5.npz")
        model = WholePrompts(ictd.Weights(stored["u"][k], stored["A"][k]), attention, DEPTH)
        without_u = WholePrompts(ictd.Weights(0 * stored["u"][k], stored["A"][k]), attention, DEPTH)
        errors, responses = [], []
        for i in range(TEST):
            if length:
                context = ictd.sampled_columns(data.paths[i, : length + 1], data.tasks.reward[i], GAMMA)
            else:
                context = ictd.enumerated_columns(data.tasks.transition[i], data.tasks.reward[i], GAMMA)
            values = model(context).detach().numpy()
            errors.append((data.tasks.stationary[i] * (values - data.value[i]) ** 2).sum())
            context[-1] = 1
            responses.append(without_u(context).detach().numpy())
        row = where(rows, prompts=prompts, seed=seed, context_length=length).iloc[0]
        assert row[["mean", "median"]].tolist() == pytest.approx([np.mean(errors), np.median(errors)], rel=1e-9)
        ends = [np.min(responses), np.max(responses)]
        assert row[["least_response", "greatest_response"]].tolist() == pytest.approx(ends, rel=1e-9)
