"""The study's steps at a small size, compared with slow computations."""

import itertools

import naive
import numpy as np
import pandas as pd
import pytest
from tolerances import ENGINES

import ictd
from ictd.algorithms import ALGORITHMS
from ictd.engine import Engine
from ictd.evaluation import draw_unseen_tasks, joined
from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from studies.sampled_prompts import evaluate, pretrain
from studies.sampled_prompts.baselines import RIDGES, baseline_estimates, methods
from studies.sampled_prompts.grid import check, lengths_of

GAMMA, STATES, DEPTH, TASKS, SEEDS, TEST, LENGTHS = 0.9, 3, 2, 12, 2, 5, [2, 9]
FORMATS = ["step", "grouped", "enumerated"]
TRAINING = {
    "env": "boyan", "states": STATES, "depth": DEPTH, "discount": GAMMA, "algos": ["mc"], "formats": FORMATS,
    "tasks": TASKS, "lengths": [2, 5], "clip": 0.5, "batch_size": 8, "rollout_steps": 30, "learning_rate": 0.01,
    "initial_gain": 0.3,
}  # fmt: skip
SETTINGS = {"main": TRAINING, "other": TRAINING | {"formats": ["step", "enumerated"], "algos": ["td"]}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Output files of the steps."""
    folder = tmp_path_factory.mktemp("sampled_prompts")
    for name, training in SETTINGS.items():
        for seed in range(SEEDS):
            pretrain.main(training, "boyan", f"{seed}-{seed}", {"boyan": {}}, folder / f"runs/{name}/{seed}-{seed}.npz")
    (folder / "cells").mkdir()
    weights = naive.several_weights(STATES, SEEDS)
    np.savez(folder / "cells/td-loop-3-4.npz", u=weights.u, A=weights.A)
    evaluate.main(
        "boyan", STATES, GAMMA, False, {"boyan": {}}, SEEDS, TEST, max(LENGTHS), 11, LENGTHS, 400, SETTINGS,
        sorted(folder.glob("runs/*/*.npz")), [folder / "cells/td-loop-3-4.npz"], folder / "boyan-3",
    )  # fmt: skip
    return folder


def material(seed, algo):
    training = pretrain.Training(**(TRAINING | {"algos": ["td", "mc"]}))
    tasks, context, targets = pretrain.training_data(training, seed, {})(TASKS)
    return tasks, context, targets[algo]


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_batches_and_contexts_have_their_own_streams(algo):
    """Draws do not depend on other algorithms, and only MC needs whole returns."""
    draw, both = (
        pretrain.training_data(pretrain.Training(**(TRAINING | {"algos": algos})), 7, {})
        for algos in ([algo], ["mc", "td"])
    )
    tasks, context, targets = draw(300)
    rngs = (ictd.generator(7, "boyan", STATES, f"agent {name}") for name in ("tasks", "unrolls"))
    expected = ictd.sample_tasks("boyan", STATES, 300, next(rngs))
    unrolls = ictd.unroll(expected, 8, GAMMA, {"td": 1, "mc": 30}[algo], next(rngs))
    np.testing.assert_array_equal(tasks.transition, expected.transition)
    wanted = ALGORITHMS[algo].targets(expected, unrolls, GAMMA)
    for found in (targets[algo], both(300)[2][algo]):
        np.testing.assert_array_equal(found.sums, wanted.sums)
        np.testing.assert_array_equal(found.bootstrap, wanted.bootstrap)
    assert set(context.length) == set(range(2, 6))


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, training in SETTINGS.items() for kind in training["formats"]]
)
def test_runs_are_pretrained_on_their_format(folder, name, kind):
    """All formats have the same tasks, contexts and batches."""
    (algo,) = SETTINGS[name]["algos"]
    found = weights_of(folder, name, kind)
    for seed in range(SEEDS):
        tasks, context, targets = material(seed, algo)
        start = ictd.initial_weights(STATES, 0.3, ictd.generator(seed, "boyan", STATES, "weights"))
        trained = Engine(start, DEPTH, GAMMA, 0.01, clip=0.5)
        trained.train(tasks.reward, targets, gram_matrices(kind, tasks, context))
        np.testing.assert_allclose(found.A[seed], trained.weights().A, atol=ENGINES)
        np.testing.assert_allclose(found.u[seed], trained.weights().u, atol=ENGINES)


def gram_matrices(kind, tasks, context):
    grams = []
    for k in range(TASKS):
        # Rounded, because shares of steps times the number of steps are not exact integers.
        counts = np.rint(context.D[k] * context.length[k]).astype(int)
        columns = columns_of_format(kind, counts, tasks.transition[k], tasks.reward[k])
        # Grouped columns are averaged over n, also if some are missing.
        grams.append(columns @ columns.T / (STATES if kind == "grouped" else columns.shape[1]))
    return np.stack(grams)


def columns_of_format(kind, counts, transition, reward):
    """Columns of a context with ``counts`` (n, n) of steps, or of an enumerated prompt."""
    if kind == "enumerated":
        return ictd.enumerated_columns(transition, reward, GAMMA)
    if kind == "grouped":
        rows = [(s, row / row.sum()) for s, row in enumerate(counts) if row.any()]
    else:
        rows = [(s, np.eye(STATES)[j]) for s, j in np.ndindex(counts.shape) for _ in range(counts[s, j])]
    return np.transpose([[*np.eye(STATES)[s], *GAMMA * following, reward[s]] for s, following in rows])


def weights_of(folder, name, kind):
    """Weights (S, ...) of the runs of one format."""
    stored = [np.load(folder / f"runs/{name}/{seed}-{seed}.npz") for seed in range(SEEDS)]
    i = list(stored[0]["formats"]).index(kind)
    return ictd.Weights(np.stack([one["u"][0, i] for one in stored]), np.stack([one["A"][0, i] for one in stored]))


def unseen():
    parts = [draw_unseen_tasks(seed, STATES, TEST, max(LENGTHS), GAMMA, "boyan", "claims") for seed in range(SEEDS)]
    return parts, draw_unseen_tasks(0, STATES, 11, max(LENGTHS), GAMMA, "boyan", "beyond tuning")


def test_weights_are_evaluated_on_whole_prompts(folder):
    """Each trial has its own tasks."""
    table = pd.read_csv(folder / "boyan-3/errors.csv").set_index(
        ["setting", "method", "prompts", "shown", "seed", "context_length"]
    )
    parts, _ = unseen()
    for kind, shown, length in itertools.product(FORMATS, ("step", "grouped", "pseudo"), LENGTHS):
        weights = weights_of(folder, "main", kind)
        for seed, data in enumerate(parts):
            paths, rewards = data.paths[:, : length + 1], data.tasks.reward
            values = [answer(weights[seed], DEPTH, paths[i], rewards[i], shown) for i in range(TEST)]
            found = table.loc[("main", "mc", kind, shown, seed, length), ["mean", "median"]]
            np.testing.assert_allclose(found, summary(data, values)[:2], rtol=1e-9)
    assert len(table.loc["other"]) == 2 * SEEDS * 3 * len(LENGTHS)


def answer(weights, depth, path, reward, shown="step"):
    """Estimates (n,) of one Transformer, by a whole prompt; grouped columns are divided by n, or by their number."""
    columns, share = ictd.sampled_columns(path, reward, GAMMA), 1
    if shown not in ("step", "ones"):
        columns = naive.grouped_columns(path, reward[path[:-1]], STATES, GAMMA, pseudo_steps=shown == "pseudo")
        share = 1 if shown == "grouped_length" else columns.shape[1] / STATES
    model = ictd.LinearTransformer(ictd.Weights(weights.u, share * weights.A), depth)
    return model(ictd.joint_prompt(columns), queries=STATES).detach().numpy()


def read(weights, path, reward, shown):
    """Estimates (n,) of four layers, in one of the ways to read a context without a tuned factor."""
    if shown in ("ones", "per_state", "mean_state"):
        share = (1 - GAMMA) * answer(weights, 4, path, np.ones(STATES))
        divisor = share.mean() if shown == "mean_state" else share
        return share if shown == "ones" else answer(weights, 4, path, reward) / divisor
    if shown == "centred":
        mean = reward[path[:-1]].mean()
        values = answer(weights, 4, path, reward - mean)
        return mean / (1 - GAMMA) + values - values[path[:-1]].mean()
    return answer(weights, 4, path, reward, shown)


def summary(data, values):
    """What the table of errors has of the estimates (k, n) of one trial."""
    msves, levels, correlations = [], [], []
    for mu, true, own in zip(data.tasks.stationary, data.value, values, strict=True):
        msves.append((mu * (own - true) ** 2).sum())
        levels.append(((mu * own).sum() - (mu * true).sum()) ** 2)
        covariance = np.cov(own, true, aweights=mu)
        correlations.append(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    deviations = np.median(np.subtract(msves, levels))
    return [np.mean(msves), np.median(msves), np.mean(levels), deviations, np.median(correlations), np.median(values)]


UNTUNED = ["step", "grouped", "pseudo", "grouped_length", "ones", "per_state", "mean_state", "centred"]
WITH_FACTOR = ["step", "grouped", "centred"]


@pytest.mark.parametrize("method", ["td", "theta_td"])
def test_the_paper_s_weights_are_read_in_several_ways(folder, method):
    """Factors are tuned on other tasks, and the attention of the paper's weights is not divided here."""
    table = pd.read_csv(folder / "boyan-3/errors.csv")
    table = table[(table["setting"] == "paper") & (table["method"] == method)]
    rows = table.set_index(["shown", "context_length", "seed"]).sort_index()
    assert {*table["shown"]} == {*UNTUNED, *(f"{way}_tuned" for way in WITH_FACTOR)}
    parts, tuning = unseen()
    # Each trial has six of the eleven tuning tasks, or five.
    trials = [naive.several_weights(STATES, SEEDS)[seed] for seed in range(SEEDS)]
    theta = ictd.theta_td(STATES)

    def values(data, i, length, way, seed, factor):
        weights = trials[seed] if method == "td" else theta
        divisor = STATES if way in ("grouped", "pseudo", "grouped_length") else length
        whole = ictd.Weights(weights.u, factor * divisor * weights.A)
        return read(whole, data.paths[i, : length + 1], data.tasks.reward[i], way)

    def score(length, way, factor):
        own = np.stack([values(tuning, i, length, way, i // 6, factor) for i in range(len(tuning.value))])
        return tuning.error(own).mean()

    for shown, length in itertools.product([*UNTUNED, *(f"{way}_tuned" for way in WITH_FACTOR)], LENGTHS):
        way, found = shown.removesuffix("_tuned"), rows.loc[shown, length]
        (factor,) = {*found["chosen"]}
        if way != shown:
            scores = [score(length, way, candidate) for candidate in evaluate.FACTORS]
            assert factor == pytest.approx(evaluate.FACTORS[np.argmin(scores)])
        for seed, data in enumerate(parts):
            with np.errstate(all="ignore"):  # theta^TD answers unvisited states with zero.
                own = np.stack([values(data, i, length, way, seed, factor) for i in range(TEST)])
                expected = summary(data, own)
            if np.isfinite(own).all():
                measured = found.loc[seed, evaluate.MEASURES].astype(float)
                np.testing.assert_allclose(measured, expected, rtol=1e-6, err_msg=shown)


def test_attention_is_divided_by_the_number_of_steps_if_it_is_scaled():
    divided, whole = (evaluate.Readings.of(unseen()[0][0], 2, scaled).grams["step"] for scaled in (True, False))
    np.testing.assert_allclose(2 * divided, whole)


def test_baselines_by_their_definitions():
    """Estimates of one task with given parameters."""
    parts, tuning = unseen()
    data, m = parts[0], LENGTHS[0]
    found = {name: one(data, data.context(m), candidates[-1]) for name, (one, candidates) in methods(tuning).items()}
    p, mu = tuning.tasks.transition.mean(axis=0), tuning.tasks.stationary.mean(axis=0)
    for i in range(TEST):
        path, reward = data.paths[i, : m + 1], data.tasks.reward[i]
        visited, rewards = np.isin(np.arange(STATES), path[:-1]), reward[path[:-1]]
        pseudo_steps = {
            "lstd_unvisited": np.where(visited, 0, 1 / STATES)[:, None] * np.ones(STATES),
            "ce_uniform": np.full((STATES, STATES), 1000 / STATES),
            "lstd_prior": 1000 * mu[:, None] * p,
        }
        expected = {
            name: naive.certainty_equivalence(path, rewards, STATES, GAMMA, steps, 0.0)
            for name, steps in pseudo_steps.items()
        }
        expected["constant_tuned"] = 1.5 * rewards.mean() / (1 - GAMMA)
        remaining = naive.lstd(path, rewards - rewards.mean(), STATES, GAMMA, RIDGES[-1])
        expected["lstd_centred"] = rewards.mean() / (1 - GAMMA) + remaining
        for name, values in expected.items():
            np.testing.assert_allclose(found[name][i], values, rtol=1e-9, atol=1e-12, err_msg=name)


def test_baselines_are_tuned_on_other_tasks(folder):
    table = pd.read_csv(folder / "boyan-3/errors.csv")
    parts, tuning = unseen()
    data = joined(parts)
    for name, (estimate, candidates) in methods(tuning).items():
        for length in LENGTHS:
            tried = (estimate(tuning, tuning.context(length), candidate) for candidate in candidates)
            scores = [tuning.error(one).mean() for one in tried]
            best = candidates[np.argmin(scores)]
            rows = table[(table["method"] == name) & (table["context_length"] == length)]
            expected = data.error(estimate(data, data.context(length), best)).reshape(SEEDS, TEST)
            np.testing.assert_allclose(rows["mean"], expected.mean(axis=1))
            np.testing.assert_allclose(rows["median"], np.median(expected, axis=1))
            if len(candidates) > 1:
                np.testing.assert_allclose(rows["chosen"], np.ravel(best)[0])


def test_the_bayes_error_is_below_the_error_of_all_baselines():
    data, tuning = (
        draw_unseen_tasks(0, STATES, 60, 60, GAMMA, "boyan", stream) for stream in ("claims", "beyond tuning")
    )
    errors = {
        (name, length): data.error(estimate).mean()
        for name, length, _, estimate in baseline_estimates("boyan", data, tuning, [5, 60], 2000)
    }
    for (name, length), msve in errors.items():
        assert errors["bayes", length] <= msve, name
    for env, samples in (("boyan", 20), ("loop", 2000)):
        (*_, (*_, bayes)) = baseline_estimates(env, data, tuning, [5], samples)
        assert np.isnan(bayes).all()


def test_the_nearest_form_recovers_the_pseudo_steps_that_made_the_outputs():
    parts, tuning = unseen()
    data, k = joined(parts), evaluate.PSEUDO_COUNTS[60]
    outputs = methods(tuning)["lstd_prior"][0](data, data.context(2), k)
    for form, (candidates, values) in evaluate.shrunk_lstd(data, tuning, 2).items():
        chosen, explained = evaluate.nearest(values, outputs, data.tasks.stationary, SEEDS)
        assert (explained == pytest.approx(1, abs=1e-12)) == (form == "lstd_prior")
        assert form != "lstd_prior" or candidates[chosen].tolist() == [k, k]


def test_explained_shares_are_those_of_the_other_half_of_the_tasks():
    rng = np.random.default_rng(0)
    values, estimate = rng.normal(size=(3, 2 * TEST, STATES)), rng.normal(size=(2 * TEST, STATES))
    mu = rng.dirichlet(np.ones(STATES), 2 * TEST)
    chosen, explained = evaluate.nearest(values, estimate, mu, 2)

    def squares(other, tasks):
        return (mu[tasks] * (other[tasks] - estimate[tasks]) ** 2).sum()

    for seed in range(2):
        own, half = slice(seed * TEST, (seed + 1) * TEST), seed * TEST + 3
        assert chosen[seed] == np.argmin([squares(one, slice(own.start, half)) for one in values])
        mean = np.average(estimate[own], weights=mu[own])
        second = slice(half, own.stop)
        missed, spread = squares(values[chosen[seed]], second), squares(np.full_like(estimate, mean), second)
        assert explained[seed] == pytest.approx(1 - missed / spread)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"settings": [{"name": "main", "width": 3}]}, "sampled_prompts.settings has an unknown key 'width'"),
        ({"settings": [{"name": "main", "formats": ["step"]}]}, "needs one called main with the formats step, grouped"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        config = load_config({"sampled_prompts": given}, PROJECT)
        check(config, config["sampled_prompts"])
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_contexts_are_no_longer_than_those_of_the_paper():
    paper, study = {"evaluation": {"context_lengths": [5, 20]}}, {"context_lengths": [10, 20, 50]}
    assert lengths_of(paper, study) == [10, 20]
    assert lengths_of(paper, {"context_lengths": [50]}) == [20]
