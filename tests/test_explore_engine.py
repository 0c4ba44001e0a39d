"""The JavaScript engine of explore.html, in V8, against the library and against definitions."""

import naive
import numpy as np
import pytest
from explore import TYPED, V8, weights_of
from projects import ROOT
from tolerances import ENGINES, ROUNDING, STANDARD_ERRORS

import ictd
from ictd.baselines import BASELINES, Given
from ictd.checks import choice, integer, number
from ictd.engine import Engine
from ictd.evaluation import UnseenTasks, baseline_msve, factor_scores
from ictd.pipeline.config import load_yaml
from ictd.statistics import log_spaced
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import estimates
from ictd.weight_measures import preconditioner, project_identifiable, shortest_identifiable

CONFIG = load_yaml(ROOT / "config.yaml")
GAMMA, RATE, RIDGE = CONFIG["discount"], CONFIG["learning_rate"], CONFIG["evaluation"]["lstd_ridge"]
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


def given_batches(block, target):
    """Tasks with their batches, as an update takes them."""
    sums = block.batches.return_sums
    return [
        {
            "transition": p.ravel(),
            "reward": block.tasks.reward[i],
            "transitions": block.batches.transitions[i].ravel(),
            "targets": sums[i] if target == "mc" else None,
        }
        for i, p in enumerate(block.tasks.transition)
    ]


# Pretraining


@pytest.mark.parametrize("target", ["td", "mc"])
@pytest.mark.parametrize(("states", "depth"), [(2, 1), (5, 30), (10, 5)])
def test_updates_equal_those_of_the_library(v8, target, states, depth):
    tasks = ictd.TaskDistribution("boyan", states)
    start = ictd.initial_weights(states, 0.1, ictd.generator(0, "boyan", states, "weights"))
    (block,) = training_blocks(tasks, EnumeratedPrompts(), target, GAMMA, 300, 0, 64, 200)
    engine = Engine(start, depth, GAMMA, RATE)
    engine.train(block.tasks.reward, block.targets, block.tasks.transition)
    found = v8(
        f"""{TYPED}
        const transformer = new LoopedTransformer(states, depth, discount);
        const learner = new Learner(parameterOf(start), rate);
        for (const task of tasks) update(transformer, learner, typed(task));
        return weightsOf(states, learner.parameter);""",
        states=states, depth=depth, discount=GAMMA, rate=RATE, start=flat(start),
        tasks=given_batches(block, target),
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


def test_a_seed_that_diverges_is_left_out(v8):
    """A reward makes the gradient of task 3 infinite."""
    found = v8("""
        const run = new Run({...DEFAULT_SETTINGS, tasks: 5, seeds: 2});
        const draw = run.source.drawTask.bind(run.source);
        run.source.drawTask = (random) => {
            draw(random);
            if (run.seen === 3 && random === run.forTasks[0]) run.source.reward.fill(1e200);
        };
        while (!advance(run, 1000));
        return [run.seen, run.divergedAt, runWeights(run, 0).A[0], runWeights(run, 1), runWeights(run, "mean")];""")
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


@pytest.mark.parametrize(("different", "found"), [(3, 3), (0, 50)])
def test_a_run_repeats_so_many_different_tasks(v8, different, found):
    tasks = v8(
        """const run = new Run({...DEFAULT_SETTINGS, tasks: 50, seeds: 2, different});
        const drawn = [];
        const draw = run.source.drawTask.bind(run.source);
        run.source.drawTask = (random) => {
            draw(random);
            drawn.push([...run.source.transition, ...run.source.reward]);
        };
        while (!advance(run, 1000));
        return drawn;""",
        different=different,
    )  # fmt: skip
    own, other = ({tuple(task) for task in tasks[seed::2]} for seed in range(2))
    assert len(own) == len(other) == found and not own & other


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


def test_random_numbers_equal_the_generator_in_python(v8):
    code = """const [random, other] = [0, 1].map(() => new RandomStream(seed, "tasks"));
        return [Array.from({length: 50}, () => random.uniform()), Array.from({length: 25}, () => other.normal())];"""
    for seed in (0, 7, 2**32 - 1):
        uniform = (np.array(sfc32(seed, "tasks", 50)) + 0.5) / 2**32
        radius, angle = np.sqrt(-2 * np.log(uniform[::2])), 2 * np.pi * uniform[1::2]
        found = v8(code, seed=seed)
        assert found[0] == uniform.tolist()
        np.testing.assert_allclose(found[1], radius * np.cos(angle), rtol=0, atol=ROUNDING)


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


def test_initial_weights_have_the_distribution_of_the_library(v8):
    found = v8('return initialParameter(40, 0.1, new RandomStream(0, "weights"))')
    start = ictd.initial_weights(40, 0.1, np.random.default_rng(0))
    assert_same_moments(*(np.reshape(entries, (-1, 1)) for entries in (found, [*start.u, *start.A.ravel()])))


@pytest.mark.parametrize(
    ("environment", "states", "relabelled"),
    [("boyan", 2, False), ("boyan", 4, False), ("boyan", 4, True), ("loop", 4, False)],
)
def test_tasks_have_the_distribution_of_their_environment(v8, environment, states, relabelled):
    found = v8(
        "return unseenTasks({...DEFAULT_SETTINGS, environment, states, relabelled}, count)",
        environment=environment, states=states, relabelled=relabelled, count=DRAWS,
    )  # fmt: skip
    transition, reward, stationary = (
        np.array([task[name] for task in found]) for name in ("transition", "reward", "stationary")
    )
    define = getattr(ictd.mrp, environment)
    p, r = (ictd.mrp.relabelled(define) if relabelled else define)(states, DRAWS, np.random.default_rng(0))
    assert_same_moments(np.hstack([transition, reward]), np.hstack([p.reshape(DRAWS, -1), r]))
    assert_same_moments(transition == 0, p.reshape(DRAWS, -1) == 0)
    expected = ictd.stationary_distribution(transition.reshape(-1, states, states))
    np.testing.assert_allclose(stationary, expected, rtol=1e-12)


@pytest.mark.parametrize(("environment", "states", "tau"), [("boyan", 4, 2), ("loop", 3, 40)])
def test_batches_and_returns_have_the_distributions_of_the_library(v8, environment, states, tau):
    """Transitions and sums of returns of one task, whose returns consist of jumps and of single steps; and paths."""
    p, r = getattr(ictd.mrp, environment)(states, 1, np.random.default_rng(0))
    tasks = ictd.Tasks(np.repeat(p, DRAWS, axis=0), np.repeat(r, DRAWS, axis=0))
    found = v8(
        f"""{TYPED}
        const settings = {{...DEFAULT_SETTINGS, states, target: "mc", rolloutSteps: tau, batchSize: 3}};
        const source = Object.assign(new TaskSource(settings), typed(task));
        const [forSteps, forReturns] = ["steps", "returns"].map((name) => new RandomStream(0, name));
        return Array.from({{length: count}}, () => {{
            source.drawBatch(forSteps, forReturns);
            return [...source.transitions, ...source.targets, ...drawPath(source, 3, forSteps)];
        }});""",
        task={"transition": p[0].ravel(), "reward": r[0], "stationary": ictd.stationary_distribution(p[0])},
        states=states, tau=tau, count=DRAWS,
    )  # fmt: skip
    batches = ictd.unroll(tasks, 3, GAMMA, tau, np.random.default_rng(1))
    paths = ictd.sampling.sample_paths(tasks, 3, np.random.default_rng(2))
    assert_same_moments(found, np.hstack([batches.transitions.reshape(DRAWS, -1), batches.return_sums, paths]))


# Estimates


def test_estimates_of_enumerated_prompts_equal_those_of_the_library(v8):
    data, weights = unseen(5), naive.larger_weights(5)
    found = v8(
        f"""{TYPED} const [own, given] = [tasks.map(typed), typed(weights)];
        const context = (task) => contextOfStates(task.transition, task.reward);
        const estimate = (task) => transformerEstimate(given, context(task), 30, discount);
        return [own.map(estimate), enumeratedMsve(given, own, 30, discount)];""",
        tasks=[given_task(data, i) for i in range(6)], weights=flat(weights), discount=GAMMA,
    )  # fmt: skip
    expected = estimates(weights, data.context(0).gram_matrix(GAMMA), 30)
    np.testing.assert_allclose(found[0], expected, rtol=ENGINES)
    np.testing.assert_allclose(found[1], data.error(expected), rtol=ENGINES)


@pytest.mark.parametrize(("kind", "depth"), [("steps", 20), ("grouped", 20), ("steps", 300)])
def test_a_test_equals_the_evaluation_of_the_library(v8, kind, depth):
    """On tasks and trajectories of the engine, at other settings than in training.

    With 300 layers, large step sizes of theta^TD overflow.
    """
    discount, lengths = 0.8, CONFIG["evaluation"]["context_lengths"]
    models = [naive.larger_weights(4, seed) for seed in range(3)]
    found = v8(
        f"""{TYPED}
        const settings = {{...DEFAULT_SETTINGS, states: 4}};
        const options = {{format: kind, depth, discount, environment: "loop", relabelled: true}};
        const test = new Test(models.map(typed), settings, options);
        const paths = [];
        while (!test.done) {{
            paths.push(drawPath(test.tasks[test.seen], 100, Object.assign(new RandomStream(0, ""), {{
                state: test.forPaths.state.slice(),
            }})));
            test.step();
        }}
        return {{result: test.result, stepSize: test.stepSize, tasks: test.tasks, paths}};""",
        models=[flat(model) for model in models], kind=kind, depth=depth, discount=discount,
    )  # fmt: skip
    p = np.reshape([task["transition"] for task in found["tasks"]], (200, 4, 4))
    tasks = ictd.Tasks(p, np.array([task["reward"] for task in found["tasks"]]))
    assert len({tuple(row) for row in tasks.reward.tolist()}) == 200
    value = ictd.value_function(tasks.transition, tasks.reward, discount)
    tuning, data = (
        UnseenTasks(tasks[own], value[own], np.array(found["paths"])[own], discount)
        for own in (slice(0, 100), slice(100, 200))
    )

    def contexts(of):
        return [of.context(m).grouped() if kind == "grouped" else of.context(m) for m in lengths]

    given = Given(discount, depth, RIDGE, True, factors={})
    sizes = log_spaced(**CONFIG["evaluation"]["step_sizes"])
    scores = factor_scores(BASELINES["theta_td"], tuning, contexts(tuning), given, sizes)
    best = sizes[scores.argmin()]
    np.testing.assert_allclose(found["stepSize"], best, rtol=ROUNDING)
    given.factors["theta_td"] = best
    expected = baseline_msve(["theta_td"], data, contexts(data), given)
    expected |= baseline_msve(["lstd", "constant", "zero"], data, [data.context(m) for m in lengths], given)
    grams = [context.gram_matrix(discount) for context in contexts(data)]
    expected["transformer"] = np.array(
        [[data.error(estimates(model, gram, depth)) for model in models] for gram in grams]
    ).reshape(len(lengths), -1)
    assert {*found["result"]} == {*expected}
    for name, errors in expected.items():
        np.testing.assert_allclose(found["result"][name], errors.mean(axis=1), rtol=1e-9, atol=1e-20)


@pytest.mark.parametrize(
    ("rewards", "steps", "expected"), [("last", 0, [0, 0, 0, 1]), ("ones", 0, [1] * 4), ("random", 20, None)]
)
def test_layers_equal_those_of_a_prompt(v8, rewards, steps, expected):
    """Last rows of the prompts of all queries, by products of whole matrices."""
    n, depth, weights = 4, 12, naive.larger_weights(4)
    found = v8(
        f"""{TYPED}
        const settings = {{...DEFAULT_SETTINGS, states: 4, environment: "loop"}};
        return trace(typed(weights), settings, {{index: 3, rewards, steps}}, depth);""",
        weights=flat(weights), depth=depth, rewards=rewards, steps=steps,
    )  # fmt: skip
    p, r = np.reshape(found["task"]["transition"], (n, n)), np.array(found["task"]["reward"])
    assert expected in (None, r.tolist())
    columns = found["columns"][: found["length"]]
    states = [column["state"] for column in columns]
    context = naive.enumerated_prompt(p, r, GAMMA, 0)[:, :-1]
    if steps:
        last = np.argmax(columns[-1]["column"][n:])
        context = naive.columns_of_steps([*states, last], r[states], n, GAMMA)
    np.testing.assert_allclose([column["column"] for column in columns], context[:-1].T, atol=ROUNDING)
    step_size = len(states) / max(np.bincount(states))
    theta = ictd.theta_td(n)
    theta = ictd.Weights(theta.u, step_size * theta.A)
    for name, own in (("transformer", weights), ("theta_td", theta)):
        prompts = ictd.prompt.prompts_of(context)
        layers = naive.embeddings([own.P()] * depth, [own.Q()] * depth, prompts)
        for row, Z in zip(found["rows"][name], layers, strict=True):
            np.testing.assert_allclose(row, [*Z[0, -1, :-1], *Z[:, -1, -1]], rtol=ENGINES, atol=ENGINES)
    np.testing.assert_allclose(found["values"], ictd.value_function(p, r, GAMMA), rtol=ENGINES)


# What weights consist of


# What acts on TD errors in the upper half of A.
BLOCK = [[-1, 1], [0, 0]]


def share(A, bases):
    """Share of the nearest combination of bases in the squared norm of A, by least squares."""
    whole = shortest_identifiable(A, GAMMA).ravel()
    columns = shortest_identifiable(bases, GAMMA).reshape(len(bases), -1).T
    numbers, *_ = np.linalg.lstsq(columns, whole, rcond=None)
    return ((columns @ numbers) ** 2).sum() / (whole**2).sum()


@pytest.mark.parametrize("states", [2, 5])
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
    numbers = [np.kron(BLOCK, matrix) for matrix in (identity, ones)]
    units = np.eye(4).reshape(4, 2, 2)
    every = [np.kron(block, matrix) for block in units for matrix in (identity, ones)]
    rows = A.A[:n].sum(axis=0) / n
    expected = {
        "alpha": np.trace(G) / n / n - beta,
        "beta": beta,
        "one": share(weights.A, np.stack(numbers[:1])),
        "two": share(weights.A, np.stack(numbers)),
        "eight": share(weights.A, np.stack(every)),
        "constantFactor": 1 + rows[:n].mean() + GAMMA * rows[n:].mean(),
    }
    assert {*found} == {*expected}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, err_msg=name)


# What the page shows of a run, and answers to questions about its weights.
HOST = """
const found = {};
const host = new Host((message) => (found[message.kind] = message), () => {}, 1e9);
const ask = (message) => {
    host.receive({number: 1, request: 1, chosen: "mean", at: Infinity, ...message});
    while (host.awake) host.turn();
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
        const other = {{...settings, relabelled: true, environment: "loop"}};
        const {{curves}} = ask({{kind: "curves", options: {{...other, depth: 20, discount: 0.8}}}});
        const error = (size, tasks) => meanOf(tasks.map((task) => {{
            const context = contextOfStates(task.transition, task.reward);
            return msveOf(task, valueFunction(task, 0.8), batchTd(context, 20, 0.8, size));
        }}));
        const tuning = unseenTasks(other, TUNING_TASKS, "tuning tasks");
        const sizes = STEP_SIZES.map((size) => (size * 3) / 5);
        const scores = sizes.map((size) => error(size, tuning));
        const best = sizes[scores.indexOf(Math.min(...scores))];
        return [curves.result[0].theta_td, error(best, unseenTasks(other, TEST_TASKS))];""",
        changes=settings,
    )  # fmt: skip
    assert found == pytest.approx(theta, rel=ENGINES)


@SLOW
def test_the_numbers_of_the_exercises(v8):
    """Each number in docs/exercises.md is what the page shows."""
    page = " ".join((ROOT / "docs/exercises.md").read_text().split())
    page = page.replace("$", "").replace(r"\alpha", "α").replace(r"\beta", "β")
    code = f"""const settings = {{...DEFAULT_SETTINGS, ...changes}};
        {HOST}
        const test = {{environment: "boyan", relabelled: true, depth: settings.depth, discount: 0.9}};
        ask({{kind: "curves", options: test}});
        const formats = ["steps", "grouped"].map((format) =>
            ask({{kind: "test", options: {{...test, format}}}}).tested.result);
        const own = found.point.point;
        const ones = trace(own.weights, settings, {{index: 0, rewards: "ones", steps: 0}}, 60).rows.transformer;
        const answers = ones.map((row) => -meanOf(row.slice(settings.states)));
        const values = unseenTasks(settings, 1000).map((task) => {{
            const value = valueFunction(task, 0.9);
            return [meanOf(value) ** 2, meanOf(value.map((each) => each ** 2))];
        }});
        const [constant, whole] = [0, 1].map((i) => meanOf(values.map((each) => each[i])));
        const visible = identifiable(own.weights, 0.9);
        const upper = {{...visible, A: visible.A.map((entry, i) => (i < visible.A.length / 2 ? entry : 0))}};
        const errors = [visible, upper].map((each) => meanError([each], unseenTasks(settings, TEST_TASKS), 30, 0.9));
        const lower = errors[1] / errors[0];
        return {{...own, curves: found.curves.result, formats, answers, constant: constant / whole, lower}};"""
    pools = [v8(code, changes={"different": count})["error"] for count in (1, 4, 16, 64, 256)]
    ordered = v8(code, changes={})
    permuted = {depth: v8(code, changes={"relabelled": True, "depth": depth}) for depth in (5, 30)}
    main, found = permuted[30], ordered["measures"]
    longer = v8(code, changes={"relabelled": True, "tasks": 100_000})
    later_at_60 = next(point for point in longer["curves"] if point["x"] == 60)
    ratio = [one["measures"]["beta"] / one["measures"]["alpha"] for one in permuted.values()]
    at_60 = next(point for point in main["curves"] if point["x"] == 60)
    # For constants, a row of the lower half is gamma times one of the upper half.
    _, A = weights_of(main["weights"])
    left, right = (A[:5] + GAMMA * A[5:]).sum(axis=0).reshape(2, 5).sum(axis=1)
    steps, grouped = ({name: of[-1] for name, of in errors.items()} for errors in main["formats"])
    for text in (
        f"α is {found['alpha']:.3f} and β is {found['beta']:.3f}.",
        f"explains {found['one']:.0%} of A; both explain {found['two']:.0%}.",
        f"the error of the mean weights is {round(ordered['lower'], -1):.0f} times larger",
        f"The error grows from {ordered['error']:.2f} to {ordered['other']:.2g}.",
        f"The page shows {main['measures']['eight']:.0%}, and {main['measures']['two']:.0%} for α and β.",
        f"The error is {main['error']:.2f}.",
        "errors are {:.0f}, {:.1f}, {:.2f}, {:.2f} and {:.2f};".format(*pools),
        f"with new tasks only, {ordered['error']:.2f}.",
        f"error is {steps['transformer']:.2g} with a column for each step",
        f"and {grouped['transformer']:.2f} with a column for each visited state, where LSTD has {steps['lstd']:.2f}.",
        f"error grows from {main['error']:.2f} to {at_60['transformer']:.0f}, and that of",
        f"falls from {main['curves'][0]['theta_td']:.2f} to {at_60['theta_td']:.5f}.",
        f"Constants are {main['constant']:.0%} of the squared values",
        f"estimate is {main['answers'][30]:.1f} after 30 layers and {main['answers'][60]:.0f} after 60,",
        f"each layer adds {main['measures']['constantFactor']:.3f} times what the last added "
        f"(as with \\gamma={-GAMMA * right / left:.2f}: the left half of A is weaker).",
        f"this factor is {longer['measures']['constantFactor']:.3f}, and the error with 60 layers "
        f"{later_at_60['transformer']:.1f}.",
        f"after 100,000 tasks its error is {longer['error']:.2f}, "
        rf"that of \theta^{{\mathrm{{TD}}}} {longer['curves'][0]['theta_td']:.2f}.",
        "β/α {:.2g} and {:.2g}?".format(*ratio),
    ):
        assert text in page, text


# Settings and files


def test_defaults_are_those_of_the_paper(v8):
    readings, evaluation = CONFIG["readings"], CONFIG["evaluation"]
    axes = {"environment": CONFIG["envs"], "states": CONFIG["states"], "depth": CONFIG["depths"]}
    main = {name: values[0] for name, values in axes.items()}
    others = {
        "tasks": CONFIG["tasks"], "discount": GAMMA, "learningRate": RATE, "seeds": CONFIG["seeds"], "seed": 0,
        "batchSize": CONFIG["batch_size"], "rolloutSteps": CONFIG["rollout_steps"], "target": CONFIG["algos"][0],
        "initialGain": readings["initial_gain"], "relabelled": False, "different": 0, **readings["env_options"]["loop"],
    }  # fmt: skip
    assert v8("return DEFAULT_SETTINGS") == main | others
    changes = [{name: value} for name in ("states", "depth", "environment") for value in axes[name][1:]]
    settings = v8("return PAPER_SETTINGS.map((changes) => ({...DEFAULT_SETTINGS, ...changes}))")
    assert settings == [main | others | change for change in ({}, *changes)]
    assert v8("return settings.map(checkSettings)", settings=settings) == [[]] * len(settings)
    found = v8("return [LENGTHS, TEST_TASKS, TUNING_TASKS]")
    assert found == [evaluation[key] for key in ("context_lengths", "claim_tasks", "tuning_tasks")]
    np.testing.assert_allclose(v8("return STEP_SIZES.slice(0, 25)"), log_spaced(**evaluation["step_sizes"]))


@pytest.mark.parametrize(
    ("name", "value", "of_library"),
    [
        ("states", 11, integer(2, 10)),
        ("depth", 2.5, integer(1, 60)),
        ("discount", 1, number(0.5, 0.99, "from 0.5 to 0.99")),
        ("target", "sarsa", choice(["td", "mc"])),
    ],
)
def test_errors_of_settings_are_those_of_the_library(v8, name, value, of_library):
    with pytest.raises(ValueError) as error:
        of_library(name, value, {})
    code = "return checkSettings({...DEFAULT_SETTINGS, [name]: value})"
    assert v8(code, name=name, value=value) == [str(error.value)]


@pytest.mark.parametrize("several", [False, True])
def test_the_model_file_is_one_of_the_library(v8, several, tmp_path):
    models = naive.several_weights(3, 2)
    found = v8(
        f"""{TYPED} const list = models.map(typed);
        return modelFile(several ? list : list[0], {{...DEFAULT_SETTINGS, depth: 300, discount: 0.95}});""",
        models=[flat(models[seed]) for seed in range(2)], several=several,
    )  # fmt: skip
    path = tmp_path / "model.npz"
    path.write_bytes(bytes(found))
    assert ictd.load_model(path) == ictd.Model(models if several else models[0], 300, 0.95)
