"""The library as those call it who have chains, trajectories and weights of their own."""

import io
import itertools
import json

import naive
import numpy as np
import pages
import pandas as pd
import papermill
import pytest
from naive import larger_weights
from projects import ROOT
from tolerances import ROUNDING

import ictd
from ictd import storage
from ictd.prompt import Gram, enumerated_columns
from ictd.steps import evaluate, pretrain, tasks, unrolls
from ictd.transformer import Model

PAGES = [ROOT / "docs/python.md", ROOT / "README.md"]
# One cell's settings, a run of which is small; the other algorithm's diverges.
SETTINGS = {
    "env": "boyan", "states": 5, "depth": 30, "discount": 0.9, "batch_size": 8, "rollout_steps": 20, "snapshots": 2,
    "initial_gain": 0.1, "scaled_attention": True, "engine": "fused", "on_divergence": "record",
    "env_options": {}, "evaluation_env": "boyan", "context_lengths": [3], "seeds": "0-1", "tasks": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder whose results are those of a small run."""
    folder = tmp_path_factory.mktemp("project")
    results = folder / "results"

    def carry_out(step, **given):
        taken = step.main.__code__.co_varnames[: step.main.__code__.co_argcount]
        step.main(**{name: (SETTINGS | given)[name] for name in taken})

    files = {"tasks": results / "tasks/boyan-5/0-1.npz", "unrolls": results / "unrolls/boyan-5/0-1.npz"}
    carry_out(tasks, output=files["tasks"])
    carry_out(unrolls, tasks=files["tasks"], output=files["unrolls"])
    for algo, rate in (("td", 0.001), ("mc", 1e200)):
        run = results / f"runs/{algo}-boyan-5-30/0-1.npz"
        given = {"learning_rate": rate, "diverged": results / "diverged"}
        carry_out(pretrain, **files, **given, outputs=[run])
        made = {name: [results / name / f"{algo}-boyan-5-30.npz"] for name in ("weights", "evaluations")}
        carry_out(evaluate, runs=[run], tasks=2, **made)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_print_what_they_say(page, project, monkeypatch):
    """Numbers that a full run's weights decide are others here; all others are the same but for the last digit."""
    monkeypatch.chdir(project)
    examples = pages.examples(page)
    found = pages.printed_by([code for code, _ in examples])
    for (code, said), printed in zip(examples, found, strict=True):
        if said is not None:
            assert pages.without_numbers(printed) == pages.without_numbers(said), code
            if "model." not in code:
                np.testing.assert_allclose(pages.numbers(printed), pages.numbers(said), atol=0.011)
    assert page.name == "README.md" or all(said for _, said in examples)


def context_of(states, rewards, discount, n):
    """Whole contexts (..., 2n+1, m), column by column."""
    if states.ndim == 1:
        return naive.columns_of_steps(states, rewards, n, discount)
    return np.stack([context_of(*one, discount, n) for one in zip(states, rewards, strict=True)])


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("lead", "length"), [((), 1), ((), 40), ((3,), 7), ((2, 3), 12)])
def test_values_of_a_trajectory_are_those_of_whole_prompts(lead, length, scaled):
    """Rewards are random, and not a function of the state."""
    rng, weights, n = np.random.default_rng(length), larger_weights(4), 4
    states, rewards = rng.integers(0, n, (*lead, length + 1)), rng.normal(size=(*lead, length))
    weights = weights if scaled else ictd.Weights(weights.u, weights.A / length)
    found = Model(weights, 5, 0.85, scaled).values(ictd.Context.from_trajectory(states, rewards, n))
    context = context_of(states, rewards, 0.85, n)
    expected = ictd.LinearTransformer(weights, 5, scaled)(ictd.joint_prompt(context), queries=n).detach().numpy()
    assert found.shape == (*lead, n)
    np.testing.assert_allclose(found, expected, atol=ROUNDING * max(1, np.abs(expected).max()))
    first = (0,) * len(lead)
    prompts = [np.column_stack([context[first], query]) for query in np.eye(2 * n + 1)[:n]]
    slow = [naive.transformer(weights, 5, prompt, scaled) for prompt in prompts]
    np.testing.assert_allclose(found[first], slow, atol=ROUNDING * max(1, np.abs(slow).max()))


@pytest.mark.parametrize("scaled", [True, False])
def test_values_of_a_known_chain_are_those_of_its_enumerated_prompt(scaled):
    drawn, weights = ictd.sample_tasks("loop", 4, 3, np.random.default_rng(0)), larger_weights(4)
    context = ictd.Context.enumerated(drawn.transition, drawn.reward)
    found = Model(weights, 6, 0.9, scaled).values(context)
    prompt = ictd.joint_prompt(ictd.enumerated_columns(drawn.transition, drawn.reward, 0.9))
    expected = ictd.LinearTransformer(weights, 6, scaled)(prompt, queries=4).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=ROUNDING * np.abs(expected).max())
    one, sums = context.gram(0.9), Gram.of_columns(enumerated_columns(drawn.transition, drawn.reward, 0.9))
    np.testing.assert_allclose(one.M, sums.M, atol=ROUNDING)
    np.testing.assert_allclose(one.c, sums.c, atol=ROUNDING)


def test_batch_td_and_lstd_take_random_rewards():
    """Beside both written out over steps."""
    rng, n, discount, ridge = np.random.default_rng(3), 3, 0.9, 0.1
    states, rewards = rng.integers(0, n, 21), rng.normal(size=20)
    context, matrix, b, w = (
        ictd.Context.from_trajectory(states, rewards, n),
        ridge * np.eye(n),
        np.zeros(n),
        np.zeros(n),
    )
    steps = list(zip(states, rewards, states[1:], strict=False))
    for now, reward, following in steps:
        matrix[now] += np.eye(n)[now] - discount * np.eye(n)[following]
        b[now] += reward
    np.testing.assert_allclose(ictd.lstd(context, discount, ridge), np.linalg.solve(matrix, b), atol=ROUNDING * 1000)
    for _ in range(7):
        errors = [(reward + discount * w[following] - w[now]) * np.eye(n)[now] for now, reward, following in steps]
        w = w + 0.5 * np.mean(errors, axis=0)
    np.testing.assert_allclose(ictd.batch_td(context, discount, 0.5, 7), w, atol=ROUNDING)


def test_several_models_on_several_contexts():
    weights = ictd.Weights(*(np.stack(parts) for parts in zip(*(vars(larger_weights(3, seed)).values()
                             for seed in range(2)), strict=True)))  # fmt: skip
    contexts = ictd.Context.from_trajectory([[0, 1, 2], [2, 0, 0]], [[1.0, -1.0], [0.5, 2.0]], 3)
    alone = ictd.Context.from_trajectory([0, 1, 2], [1.0, -1.0], 3)
    found = Model(weights, 4, 0.9).values(contexts)
    assert found.shape == (2, 2, 3) and Model(weights, 4, 0.9).values(alone).shape == (2, 3)
    np.testing.assert_allclose(found[1, 0], Model(weights[1], 4, 0.9).values(alone), atol=ROUNDING)


def test_a_saved_run_is_loaded_with_its_settings(project):
    for seed in (0, 1):
        model = ictd.load_model(str(project / "results"), "td-boyan-5-30", seed=np.int64(seed))
        with np.load(project / "results/weights/td-boyan-5-30.npz") as stored:
            np.testing.assert_array_equal(model.weights.A, stored["A"][seed])
            np.testing.assert_array_equal(model.weights.u, stored["u"][seed])
        assert (model.depth, model.discount, model.scaled) == (30, 0.9, True)


@pytest.mark.parametrize(
    ("run", "seed", "said"),
    [
        ("td-boyan-5-31", 0, r"run is 'td-boyan-5-31'; choose from mc-boyan-5-30, td-boyan-5-30\."),
        ("../weights/td-boyan-5-30", 0, "run is '../weights/td-boyan-5-30'; choose"),
        (None, 0, "run is None; choose from"),
        ("td-boyan-5-30", 2, r"td-boyan-5-30 has no seed 2; choose from 0, 1\."),
        ("td-boyan-5-30", -1, "seed is -1; give a whole number from 0"),
        ("td-boyan-5-30", "0", "seed is '0'; give a whole number from 0"),
        ("mc-boyan-5-30", 1, r"mc-boyan-5-30 with seed 1 diverged at task \d+; choose another seed\."),
    ],
)
def test_what_is_no_saved_run_is_answered_in_a_sentence(project, run, seed, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        ictd.load_model(project / "results", run, seed)


def test_folders_and_files_that_cannot_be_loaded(project, tmp_path):
    for folder, said in (("nowhere", "nowhere holds no weights of runs; give the folder"), (3, "results is 3; give a")):
        with pytest.raises(ValueError, match=said):
            ictd.load_model(folder, "td-boyan-5-30", 0)
    whole, path = project / "results/weights/td-boyan-5-30.npz", tmp_path / "weights/td-boyan-5-30.npz"
    storage.save_arrays(path, **storage.load_named(whole, "seeds", "u", "A", "diverged_at"))
    with pytest.raises(ValueError, match="it has no array 'depth'"):
        ictd.load_model(tmp_path, "td-boyan-5-30", 0)
    path.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"td-boyan-5-30\.npz cannot be used: .*; make it anew: rm "):
        ictd.load_model(tmp_path, "td-boyan-5-30", 0)


def test_other_numbers_of_states_are_said_in_words():
    model = Model(ictd.theta_td(5), 3, 0.9)
    context = ictd.Context.from_trajectory([0, 1, 2], [1.0, 2.0], n=3)
    prompt = ictd.joint_prompt(ictd.sampled_columns([0, 1, 2], np.zeros(3), 0.9))
    for call, said in (
        (
            lambda: model.values(context),
            "the context has 3 states, and the model was made for 5 states; load or pretrain",
        ),
        (lambda: ictd.LinearTransformer(model.weights, 3)(prompt, queries=3), "3 states, and the model has 5 states"),
        (
            lambda: ictd.Context.from_trajectory([0, 7, 2], [1.0, 2.0], n=5),
            r"states\[1\] is not one of 5 states",
        ),
        (lambda: ictd.Context.from_trajectory([0, -1, 2], [1.0, 2.0], n=5), r"states\[1\] is not one of 5 states"),
        (lambda: ictd.Context.from_trajectory([0, 1, 2], [1.0, 2.0, 3.0], n=5), r"rewards has shape \(3,\); .*m = 2\."),
        (lambda: ictd.Context.enumerated(np.full((3, 3), 1 / 3), np.zeros(5)), r"reward has shape \(5,\); .*n = 3\."),
        (lambda: model.values(prompt), "give an object of type Context"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_one_chain_is_a_set_of_one():
    many = ictd.sample_tasks("boyan", 4, 1, np.random.default_rng(0))
    one = ictd.Tasks(many.transition[0], many.reward[0].tolist(), many.stationary[0])
    assert len(one) == 1 and all((a == b).all() for a, b in zip(vars(one).values(), vars(many).values(), strict=True))
    rng = (np.random.default_rng(1) for _ in range(2))
    unrolled = ictd.unroll(one, 8, 0.9, 5, next(rng))
    same = ictd.BatchStatistics(*(part[0] for part in vars(unrolled).values()))
    np.testing.assert_array_equal(same.transitions, ictd.unroll(many, 8, 0.9, 5, next(rng)).transitions)
    with pytest.raises(ValueError, match=r"reward has shape \(3,\); give \(\.\.\., n\) with .*n = 4\."):
        ictd.Tasks(many.transition[0], np.zeros(3))
    with pytest.raises(ValueError, match=r"^transition\[2\] does not sum to one"):
        ictd.Tasks(many.transition[0] * np.array([[1], [1], [0.5], [1]]), many.reward[0])


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_notebook_of_a_chain_of_ones_own(project, tmp_path, noise):
    """Where transitions of a state have one reward, and where they do not."""
    notebook, chain = ROOT / "examples/own-chain.ipynb", tmp_path / "chain.csv"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert all(cell["cell_type"] == "markdown" or not cell["outputs"] for cell in cells) and len(cells) < 12
    lines = pd.read_csv(ROOT / "examples/own-chain.csv")
    lines["reward"] = 0.3 - 0.2 * lines["from"] + noise * lines["reward"]
    lines.to_csv(chain, index=False)
    given = {"chain": str(chain), "results": str(project / "results"), "run": "td-boyan-5-30", "seed": 1, "steps": 60}
    done = papermill.execute_notebook(notebook, tmp_path / "done.ipynb", given, progress_bar=False)
    outputs = [output["data"] for cell in done.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("image/png" in data for data in outputs)
    table = next(data["text/plain"] for data in outputs if "text/html" in data)
    _, transformer, _, _, truth = np.loadtxt(io.StringIO(table), skiprows=2).T
    p, reward = np.zeros((2, 5, 5))
    for line in lines.itertuples():
        p[line[1], line[2]], reward[line[1], line[2]] = line.probability, line.reward
    r = (p * reward).sum(axis=1)
    path = ictd.sample_paths(ictd.Tasks(p, r), 60, np.random.default_rng(0))[0]
    rewards = np.array([reward[pair] for pair in itertools.pairwise(path)])
    prompt = ictd.joint_prompt(naive.columns_of_steps(path, rewards, 5, 0.9))
    model = ictd.load_model(project / "results", "td-boyan-5-30", 1)
    expected = ictd.LinearTransformer(model.weights, 30)(prompt, queries=5).detach().numpy()
    np.testing.assert_allclose(transformer, expected, atol=0.006)
    np.testing.assert_allclose(truth, naive.truncated_value(p, r, 0.9, 400), atol=0.006)
