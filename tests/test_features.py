"""Linear function approximation: features in place of one-hot states, behaviour distributions, and the one call."""

import naive
import numpy as np
import pytest
from tolerances import ENGINES, ROUNDING, STANDARD_ERRORS

import ictd
from ictd.context import Context
from ictd.engine import Engine
from ictd.prompt import enumerated_columns
from ictd.sampling import transition_counts
from ictd.torch_twin import TorchEngine
from ictd.training_data import enumerated_prompts, training_blocks

GAMMA, RATE, TASKS = 0.9, 1e-3, 40


def tasks_with_features(states, dimension, behaviour=None, size=TASKS):
    """Loops with features, and a behaviour: a distribution of the visited states, or a chain of them."""
    rng = np.random.default_rng(states)
    transition, reward = ictd.ENVIRONMENTS["loop"](states, size, rng)
    features = rng.normal(size=(size, states, dimension))
    if behaviour == "distribution":
        behaviour = rng.dirichlet(np.ones(states), size)
    elif behaviour == "chain":
        behaviour = rng.dirichlet(np.ones(states), (size, states))
    return ictd.Tasks(transition, reward, features=features, behaviour=behaviour)


def assert_averages(context, columns):
    """Compare a context with the averages over its columns [phi; gamma phi'; R]."""
    d = len(columns) // 2
    expected = naive.averages(columns[:d].T, columns[d:-1].T / GAMMA, columns[-1])
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(context, name), value, atol=ROUNDING * 10, err_msg=name)


@pytest.mark.parametrize("weighted", [False, True])
def test_averages_of_enumerated_contexts_equal_naive(weighted):
    tasks = tasks_with_features(4, 2, "distribution")
    weights = tasks.visited if weighted else None
    contexts = Context.enumerated(tasks.transition, tasks.reward, tasks.features, weights)
    columns = enumerated_columns(tasks.transition, tasks.reward, GAMMA, tasks.features, weights)
    for i in range(3):
        assert_averages(Context(contexts.length, contexts.G[i]), columns[i])
        share = weights[i] if weighted else np.full(4, 1 / 4)
        following = [share[s] * tasks.transition[i, s] @ tasks.features[i] for s in range(4)]
        np.testing.assert_allclose(contexts.b[i], (share * tasks.reward[i]) @ tasks.features[i], atol=ROUNDING)
        np.testing.assert_allclose(contexts.D[i], tasks.features[i].T @ following, atol=ROUNDING)


@pytest.mark.parametrize(
    ("states", "dimension", "algo", "behaviour", "prompts"),
    [
        (4, 2, "td", None, "enumerated"),
        (3, 5, "mc", "distribution", "enumerated"),
        (3, 5, "td", "distribution", "sampled"),
        (4, 2, "mc", "chain", "sampled"),
    ],
)
def test_both_engines_agree(states, dimension, algo, behaviour, prompts):
    tasks = tasks_with_features(states, dimension, behaviour)
    rng = np.random.default_rng(3)
    batches = ictd.unroll(tasks, 16, GAMMA, 20, rng)
    start = naive.larger_weights(dimension)
    start = ictd.Weights(start.u, start.A / 4)
    compiled, by_torch = Engine(start, algo, 4, GAMMA, RATE), TorchEngine(start, algo, 4, GAMMA, RATE, True)
    if prompts == "enumerated":
        fast, whole = enumerated_prompts(tasks, GAMMA), ictd.EnumeratedPrompts().columns(tasks, GAMMA)
    else:
        now, following = ictd.sample_steps(tasks, 7, rng)
        rewards = np.take_along_axis(tasks.reward, now, axis=1)
        contexts = Context.from_transitions(now, rewards, following, features=tasks.features)
        fast = contexts.gram_matrix(GAMMA)
        steps = zip(tasks.features, now, following, rewards, strict=True)
        whole = [naive.columns_of_features(*task, GAMMA) for task in steps]
    found, updates = compiled.train(tasks.reward, batches, fast, tasks.features)
    expected, _ = by_torch.train(tasks.reward, batches, whole, tasks.features)
    assert updates == TASKS and np.abs(compiled.weights().A - start.A).max() > 5e-3
    np.testing.assert_allclose(found, expected, atol=ENGINES)
    np.testing.assert_allclose(compiled.weights().A, by_torch.weights().A, atol=ENGINES)
    np.testing.assert_allclose(compiled.weights().u, by_torch.weights().u, atol=ENGINES)
    if prompts == "sampled":
        # The values of a model are the estimates of the engine.
        model = ictd.Model(compiled.weights(), 4, GAMMA)
        values = model.values(contexts, queries=tasks.features)
        np.testing.assert_allclose(compiled.estimates(fast, tasks.features), values, atol=ROUNDING * 100)
        whole = ictd.joint_prompt(whole, tasks.features)
        on_prompts = ictd.LinearTransformer.of(model)(whole, queries=states)
        np.testing.assert_allclose(on_prompts.detach(), values, atol=ROUNDING * 100)


def test_features_of_all_tasks_may_be_shared():
    tasks = tasks_with_features(4, 2)
    batches = ictd.unroll(tasks, 16, GAMMA, 20, np.random.default_rng(0))
    shared = ictd.Tasks(tasks.transition, tasks.reward, features=tasks.features[0])
    assert shared.features.shape == (TASKS, 4, 2)
    start = ictd.initial_weights(2, 0.1, np.random.default_rng(1))
    G = enumerated_prompts(shared, GAMMA)
    engines = [Engine(start, "td", 3, GAMMA, RATE) for _ in range(2)]
    found, _ = engines[0].train(tasks.reward, batches, G, tasks.features[0])
    expected, _ = engines[1].train(tasks.reward, batches, G, shared.features)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("behaviour", ["distribution", "chain"])
def test_batches_and_contexts_follow_the_behaviour(behaviour):
    one, count = tasks_with_features(4, 2, behaviour, size=1), 4000
    given = one.transition, one.reward, one.stationary, one.features, one.behaviour
    tasks = ictd.Tasks(*(np.repeat(array, count, axis=0) for array in given))
    batches = ictd.unroll(tasks, 10, GAMMA, 30, np.random.default_rng(0))
    states, following = ictd.sample_steps(tasks, 10, np.random.default_rng(1))
    shares, p = one.visited[0], one.transition[0]
    np.testing.assert_allclose(shares @ one.behaviour[0], shares, atol=ROUNDING)
    for counts in (batches.transitions, transition_counts(states, following, np.full(count, 10), 4)):
        visits = counts.sum(axis=(0, 2), dtype=int)
        # Visits of one task are dependent; each task gives one mean of ten.
        error = np.sqrt(shares * (1 - shares) / count)
        assert (np.abs(visits / visits.sum() - shares) < STANDARD_ERRORS * error).all()
        error = np.sqrt(p * (1 - p) / visits[:, None])
        found = counts.sum(axis=0, dtype=int) / visits[:, None]
        assert (np.abs(found - p) <= STANDARD_ERRORS * error).all()


def mean_td(estimate, reward, next_estimate, discount):
    return reward + discount * next_estimate


@pytest.mark.parametrize("prompts", [ictd.EnumeratedPrompts(), ictd.SampledPrompts(3, 9)])
def test_a_function_as_target_equals_td(prompts):
    tasks = ictd.TaskDistribution("loop", 4, features=2, threshold=0.3)
    models = [
        ictd.pretrain(tasks, 4, GAMMA, prompts, target, updates=100, seeds=[0, 7], batch_size=9, progress=False)
        for target in ("td", mean_td)
    ]
    np.testing.assert_allclose(models[0].weights.A, models[1].weights.A, atol=ENGINES)
    assert not np.allclose(models[0].weights.A[0], models[0].weights.A[1])


def test_true_values_as_target_take_the_place_of_returns():
    distribution = ictd.TaskDistribution("boyan", 4, features=2)
    model = ictd.pretrain(distribution, 3, GAMMA, target="values", updates=100, seeds=5, progress=False)
    (block,) = training_blocks(distribution, ictd.EnumeratedPrompts(), "td", GAMMA, 100, 5, 64, 200)
    value = ictd.value_function(block.tasks.transition, block.tasks.reward, GAMMA)
    visits, transitions = block.batches.visits, block.batches.transitions
    batches = ictd.BatchStatistics(visits, transitions, visits * value)
    start = ictd.initial_weights(2, 0.1, ictd.generator(5, "boyan", 4, "weights"))
    expected = ictd.pretrain_history(block.tasks, batches, "mc", 3, GAMMA, RATE, start, "torch")
    np.testing.assert_allclose(model.weights.A, expected.weights.A[-1], atol=ENGINES)


def test_seeds_do_not_depend_on_each_other():
    tasks = ictd.TaskDistribution("boyan", 4, features=np.random.default_rng(0).normal(size=(4, 2)))
    both = ictd.pretrain(tasks, 3, GAMMA, updates=50, seeds=[3, 5], progress=False)
    alone = ictd.pretrain(tasks, 3, GAMMA, updates=50, seeds=5, progress=False)
    np.testing.assert_array_equal(both.weights.A[1], alone.weights.A)


def test_a_divergence_ends_no_other_seed(caplog):
    with pytest.warns(UserWarning, match="zero has a smaller MSVE than 2 of 2 models"):
        model = pretrained(updates=20, seeds=[0, 1], learning_rate=1e200)
    assert np.isnan(model.weights.A).all() and "seed 1 diverged at update 2" in caplog.text
    pretrained(target=lambda estimate, reward, next_estimate, discount: np.nan * reward)
    assert "seed 0 diverged at update 1;" in caplog.text


def test_progress_is_printed(capsys):
    ictd.pretrain(ictd.TaskDistribution("boyan", 3), 2, GAMMA, updates=10, seeds=range(2))
    assert " 20/20 " in capsys.readouterr().err


def test_models_are_saved_and_loaded(tmp_path):
    model = ictd.Model(naive.larger_weights(3)[None], 5, 0.8, scaled=False)
    model.save(tmp_path / "mine.npz")
    assert ictd.load_model(tmp_path / "mine.npz") == model
    with pytest.raises(ValueError, match=r"mine\.npz holds a model without a seed; leave out the seed"):
        ictd.load_model(tmp_path / "mine.npz", seed=0)
    with pytest.raises(ValueError, match=r"ends in \.npz"):
        model.save(tmp_path / "mine")


def pretrained(**settings):
    """A model after few updates."""
    return ictd.pretrain(ictd.TaskDistribution("loop", 3), 2, GAMMA, **{"updates": 2, "progress": False} | settings)


def test_steps_that_end_an_episode_have_no_next_state():
    """From state 0 one step of four stays, one leads to state 1, and two end; steps from state 1 end."""
    phi, end = np.eye(2)[[0, 0, 0, 0, 1]], np.zeros(2)
    context = Context.from_features(phi, [phi[0], phi[4], end, end, end], rewards=[1.0, 2.0, 1.0, 0.0, -3.0])
    p, r, shown = context.empirical_model()
    np.testing.assert_allclose(p, [[0.25, 0.25], [0, 0]], atol=ROUNDING)
    np.testing.assert_allclose(r, [1, -3], atol=ROUNDING)
    assert shown.all()
    expected = [(1 - 3 * GAMMA / 4) / (1 - GAMMA / 4), -3]
    for found in (ictd.certainty_equivalence(context, GAMMA), ictd.lstd(context.grouped(), GAMMA, ridge=1e-14)):
        np.testing.assert_allclose(found, expected, atol=ROUNDING * 10)


@pytest.mark.parametrize("features", [[[1.0], [2.0], [-0.5]], 2 * np.eye(3), np.diag([1.0, -1, 1]), 0.7 * np.eye(3)])
def test_orthogonal_features_and_a_single_one_are_not_one_hot(features):
    """C is diagonal, and counts of transitions cannot be found from the averages."""
    context = Context.from_trajectory([0, 1, 2, 0, 2, 2], [1.0, 0, -1, 0.5, 0], features=features)
    assert not context.one_hot


def test_blocks_of_many_states_have_fewer_tasks(monkeypatch):
    monkeypatch.setattr("ictd.training_data.PROBABILITIES", 3 * 4**2)
    blocks = training_blocks(ictd.TaskDistribution("boyan", 4), ictd.EnumeratedPrompts(), "td", GAMMA, 7, 0, 8, 1)
    assert [len(block.tasks) for block in blocks] == [3, 3, 1]
