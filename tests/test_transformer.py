"""Weights, the Transformer's output as a function of averages, and pretrained models."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context
from ictd.storage import save_arrays
from ictd.transformer import Model, transformer_output


def assert_close(values, expected):
    np.testing.assert_allclose(values, expected, atol=ROUNDING * max(1, np.abs(expected).max()))


def test_P_and_Q_have_the_blocks_of_theta_looped():
    u, A = np.arange(12.0).reshape(3, 4), np.arange(48.0).reshape(3, 4, 4)
    weights = ictd.Weights(u, A)
    P, Q = np.zeros((2, 3, 5, 5))
    P[:, 4] = np.column_stack([u, np.ones(3)])
    Q[:, :4, :4] = A
    np.testing.assert_array_equal(weights.P(), P)
    np.testing.assert_array_equal(weights.Q(), Q)
    assert weights.dimension == 2


def test_initial_weights_are_xavier_normal_with_gain():
    """The deviation is the gain over the root of 2n + 1, the mean of fan-in and fan-out."""
    drawn, rng = ictd.initial_weights(3, 0.1, np.random.default_rng(0)), np.random.default_rng(0)
    np.testing.assert_array_equal(drawn.u, rng.normal(0, 0.1 / np.sqrt(7), 6))
    np.testing.assert_array_equal(drawn.A, rng.normal(0, 0.1 / np.sqrt(7), (6, 6)))


def test_an_index_of_weights_takes_leading_axes_only():
    """The number of weights equals the lengths of the other axes."""
    several = ictd.Weights(np.zeros((4, 4)), np.arange(64.0).reshape(4, 4, 4))
    np.testing.assert_array_equal(several[..., 0].A, several.A[0])
    with pytest.raises(IndexError):
        several[..., 0, 0]


@pytest.mark.parametrize(("length", "layers", "depth", "scaled"), [(2, 1, 1, True), (7, 3, 3, False), (9, 1, 6, True)])
def test_outputs_with_any_matrices_equal_naive(length, layers, depth, scaled):
    """Two models on three prompts, with four queries that are not one-hot."""
    rng = np.random.default_rng(length)
    P, Q = rng.normal(0, 0.3 if scaled else 0.3 / length, (2, 2, 1, layers, 7, 7))
    prompts = rng.normal(size=(3, 7, length + 4))
    found = transformer_output(prompts, P, Q, depth, 4, scaled)
    assert found.shape == (2, 3, 4)
    for run, i, s in np.ndindex(found.shape):
        one = np.delete(prompts[i], [length + j for j in range(4) if j != s], axis=1)
        matrices = ([of_run[run, 0, layer % layers] for layer in range(depth)] for of_run in (P, Q))
        assert_close(found[run, i, s], naive.output(*matrices, one, scaled))


def test_estimates_on_contexts_of_several_lengths():
    """The number of contexts equals the lengths of the other axes."""
    weights, X = naive.larger_weights(4), np.random.default_rng(0).normal(size=(8, 9, 9))
    G, lengths = X @ X.mT / 9, np.arange(1, 9)
    together = Model(weights[None], 3, 0.9, scaled=False).values(Context(lengths, G), queries=np.eye(4))
    for i in range(8):
        alone = Model(weights, 3, 0.9, scaled=False).values(Context(i + 1, G[i]), queries=np.eye(4))
        np.testing.assert_allclose(together[0, i], alone, rtol=ROUNDING * 10)


@pytest.mark.parametrize(("lead", "length", "scaled"), [((), 40, False), ((2, 3), 12, True)])
def test_values_of_trajectories_equal_naive(lead, length, scaled):
    """Rewards are random, not a function of the state."""
    rng, weights, n = np.random.default_rng(length), naive.several_weights(4, count=2), 4
    states, rewards = rng.integers(0, n, (*lead, length + 1)), rng.normal(size=(*lead, length))
    models = Model(weights if scaled else ictd.Weights(weights.u, weights.A / length), 5, 0.85, scaled)
    values = models.values(ictd.Context.from_trajectory(states, rewards, n))
    assert values.shape == (2, *lead, n)
    for run, *index in np.ndindex(2, *lead):
        columns = naive.columns_of_steps(states[*index], rewards[*index], n, 0.85)
        prompts = [np.column_stack([columns, query]) for query in np.eye(2 * n + 1)[:n]]
        assert_close(values[run, *index], [naive.transformer(models[run].weights, 5, one, scaled) for one in prompts])


RUN = "td-boyan-2-30"


@pytest.fixture
def results(tmp_path):
    """A folder of results with a run of seeds 5 and 3, of which seed 5 diverged."""
    weights = naive.several_weights(2, count=2)
    save_arrays(
        tmp_path / f"weights/{RUN}.npz", seeds=np.array([5, 3]), u=weights.u, A=weights.A,
        diverged_at=np.array([70, 0]), depth=np.array(30), discount=np.array(0.9), scaled=np.array(False),
    )  # fmt: skip
    return tmp_path


def test_models_are_loaded_from_results_a_folder_of_weights_or_a_file(results):
    weights, folder = naive.several_weights(2, count=2), results / "weights"
    loaded = [ictd.load_model(str(results), RUN, seed=np.int64(3)), ictd.load_model(folder, RUN, 3)]
    for model in (*loaded, ictd.load_model(folder / f"{RUN}.npz", seed=3)):
        assert model == ictd.Model(weights[1], 30, 0.9, scaled=False)
    with pytest.warns(UserWarning, match=f"{RUN} diverged with seed 5; these weights are NaN"):
        assert ictd.load_model(results, RUN).weights == weights[[1, 0]]


@pytest.mark.parametrize(
    ("run", "seed", "message"),
    [
        (f"../weights/{RUN}", 3, f"run is '../weights/{RUN}'; choose from {RUN}"),
        (None, 3, "run is None"),
        (RUN, 2, "no seed 2; choose from 3, 5"),
        (RUN, 5, "seed 5 diverged at task 70"),
    ],
)
def test_models_that_are_not_in_the_results_are_refused(results, run, seed, message):
    with pytest.raises(ValueError, match=message):
        ictd.load_model(results, run, seed)


def test_a_path_may_begin_with_the_home_folder(results, monkeypatch):
    monkeypatch.setenv("HOME", str(results))
    monkeypatch.chdir(results / "weights")
    model = ictd.Model(naive.larger_weights(3), 4, discount=1)
    model.save("~/new/mine.npz")
    assert ictd.load_model("~/new/mine.npz") == ictd.load_model(results / "new/mine.npz") == model
    assert ictd.load_model("~", RUN, 3) == ictd.load_model(f"~/weights/{RUN}.npz", seed=3)
    assert [path.name for path in (results / "weights").iterdir()] == [f"{RUN}.npz"]
    with pytest.raises(ValueError, match="holds a model without a seed; leave out the seed"):
        ictd.load_model("~/new/mine.npz", seed=0)
    with pytest.raises(ValueError, match=r"~nobody0/m.npz is in a home folder that is not known; write the path"):
        model.save("~nobody0/m.npz")


def test_a_file_that_cannot_be_written_or_holds_no_model_is_named(tmp_path):
    model = ictd.Model(naive.larger_weights(3), 4, discount=1)
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file").touch()
    for name, message in (
        ("folder.npz", "folder.npz cannot be written: Is a directory.*; give the name of another"),
        ("file/m.npz", "cannot be written: File exists"),
        ("mine", r"ends in \.npz"),
    ):
        with pytest.raises(ValueError, match=message):
            model.save(tmp_path / name)
    save_arrays(tmp_path / "wrong.npz", u=np.ones(5), A=np.ones((6, 6)), depth=np.array(4), discount=1, scaled=True)
    with pytest.raises(ValueError, match=r"wrong.npz is damaged or holds no model; give a file that Model"):
        ictd.load_model(tmp_path / "wrong.npz")


def test_values_of_all_layers_are_those_of_shallower_models():
    contexts = Context.from_trajectory(np.random.default_rng(0).integers(0, 3, (2, 10)), np.ones((2, 9)), 3)
    weights = naive.larger_weights(3)
    found = Model(weights, 5, 0.9).values(contexts, layers=True)
    expected = [np.zeros((2, 3)), *(Model(weights, depth, 0.9).values(contexts) for depth in range(1, 6))]
    np.testing.assert_array_equal(found, expected)
