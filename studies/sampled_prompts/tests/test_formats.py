"""Formats of sampled contexts: pretraining on each format, and evaluation on whole prompts."""

import naive
import numpy as np
import pandas as pd
import pytest
from drawn import where
from tolerances import ENGINES

import ictd
from ictd.engine import Engine
from ictd.evaluation import draw_unseen_tasks
from ictd.statistics import bootstrap_ratios
from studies.sampled_prompts import formats, pages, pretrain
from studies.sampled_prompts.grid import Setting
from studies.sampled_prompts.training_data import training_data

GAMMA, STATES, DEPTH, TASKS, TEST, LENGTHS = 0.9, 3, 2, 12, 7, [2, 9]
TRAINING = {"lengths": [2, 5], "batch_size": 8, "rollout_steps": 30}
KINDS = {"grouped_mc": "grouped", "mc": "contexts", "enumerated_mc": "enumerated"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Weights of each format, weights of a cell, and baselines with LSTD's errors."""
    folder = tmp_path_factory.mktemp("formats")
    pretrain.main(
        list(KINDS), [DEPTH] * 3, [TASKS] * 3, "boyan", STATES, GAMMA, "4-5", snapshots=3, tasks=TASKS, clip=0.5,
        learning_rate=0.01, initial_gain=0.3, env_options={"boyan": {}}, **TRAINING,
        outputs=[folder / f"runs/{kind}-boyan-3-2-0.9/4-5.npz" for kind in KINDS],
    )  # fmt: skip
    (folder / "cells").mkdir()
    cell = naive.several_weights(STATES)
    np.savez(folder / "cells/td-loop-3-4.npz", u=cell.u, A=cell.A)
    (folder / "baselines").mkdir()
    errors = np.random.default_rng(0).uniform(1, 2, (2, 3, TEST))
    np.savez(
        folder / "baselines/boyan-3-0.9.npz", methods=["zero", "lstd"], context_lengths=[2, 5, 9], msve=errors
    )  # fmt: skip
    formats.main(
        "boyan", GAMMA, False, TASKS, TEST, LENGTHS, [2, 100], {"boyan": {}}, sorted(folder.glob("runs/*/*.npz")),
        [folder / "cells/td-loop-3-4.npz"], [folder / "baselines/boyan-3-0.9.npz"], folder / "formats.csv",
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_pretrained_on_their_format(folder, kind):
    """All formats have the same tasks, contexts and batches."""
    found = np.load(folder / f"runs/{kind}-boyan-3-2-0.9/4-5.npz")
    for i, seed in enumerate((4, 5)):
        tasks, context, batches = training_data("boyan", STATES, seed, discount=GAMMA, **TRAINING)(TASKS, ["mc"])
        prompts = []
        for k in range(TASKS):
            # Rounded, because shares of steps times the number of steps are not exact integers.
            counts = np.rint(context.D[k] * context.length[k]).astype(int)
            transition, reward = tasks.transition[k], tasks.reward[k]
            columns = columns_of_format(kind, counts, transition, reward)
            # Grouped columns are averaged over n, also if some are missing.
            prompts.append(columns @ columns.T / (STATES if kind == "grouped_mc" else columns.shape[1]))
        start = ictd.initial_weights(STATES, 0.3, ictd.generator(seed, "boyan", STATES, "weights"))
        engine = Engine(start, "mc", DEPTH, GAMMA, 0.01, clip=0.5)
        engine.train(tasks.reward, batches["mc"], np.stack(prompts))
        np.testing.assert_allclose(found["history_A"][i, -1], engine.weights().A, atol=ENGINES)
        np.testing.assert_allclose(found["history_u"][i, -1], engine.weights().u, atol=ENGINES)


def columns_of_format(kind, counts, transition, reward):
    """Columns of a context with ``counts`` (n, n) of steps, or of an enumerated prompt."""
    if kind == "enumerated_mc":
        return ictd.enumerated_columns(transition, reward, GAMMA)
    if kind == "grouped_mc":
        rows = [(s, row / row.sum()) for s, row in enumerate(counts) if row.any()]
    else:
        rows = [(s, np.eye(STATES)[j]) for s, j in np.ndindex(counts.shape) for _ in range(counts[s, j])]
    return np.transpose([[*np.eye(STATES)[s], *GAMMA * following, reward[s]] for s, following in rows])


def test_formats_are_evaluated_on_whole_prompts(folder):
    table = pd.read_csv(folder / "formats.csv")
    assert len(table) == 4 * 3 * 2
    data = draw_unseen_tasks(0, STATES, TEST, max(LENGTHS), GAMMA, "boyan", "beyond")
    lstd = np.load(folder / "baselines/boyan-3-0.9.npz")["msve"][1][[0, 2]]
    trained = {"paper": ("td", "loop", 4, naive.several_weights(STATES))}
    for kind, prompts in KINDS.items():
        stored = np.load(folder / f"runs/{kind}-boyan-3-2-0.9/4-5.npz")
        trained[prompts] = ("mc", "boyan", 2, ictd.Weights(stored["history_u"][:, -1], stored["history_A"][:, -1]))
    by_task = {}
    for prompts, (algo, env, depth, weights) in trained.items():
        for shown, (k, length) in ((shown, at) for shown in ("step", "grouped", "pseudo") for at in enumerate(LENGTHS)):
            # Attention of the cell is not divided, so it is larger by the length of the context, or by n for grouped
            # columns.
            wide = 1 if prompts != "paper" else length if shown == "step" else STATES
            errors = np.array([
                [error(ictd.Weights(u, wide * A), depth, data, i, length, shown) for i in range(TEST)]
                for u, A in zip(weights.u, weights.A, strict=True)
            ])  # fmt: skip
            row = where(table, prompts=prompts, shown=shown, context_length=length).iloc[0]
            assert [row.algo, row.env, row.states, row.depth] == [algo, env, STATES, depth]
            means = by_task[prompts, shown, length] = errors.mean(axis=0)
            expected = [means.mean(), means.std(ddof=1) / np.sqrt(TEST), np.median(errors, axis=1).mean()]
            found = row[["mean", "standard_error", "median"]].tolist()
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            assert row.lstd == pytest.approx(lstd[k].mean())
            np.testing.assert_allclose(
                [row.low, row.high], bootstrap_ratios(means[:, None], lstd[k][:, None])[0][1:], rtol=1e-9
            )
    for row in table.itertuples():
        if row.prompts == "paper":
            assert np.isnan(row.enumerated_high)
        else:
            own = by_task[row.prompts, row.shown, row.context_length]
            reference = by_task["enumerated", "grouped", row.context_length]
            found = [row.enumerated_ratio, row.enumerated_low, row.enumerated_high]
            np.testing.assert_allclose(found, bootstrap_ratios(own[:, None], reference[:, None])[0], rtol=1e-9)
            assert row.enumerated_ratio == pytest.approx(own.mean() / reference.mean())


def error(weights, depth, data, i, length, shown):
    """MSVE of one Transformer on the context of one task."""
    path, reward = data.paths[i, : length + 1], data.tasks.reward[i]
    columns, share = ictd.sampled_columns(path, reward, GAMMA), 1
    if shown != "step":
        columns = naive.grouped_columns(path, reward[path[:-1]], STATES, GAMMA, pseudo_steps=shown == "pseudo")
        share = columns.shape[1] / STATES
    model = ictd.LinearTransformer(ictd.Weights(weights.u, share * weights.A), depth)
    values = model(ictd.joint_prompt(columns), queries=STATES).detach().numpy()
    return (data.tasks.stationary[i] * (values - data.value[i]) ** 2).sum()


def test_pages_of_formats(folder):
    table = pd.read_csv(folder / "formats.csv")
    baselines = pd.DataFrame({
        "env": "boyan", "states": STATES, "discount": GAMMA, "context_length": LENGTHS * 2,
        "method": ["zero"] * 2 + ["lstd"] * 2, "mean": 2.0, "standard_error": 0.25, "median": 1.0,
    })  # fmt: skip
    page = pages.formats_page(table, baselines, Setting("boyan", STATES, DEPTH, GAMMA))
    assert list(page) == ["pretrained_on", "shown", *map(str, LENGTHS)] and len(page) == 3 * 3 + 1
    assert page.iloc[-1].tolist() == ["lstd", "", "2 ± 0.25 (1)", "2 ± 0.25 (1)"]
    row = where(table, prompts="grouped", shown="pseudo", context_length=9).iloc[0]
    shown = where(page, pretrained_on="MC, grouped contexts", shown="grouped, one pseudo-step")["9"].iloc[0]
    assert shown == f"{row['mean']:.3g} ± {row.standard_error:.2g} ({row['median']:.2g})"
    sides = pd.DataFrame({"low": [0.5, 1.5, 0.9], "high": [0.7, 1.7, 1.1], "context_length": [2, 9, 11]})
    rows = where(table, prompts="paper", shown="step").iloc[[0, 0, 0]].reset_index(drop=True)
    cells = pages.cells_page(rows.assign(**sides, mean=0.0))
    assert [cells[length].iloc[0].split(", ")[1] for length in ("2", "9", "11")] == [
        "below LSTD", "above LSTD", "not shown"]  # fmt: skip
