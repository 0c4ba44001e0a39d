"""The JavaScript engine of explore.html, in V8, against the library and against definitions."""

import itertools
from statistics import NormalDist

import naive
import numpy as np
import pytest
from explore import TYPED, V8, weights_of
from projects import ROOT
from tolerances import ENGINES, ROUNDING, STANDARD_ERRORS

import ictd
from ictd.baselines import BASELINES, Given
from ictd.context import Context
from ictd.engine import Engine
from ictd.evaluation import UnseenTasks, baseline_msve, factor_scores, weights_msve
from ictd.pipeline.config import load_yaml
from ictd.statistics import log_spaced
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import estimates
from ictd.weight_measures import preconditioner, project_identifiable, shortest_identifiable

GAMMA, RATE = 0.9, 1e-3
# Draws of a test of distributions.
DRAWS = 10_000
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def v8():
    with V8() as engine:
        yield engine


def flat(weights):
    """Weights as the engine takes them."""
    return {"states": weights.dimension, "u": weights.u, "A": weights.A.ravel()}


def unseen(states, tasks=6, steps=40):
    """Tasks of Loop, some of whose states are not visited, with short trajectories."""
    drawn = ictd.sample_tasks("loop", states, tasks, np.random.default_rng(states))
    paths = ictd.sampling.sample_paths(drawn, steps, np.random.default_rng(1))
    return UnseenTasks(drawn, ictd.value_function(drawn.transition, drawn.reward, GAMMA), paths, GAMMA)


def given_task(data, i):
    tasks = data.tasks
    return {
        "transition": tasks.transition[i].ravel(),
        "reward": tasks.reward[i],
        "stationary": tasks.stationary[i],
    }


# Pretraining


@pytest.mark.parametrize("target", ["td", "mc", "values"])
@pytest.mark.parametrize(("states", "depth"), [(2, 1), (2, 30), (5, 1), (5, 30), (10, 1), (10, 30)])
def test_updates_equal_those_of_the_library(v8, target, states, depth):
    tasks = ictd.TaskDistribution("boyan", states)
    start = ictd.initial_weights(states, 0.1, ictd.generator(0, "boyan", states, "weights"))
    (block,) = training_blocks(tasks, EnumeratedPrompts(), target, GAMMA, 300, 0, 64, 200)
    engine = Engine(start, "td" if target == "td" else "mc", depth, GAMMA, RATE)
    engine.train(block.tasks.reward, block.batches, block.tasks.transition)
    found = v8(
        f"""{TYPED}
        const transformer = new LoopedTransformer(states, depth, discount);
        const learner = new Learner(parameterOf(start), rate);
        for (const task of tasks) update(transformer, learner, typed(task));
        return weightsOf(states, learner.parameter);""",
        states=states, depth=depth, discount=GAMMA, rate=RATE, start=flat(start),
        tasks=[
            {
                "transition": block.tasks.transition[i].ravel(),
                "reward": block.tasks.reward[i],
                "transitions": block.batches.transitions[i].ravel(),
                "targets": None if target == "td" else block.batches.return_sums[i],
            }
            for i in range(300)
        ],
    )  # fmt: skip
    u, A = weights_of(found)
    assert np.abs(A - start.A).max() > 0.01
    np.testing.assert_allclose(A, engine.weights().A, atol=ENGINES)
    np.testing.assert_allclose(u, engine.weights().u, atol=ENGINES)


def test_results_do_not_depend_on_how_time_is_cut(v8):
    code = """
        const run = new Run({...DEFAULT_SETTINGS, tasks: 50, seeds: 3, seed});
        while (!advance(run, 1000, run.seen + piece));
        return [0, 1, 2, "mean"].map((i) => runWeights(run, i));"""
    whole, pieces = (v8(code, seed=0, piece=piece) for piece in (50, 7))
    assert whole == pieces
    of_seeds = [weights_of(found)[1] for found in whole[:3]]
    np.testing.assert_allclose(weights_of(whole[3])[1], np.mean(of_seeds, axis=0), atol=ROUNDING)
    # Seeds are those of other runs, and TD and MC share them.
    assert v8(code, seed=1, piece=50)[:2] == whole[1:3]


@pytest.mark.parametrize("broken", ["estimate", "update"])
def test_a_seed_that_diverges_is_left_out(v8, broken):
    """A reward makes the estimates of task 3 infinite, or its gradient."""
    reward = {"estimate": 1e308, "update": 1e200}[broken]
    found = v8(
        """
        const run = new Run({...DEFAULT_SETTINGS, tasks: 5, seeds: 2});
        const draw = run.source.drawTask.bind(run.source);
        run.source.drawTask = (random) => {
            draw(random);
            if (run.seen === 3 && random === run.forTasks[0]) run.source.reward.fill(reward);
        };
        while (!advance(run, 1000));
        return [run.seen, run.divergedAt, runWeights(run, 0).A[0], runWeights(run, 1), runWeights(run, "mean")];""",
        reward=reward,
    )
    assert found[:3] == [5, [3, 0], None] and found[3] == found[4]


@SLOW
def test_the_mean_of_twenty_runs_is_that_of_the_library(v8):
    """Every entry of the mean A is within its standard error, in the paper's main setting."""
    library = ictd.pretrain(ictd.TaskDistribution("boyan", 5), 30, GAMMA, seeds=range(20), progress=False).weights.A
    found = v8("""
        const run = new Run({...DEFAULT_SETTINGS, seed: 100});
        while (!advance(run, 1000));
        return run.seeds.map((_, i) => runWeights(run, i));""")
    ours = np.stack([weights_of(weights)[1] for weights in found])
    error = np.sqrt((library.var(axis=0) + ours.var(axis=0)) / 19)
    assert (np.abs(ours.mean(axis=0) - library.mean(axis=0)) < STANDARD_ERRORS * error).all()


def test_memory_does_not_grow():
    """After the first updates, which compile code, an update leaves less than a byte."""
    sizes = []
    with V8() as v8:
        v8("globalThis.run = new Run({...DEFAULT_SETTINGS, depth: 3, seeds: 1, tasks: 1e9})")
        for target in (20_000, 30_000):
            v8("advance(run, 1e9, target)", target=target)
            v8.low_memory_notification()
            sizes.append(v8.heap_stats()["used_heap_size"])
    assert sizes[1] - sizes[0] < 10_000


# The equation of the mean


@pytest.mark.parametrize("free", [True, False])
def test_the_equation_equals_its_definition(v8, free):
    """Copies of the compiled engine, on the tasks of the library, whose weights are replaced by their mean."""
    n, depth, updates, copies = 3, 6, 15, 20
    chains = ictd.TaskDistribution("boyan", n)
    (block,) = training_blocks(chains, EnumeratedPrompts(), "td", GAMMA, copies * updates, 0, 64, 200)
    A = np.zeros((2 * n, 2 * n))
    engines = [Engine(ictd.Weights(np.zeros(2 * n), A), "td", depth, GAMMA, RATE) for _ in range(copies)]
    for update in range(updates):
        for i, engine in enumerate(engines, copies * update):
            engine.parameter[:] = [*np.zeros(2 * n), *A.ravel()]
            one = slice(i, i + 1)
            engine.train(block.tasks.reward[one], block.batches[one], block.tasks.transition[one])
        A = np.mean([engine.weights().A for engine in engines], axis=0)
        A = mean_over_labels(A) if free else A
    found = v8(
        f"""{TYPED}
        const prediction = new Prediction({{...DEFAULT_SETTINGS, states: 3, depth, relabelled, tasks: updates}});
        let next = 0;
        const drawTask = function () {{ Object.assign(this, typed(tasks[next++])); }};
        prediction.source = {{drawTask, drawBatch() {{}}, targets: null}};
        while (!advance(prediction, 1000));
        return prediction.weights;""",
        depth=depth, relabelled=free, updates=updates,
        tasks=[
            {"transition": p.ravel(), "reward": r, "transitions": counts.ravel()}
            for p, r, counts in zip(block.tasks.transition, block.tasks.reward, block.batches.transitions, strict=True)
        ],
    )  # fmt: skip
    u, found_A = weights_of(found)
    assert not u.any() and np.abs(A).max() > 0.005
    np.testing.assert_allclose(found_A, A, atol=ENGINES)


def mean_over_labels(A):
    """The mean of S A S' over all permutations of the labels."""
    n = len(A) // 2
    orders = [np.array([*order, *(n + np.array(order))]) for order in itertools.permutations(range(n))]
    return np.mean([A[np.ix_(order, order)] for order in orders], axis=0)


def test_dense_chains_do_not_depend_on_labels(v8):
    code = "return CHOICES.environment.filter((environment) => new Prediction({...settings, environment}).labelFree)"
    own = {"transition": [[0.5, 0.5], [1, 0]], "rewards": None}
    settings = v8("return DEFAULT_SETTINGS") | {"own": own, "states": 2}
    assert v8(code, settings=settings) == ["dense"]
    assert len(v8(code, settings=settings | {"relabelled": True})) == 5


def test_fixed_rewards_move_the_mean_of_u(v8):
    found = v8("""
        const own = {transition: [[0.5, 0.5], [1, 0]], rewards: [1, 0]};
        const settings = {...DEFAULT_SETTINGS, environment: "own", own, states: 2, tasks: 10, relabelled: true};
        const prediction = new Prediction(settings);
        while (!advance(prediction, 1000));
        return prediction.weights;""")
    u, _ = weights_of(found)
    assert u[0] == u[1] != 0 and u[2] == u[3] != 0


# Random draws


def sfc32(seed, purpose, count):
    """Words of the generator, with whole numbers of Python."""
    mask = 2**32 - 1
    name = 0x811C9DC5
    for letter in purpose:
        name = ((name ^ ord(letter)) * 0x01000193) & mask
    a, b, c, counter = seed, name, 0x9E3779B9, 1
    words = []
    for _ in range(20 + count):
        word = (a + b + counter) & mask
        a, b, c, counter = b ^ b >> 9, (c + (c << 3)) & mask, (((c << 21 | c >> 11) & mask) + word) & mask, counter + 1
        words.append(word)
    return words[20:]


def test_random_words_equal_the_generator_in_python(v8):
    code = "const random = new RandomStream(seed, 'tasks'); return Array.from({length: 50}, () => random.word() >>> 0)"
    for seed in (0, 7, 2**32 - 1):
        assert v8(code, seed=seed) == sfc32(seed, "tasks", 50)


def test_uniform_and_normal_numbers_have_their_distributions(v8):
    code = "const random = new RandomStream(0, kind); return Array.from({length: count}, () => random[kind]())"
    uniform, normal = (np.array(v8(code, kind=kind, count=DRAWS)) for kind in ("uniform", "normal"))
    chance = np.array([NormalDist().cdf(number) for number in normal])
    for numbers in (uniform, chance):
        counts = np.bincount((100 * numbers).astype(int), minlength=100)
        assert_chi_square(counts, np.full(100, 0.01))
    ends = v8("return [0, -1].map((word) => Object.assign(new RandomStream(0, ''), {word: () => word}).uniform())")
    assert 0 < ends[0] < 1e-9 and 1 - 1e-9 < ends[1] < 1


def assert_chi_square(counts, chances):
    """Counts of independent draws are those of a distribution, by Pearson's chi-square with a normal quantile."""
    expected = counts.sum() * chances[chances > 0]
    assert not counts[chances == 0].any()
    freedom = len(expected) - 1
    statistic = ((counts[chances > 0] - expected) ** 2 / expected).sum()
    # Wilson and Hilferty: the cube root is normal.
    z = ((statistic / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / np.sqrt(2 / (9 * freedom))
    assert z < STANDARD_ERRORS


def assert_same_moments(ours, other):
    """Rows of two samples have the same means, and the same means of all products of two entries."""
    moments = []
    for sample in (np.asarray(ours, float), np.asarray(other, float)):
        rows = np.column_stack([sample, np.ones(len(sample))])
        mean = rows.T @ rows / len(rows)
        moments.append((mean, ((rows**2).T @ rows**2 / len(rows) - mean**2) / len(rows)))
    (mine, variance), (others, other_variance) = moments
    error = np.sqrt(np.maximum(variance + other_variance, 0))
    assert (np.abs(mine - others) <= STANDARD_ERRORS * error + ROUNDING).all()


def dense(states, size, rng):
    rows = rng.uniform(0, 1, (size, states, states))
    return rows / rows.sum(axis=-1, keepdims=True), rng.uniform(-1, 1, (size, states))


def ring(states, size, rng):
    transition = np.zeros((size, states, states))
    for s in range(states):
        right = rng.uniform(0, 1, size)
        transition[:, s, (s + 1) % states] += right
        transition[:, s, s - 1] += 1 - right
    return transition, rng.uniform(-1, 1, (size, states))


DEFINED = {"boyan": ictd.mrp.boyan, "loop": ictd.mrp.loop, "dense": dense, "ring": ring}


@pytest.mark.parametrize(
    ("environment", "states", "relabelled"),
    [
        *((name, 4, relabelled) for name in DEFINED for relabelled in (False, True)),
        ("boyan", 2, False),
        ("ring", 2, False),
    ],
)
def test_tasks_have_the_distribution_of_their_environment(v8, environment, states, relabelled):
    found = v8(
        "return unseenTasks({...DEFAULT_SETTINGS, environment, states, relabelled}, count)",
        environment=environment, states=states, relabelled=relabelled, count=DRAWS,
    )  # fmt: skip
    transition, reward, stationary = (
        np.array([task[name] for task in found]) for name in ("transition", "reward", "stationary")
    )
    define = ictd.mrp.relabelled(DEFINED[environment]) if relabelled else DEFINED[environment]
    p, r = define(states, DRAWS, np.random.default_rng(0))
    assert_same_moments(np.hstack([transition, reward]), np.hstack([p.reshape(DRAWS, -1), r]))
    assert_same_moments(transition == 0, p.reshape(DRAWS, -1) == 0)
    expected = ictd.stationary_distribution(transition.reshape(-1, states, states))
    np.testing.assert_allclose(stationary, expected, rtol=1e-12)


def test_trajectories_have_the_distribution_of_the_chain(v8):
    data = unseen(3, tasks=1)
    found = v8(
        """const random = new RandomStream(0, "test");
        return Array.from({length: count}, () => drawPath(task, 2, random));""",
        task=given_task(data, 0), count=DRAWS,
    )  # fmt: skip
    p, mu = data.tasks.transition[0], data.tasks.stationary[0]
    chances = mu[:, None, None] * p[:, :, None] * p[None]
    counts = np.zeros((3, 3, 3))
    np.add.at(counts, tuple(np.transpose(found)), 1)
    assert_chi_square(counts.ravel(), chances.ravel())


@pytest.mark.parametrize(("environment", "states", "tau"), [("boyan", 4, 2), ("loop", 3, 40), ("dense", 7, 5)])
def test_batches_and_returns_have_the_distributions_of_the_library(v8, environment, states, tau):
    """Transitions and sums of returns of one task, whose returns consist of jumps and of single steps."""
    p, r = DEFINED[environment](states, 1, np.random.default_rng(0))
    tasks = ictd.Tasks(np.repeat(p, DRAWS, axis=0), np.repeat(r, DRAWS, axis=0))
    found = v8(
        """const settings = {...DEFAULT_SETTINGS, environment: "own", own, states, target: "mc"};
        const source = new TaskSource({...settings, rolloutSteps: tau, batchSize: 3});
        const [forSteps, forReturns] = ["steps", "returns"].map((name) => new RandomStream(0, name));
        source.drawTask(forSteps);
        return Array.from({length: count}, () => {
            source.drawBatch(forSteps, forReturns);
            return [...source.transitions, ...source.targets];
        });""",
        own={"transition": p[0], "rewards": r[0]}, states=states, tau=tau, count=DRAWS,
    )  # fmt: skip
    batches = ictd.unroll(tasks, 3, GAMMA, tau, np.random.default_rng(1))
    assert_same_moments(found, np.hstack([batches.transitions.reshape(DRAWS, -1), batches.return_sums]))


# Estimates


@pytest.mark.parametrize("kind", ["steps", "grouped", "enumerated"])
@pytest.mark.parametrize(("states", "depth"), [(2, 30), (5, 1), (5, 30), (10, 30)])
def test_estimates_equal_those_of_the_library(v8, states, depth, kind):
    data, weights = unseen(states), naive.larger_weights(states)
    length = 0 if kind == "enumerated" else 12
    context = data.context(length).grouped() if kind == "grouped" else data.context(length)
    expected = estimates(weights, context.gram_matrix(GAMMA), depth)
    given = Given(GAMMA, depth, 0.01, True, factors={"theta_td": 0.8})
    for i in range(len(data.tasks)):
        found = v8(
            f"""{TYPED}
            const {{weights, task}} = {{weights: typed(given.weights), task: typed(given.task)}};
            return {{
                transformer: transformerEstimate(weights, contextOf(task, path, length, kind), depth, discount),
                ...baselineEstimates(task, path, length, kind, depth, discount, 0.8),
            }};""",
            given={"weights": flat(weights), "task": given_task(data, i)}, path=data.paths[i], length=length,
            kind=kind, depth=depth, discount=GAMMA,
        )  # fmt: skip
        scale = np.abs(expected[i]).max()
        np.testing.assert_allclose(found["transformer"], expected[i], atol=ENGINES * scale)
        for name in ("theta_td", "lstd", "constant", "zero"):
            own = context if name == "theta_td" else data.context(length)
            estimate = BASELINES[name].estimate(own, given)[i]
            np.testing.assert_allclose(found[name], estimate, atol=ENGINES)


def test_values_and_enumerated_errors_equal_those_of_the_library(v8):
    data, weights = unseen(5, tasks=5), naive.larger_weights(5)
    found = v8(
        f"""{TYPED} const own = tasks.map(typed);
        const values = own.map((task) => valueFunction(task, discount));
        return [values, enumeratedMsve(typed(weights), own, 30, discount)];""",
        tasks=[given_task(data, i) for i in range(5)], weights=flat(weights), discount=GAMMA,
    )  # fmt: skip
    values, msve = found
    np.testing.assert_allclose(values, data.value, atol=ROUNDING * 100)
    (errors,) = weights_msve(weights, data, [0], 30)
    np.testing.assert_allclose(msve["errors"], errors, rtol=ENGINES)
    np.testing.assert_allclose([msve["mean"], msve["median"]], [errors.mean(), np.median(errors)], rtol=ENGINES)


@pytest.mark.parametrize(("kind", "depth"), [("steps", 20), ("grouped", 20), ("steps", 300)])
def test_a_test_equals_the_evaluation_of_the_library(v8, kind, depth):
    """On tasks and trajectories of the engine, at other settings than in training.

    With 300 layers, large step sizes of theta^TD overflow.
    """
    discount, lengths = 0.8, [0, 5, 30]
    models = [ictd.Weights(naive.larger_weights(4).u, factor * ictd.theta_td(4).A) for factor in (0.5, 0.8, 1.0)]
    found = v8(
        f"""{TYPED}
        const settings = {{...DEFAULT_SETTINGS, states: 4}};
        const options = {{lengths, format: kind, depth, discount, tasks: 20, tuningTasks: 30, environment: "loop"}};
        const test = new Test(models.map(typed), settings, {{...options, relabelled: true}});
        const paths = [];
        while (!test.done) {{
            paths.push(drawPath(test.tasks[test.seen], 30, Object.assign(new RandomStream(0, ""), {{
                state: test.forPaths.state.slice(),
            }})));
            test.step();
        }}
        return {{result: test.result, tasks: test.tasks, paths}};""",
        models=[flat(model) for model in models], lengths=lengths, kind=kind, depth=depth, discount=discount,
    )  # fmt: skip
    p = np.reshape([task["transition"] for task in found["tasks"]], (50, 4, 4))
    tasks = ictd.Tasks(p, np.array([task["reward"] for task in found["tasks"]]))
    assert len({tuple(row) for row in tasks.reward.tolist()}) == 50
    value = ictd.value_function(tasks.transition, tasks.reward, discount)
    parts = [
        UnseenTasks(tasks[own], value[own], np.array(found["paths"])[own], discount)
        for own in (slice(0, 30), slice(30, 50))
    ]
    tuning, data = parts

    def contexts(of):
        return [of.context(m).grouped() if m and kind == "grouped" else of.context(m) for m in lengths]

    given = Given(discount, depth, 0.01, True, factors={})
    sizes = log_spaced(0.2, 10, 25)
    scores = factor_scores(BASELINES["theta_td"], tuning, contexts(tuning), given, sizes)
    best = sizes[scores.argmin()]
    np.testing.assert_allclose(found["result"]["stepSize"], best, rtol=ROUNDING)
    given.factors["theta_td"] = best
    expected = baseline_msve(["theta_td"], data, contexts(data), given)
    expected |= baseline_msve(["lstd", "constant", "zero"], data, [data.context(m) for m in lengths], given)
    grams = [context.gram_matrix(discount) for context in contexts(data)]
    expected["transformer"] = np.array(
        [[data.error(estimates(model, gram, depth)) for model in models] for gram in grams]
    ).reshape(len(lengths), -1)
    assert found["result"]["lengths"] == lengths
    assert {*found["result"]["errors"]} == {*expected}
    for name, errors in expected.items():
        own = found["result"]["errors"][name]
        np.testing.assert_allclose(own["mean"], errors.mean(axis=1), rtol=1e-9, atol=1e-20)
        np.testing.assert_allclose(own["median"], np.median(errors, axis=1), rtol=1e-9, atol=1e-20)


def test_one_task_is_what_a_test_measures(v8):
    found = v8("""
        const settings = {...DEFAULT_SETTINGS, states: 4};
        const options = {index: 3, steps: 20, format: "grouped", environment: "loop", discount: 0.8};
        return oneTask(thetaTd(4, 1.3), settings, options);""")
    p, r = np.reshape(found["task"]["transition"], (1, 4, 4)), np.array([found["task"]["reward"]])
    context = Context.from_trajectory(found["path"], r[0][found["path"][:-1]], 4).grouped()
    np.testing.assert_allclose(found["values"], ictd.value_function(p, r, 0.8)[0], atol=ROUNDING * 100)
    np.testing.assert_allclose(found["estimate"], ictd.batch_td(context, 0.8, 1.3, 30), atol=ROUNDING * 100)
    error = ictd.msve(found["task"]["stationary"], found["values"], found["estimate"])
    np.testing.assert_allclose(found["error"], error)


# What weights consist of


# What acts on TD errors, and on their sums, in the upper half of A.
BLOCKS = [[[-1, 1], [0, 0]], [[1, 1], [0, 0]]]


def share(A, bases):
    """Share of the nearest combination of bases in the squared norm of A, by least squares."""
    whole = shortest_identifiable(A, GAMMA).ravel()
    columns = shortest_identifiable(bases, GAMMA).reshape(len(bases), -1).T
    numbers, *_ = np.linalg.lstsq(columns, whole, rcond=None)
    return ((columns @ numbers) ** 2).sum() / (whole**2).sum()


@pytest.mark.parametrize("states", [2, 3, 5])
def test_measures_equal_their_definitions(v8, states):
    weights, n = naive.larger_weights(states), states
    A = project_identifiable(weights, GAMMA)
    found, identifiable = v8(
        f"{TYPED} return [measures(typed(weights), discount), identifiable(typed(weights), discount)]",
        weights=flat(weights), discount=GAMMA,
    )  # fmt: skip
    np.testing.assert_allclose(identifiable["u"], A.u, atol=ROUNDING)
    np.testing.assert_allclose(identifiable["A"], A.A.ravel(), atol=ROUNDING)
    G = preconditioner(A.A)[:n]
    beta = (G.sum() - np.trace(G)) / (n * (n - 1)) / n
    identity, ones = np.eye(n), np.ones((n, n))
    numbers = [np.kron(block, matrix) for block in BLOCKS[:2] for matrix in (identity, ones)]
    units = np.eye(4).reshape(4, 2, 2)
    every = [np.kron(block, matrix) for block in units for matrix in (identity, ones)]
    rows = A.A[:n].sum(axis=0) / n
    expected = {
        "alpha": np.trace(G) / n / n - beta,
        "beta": beta,
        "cosine2": max(0, ictd.cosine_to_theta_td(A)) ** 2,
        "one": share(weights.A, np.stack(numbers[:1])),
        "two": share(weights.A, np.stack(numbers[:2])),
        "four": share(weights.A, np.stack(numbers[:4])),
        "eight": share(weights.A, np.stack(every)),
        "constantFactor": 1 + rows[:n].mean() + GAMMA * rows[n:].mean(),
    }
    assert {*found} == {*expected}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("states", [2, 5])
def test_the_spectral_radius_is_the_largest_eigenvalue(v8, states):
    data = unseen(states)
    for scale in (0, 1, 3):
        weights = ictd.Weights(np.zeros(2 * states), scale * naive.larger_weights(states).A)
        found = []
        for i, p in enumerate(data.tasks.transition):
            X = np.vstack([np.eye(states), GAMMA * p.T])
            T = np.eye(states) + X.T @ weights.A @ X / states
            found.append(np.abs(np.linalg.eigvals(T)).max())
            radius = v8(
                f"{TYPED} return spectralRadius(typed(weights), typed(task), discount)",
                weights=flat(weights), task=given_task(data, i), discount=GAMMA,
            )  # fmt: skip
            assert radius == pytest.approx(found[-1], rel=1e-9)
        share_above = v8(
            f"{TYPED} return expanding(typed(weights), tasks.map(typed), discount)",
            weights=flat(weights), tasks=[given_task(data, i) for i in range(len(found))], discount=GAMMA,
        )  # fmt: skip
        assert scale == 0 or share_above == np.mean(np.array(found) > 1)


# What the page shows of a run, and answers to questions about its weights.
HOST = """
const found = {}, waiting = [];
const host = new Host((message) => (found[message.kind] = message), (work) => waiting.push(work), 1e9);
const ask = (message) => {
    host.receive({number: 1, request: 1, chosen: "mean", at: Infinity, ...message});
    while (waiting.length) waiting.shift()();
    return found;
};
ask({kind: "run", settings});
"""


def test_theta_td_has_its_best_step_size_on_enumerated_prompts(v8):
    """Batch TD with each step size on other tasks, then with the best on those of the test."""
    settings = {"states": 3, "depth": 5, "tasks": 1, "seeds": 1}
    found, theta = v8(
        f"""const settings = {{...DEFAULT_SETTINGS, ...changes}};
        {HOST}
        const {{curves}} = ask({{kind: "curves", depth: 20, discount: 0.8, relabelled: true, environment: "loop"}});
        const other = {{...settings, relabelled: true, environment: "loop"}};
        const error = (size, tasks) => meanOf(tasks.map((task) => {{
            const context = contextOf(task, null, 0, "steps");
            return msveOf(task, valueFunction(task, 0.8), batchTd(context, 20, 0.8, size));
        }}));
        const tuning = unseenTasks(other, TUNING_TASKS, 0, "tuning tasks");
        const sizes = STEP_SIZES.map((size) => (size * 3) / 5);
        const scores = sizes.map((size) => error(size, tuning));
        const best = sizes[scores.indexOf(Math.min(...scores))];
        return [curves.result.here[0].theta_td.mean, error(best, unseenTasks(other, TEST_TASKS))];""",
        changes=settings,
    )  # fmt: skip
    assert found == pytest.approx(theta, rel=ENGINES)


@SLOW
def test_the_numbers_of_the_exercises(v8):
    """Each number in docs/exercises.md is what the page shows."""
    page = " ".join((ROOT / "docs/exercises.md").read_text().split())
    code = f"""const settings = {{...DEFAULT_SETTINGS, ...changes}};
        {HOST}
        const prediction = new Prediction(settings);
        if (changes.relabelled) while (!advance(prediction, 1e6));
        const test = {{environment: "boyan", relabelled: true, depth: settings.depth, discount: 0.9}};
        ask({{kind: "curves", ...test}});
        const formats = ["steps", "grouped"].map((format) =>
            ask({{kind: "test", options: {{...test, format}}}}).tested.result.errors);
        const predicted = measures(prediction.weights, 0.9);
        return {{...found.point.point, curves: found.curves.result, formats, predicted}};"""
    ordered = v8(code, changes={})
    permuted = {depth: v8(code, changes={"relabelled": True, "depth": depth}) for depth in (1, 5, 30)}
    main, found = permuted[30], ordered["measures"]
    ratio = {depth: one["measures"]["beta"] / one["measures"]["alpha"] for depth, one in permuted.items()}
    predicted = {depth: one["predicted"]["beta"] / one["predicted"]["alpha"] for depth, one in permuted.items()}
    at_60 = next(point for point in main["curves"]["depth"] if point["x"] == 60)
    border = next(point["x"] for point in main["curves"]["discount"] if point["expanding"] >= 0.5)
    steps, grouped = ({name: of["mean"][-1] for name, of in errors.items()} for errors in main["formats"])
    for text in (
        f"α is {found['alpha']:.3f} and β is {found['beta']:.3f}.",
        f"holds {found['one']:.0%} of A; both hold {found['two']:.0%}.",
        f"The page shows {main['measures']['eight']:.0%}, and {main['measures']['two']:.0%} for α and β.",
        f"grows from {ordered['error']['mean']:.2f} to {ordered['other']['mean']:.2g}.",
        f"it is {main['error']['mean']:.2f} on relabelled and {main['other']['mean']:.2f} on ordered tasks.",
        f"β/α is {ratio[1]:.2g}, {ratio[5]:.2g} and {ratio[30]:.2g}.",
        f"equation predicts {predicted[1]:.2g}, {predicted[5]:.2g} and {predicted[30]:.2g}.",
        f"multiplies constants by {main['measures']['constantFactor']:.3f},",
        f"error grows from {main['error']['mean']:.2f} to {at_60['transformer']['mean']:.0f}, and that of",
        f"falls from {main['curves']['here'][0]['theta_td']['mean']:.2f} to {at_60['theta_td']['mean']:.5f}.",
        f"Below a discount of about {border:.2f},",
        f"falls from {steps['transformer']:.2g} to {grouped['transformer']:.2f}, where LSTD has {steps['lstd']:.2f}.",
    ):
        assert text in page


# Settings and files


def test_defaults_are_those_of_the_paper(v8):
    config = load_yaml(ROOT / "config.yaml")
    defaults = v8("return DEFAULT_SETTINGS")
    names = {
        "tasks": "tasks", "discount": "discount", "batchSize": "batch_size", "rolloutSteps": "rollout_steps",
        "learningRate": "learning_rate", "seeds": "seeds",
    }  # fmt: skip
    assert {name: defaults[name] for name in names} == {name: config[key] for name, key in names.items()}
    assert defaults["initialGain"] == config["readings"]["initial_gain"]
    assert defaults["threshold"] == config["readings"]["env_options"]["loop"]["threshold"]
    settings = v8("return PAPER_SETTINGS.map((changes) => ({...DEFAULT_SETTINGS, ...changes}))")
    main = {"environment": config["envs"][0], "states": config["states"][0], "depth": config["depths"][0]}
    expected = [main]
    for name, key in (("states", "states"), ("depth", "depths"), ("environment", "envs")):
        expected += [main | {name: value} for value in config[key][1:]]
    assert [{name: one[name] for name in main} for one in settings] == expected
    assert all(v8("return checkSettings(settings)", settings=one) == [] for one in settings)
    found = v8("return [new Test([], DEFAULT_SETTINGS).options.lengths, STEP_SIZES]")
    assert found[0] == config["evaluation"]["context_lengths"]
    np.testing.assert_allclose(found[1], log_spaced(**config["evaluation"]["step_sizes"]))


def own_chain(v8, matrix, rewards="", **changes):
    """Errors and warnings of settings with a pasted chain, and the chain."""
    return v8(
        """const own = parseOwn(matrix, rewards);
        const settings = {...DEFAULT_SETTINGS, environment: "own", own, states: 2, ...changes};
        return [checkSettings(settings), settingsWarnings(settings), own];""",
        matrix=matrix, rewards=rewards, changes=changes,
    )  # fmt: skip


CHAIN = "0.5 0.5; 1 0"


@pytest.mark.parametrize(
    ("matrix", "rewards", "changes", "error"),
    [
        (CHAIN, "", {"environment": "boyan", "states": 11}, "states is 11; give a whole number from 2 to 10."),
        (CHAIN, "", {"depth": 2.5}, "depth is 2.5; give a whole number from 1 to 60."),
        (CHAIN, "", {"discount": 1}, "discount is 1; give a number from 0.5 to 0.99."),
        (CHAIN, "", {"target": "sarsa"}, "target is 'sarsa'; choose from td, mc, values."),
        (CHAIN, "", {"own": None}, "own is missing; give the transition probabilities of a chain."),
        ("0.5 0.5\n1", "", {}, "transition[1] has 1 entries; give 2, as there are 2 rows."),
        ("1/3 2/3\n1 0", "", {}, "transition[0, 0] is 1/3, which is not a probability."),
        ("0.5 0.5\n0 1", "", {}, "transition is reducible: some state cannot be reached from every other."),
        ("0 1 0\n0 0 1\n1 0 0", "", {}, "states is 2; give 3, the number of rows of transition."),
        (CHAIN, "1 2 3", {}, "reward has 3 entries; give 2, one for each state."),
    ],
)
def test_wrong_settings_and_chains_are_named(v8, matrix, rewards, changes, error):
    assert own_chain(v8, matrix, rewards, **changes)[0] == [error]


@pytest.mark.parametrize(
    ("transition", "reward"),
    [
        ([[0.5, 0.5], [1.5, -0.5]], [1, 0]),
        ([[0.5, 0.5], [np.nan, 1]], [1, 0]),
        ([[0.12, 0.87], [0.5, 0.5]], [1, 0]),
        ([[0.5, 0.5], [1, 0]], [1, np.inf]),
    ],
)
def test_errors_of_chains_are_those_of_the_library(v8, transition, reward):
    """The library's advice on episodes is left out."""
    matrix = "\n".join(" ".join(map(str, row)) for row in transition)
    found = own_chain(v8, matrix, " ".join(map(str, reward)).replace("inf", "Infinity"))
    with pytest.raises(ValueError) as error:
        ictd.Tasks(transition, reward)
    episodes = "; if the rest ends an episode, give episodic=True, which environments cannot"
    assert found[:2] == [[str(error.value).replace(episodes, "")], []]


@pytest.mark.parametrize("text", ["0.333 0.667\n0.123 0.876", "[[0.333, 0.667],\n [0.123, 0.876]]"])
def test_chains_may_be_rounded(v8, text):
    """Rows that rounding explains are divided by their sums, with the warning of the library."""
    errors, warnings, own = own_chain(v8, text, "1, -2.5e-1")
    with pytest.warns(UserWarning) as caught:
        ictd.Tasks(own["transition"], own["rewards"])
    assert errors == [] and warnings == [str(caught[0].message)]
    (task,) = v8('return unseenTasks({...DEFAULT_SETTINGS, environment: "own", own, states: 2}, 1)', own=own)
    assert task["reward"] == [1, -0.25]
    np.testing.assert_allclose(task["transition"], [0.333, 0.667, 0.123 / 0.999, 0.876 / 0.999])


@pytest.mark.parametrize("several", [False, True])
def test_the_model_file_is_one_of_the_library(v8, several, tmp_path):
    models = [naive.larger_weights(3, seed) for seed in range(2)]
    found = v8(
        f"""{TYPED} const list = models.map(typed);
        return modelFile(several ? list : list[0], {{...DEFAULT_SETTINGS, depth: 300, discount: 0.95}});""",
        models=[flat(model) for model in models], several=several,
    )  # fmt: skip
    path = tmp_path / "model.npz"
    path.write_bytes(bytes(found))
    model = ictd.load_model(path)
    assert (model.depth, model.discount, model.scaled) == (300, 0.95, True)
    expected = np.stack([one.A for one in models]) if several else models[0].A
    np.testing.assert_array_equal(model.weights.A, expected)
    np.testing.assert_array_equal(model.weights.u, np.stack([one.u for one in models]) if several else models[0].u)
