"""Trajectories, and the statistics of batches."""

import naive
import numpy as np
import pytest
from tolerances import ALIAS, ROUNDING, STANDARD_ERRORS

import ictd
from ictd import jumps
from ictd.sampling import transition_counts


def generator(purpose="tests"):
    return ictd.generator(3, "loop", 5, purpose)


def repeated(tasks, count):
    """One task ``count`` times."""
    return ictd.Tasks(*(np.repeat(array, count, axis=0) for array in vars(tasks).values()))


def assert_means(samples, expected):
    """Means of samples (N, ...) are within some standard errors of what is expected."""
    error = samples.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - expected) <= STANDARD_ERRORS * error + ROUNDING).all()


@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("boyan", 5), ("loop", 9), ("loop", 40)])
def test_alias_tables_have_the_given_distributions(env, states):
    tasks = ictd.sample_tasks(env, states, 10, generator())
    for i in range(len(tasks)):
        accept, successor = naive.alias_tables(tasks, i)
        distributions = np.vstack([tasks.transition[i], tasks.stationary[i]])
        drawn = np.array([naive.alias_probabilities(accept[s], successor[s]) for s in range(states + 1)])
        np.testing.assert_allclose(drawn, distributions, atol=ALIAS)
        assert (drawn[distributions == 0] == 0).all()


@pytest.mark.parametrize(("batch", "tau", "discount"), [(1, 1, 0.0), (7, 2, 0.5), (300, 5, 0.99), (4, 30, 0.9)])
def test_unroll_equals_naive(batch, tau, discount):
    tasks = ictd.sample_tasks("loop", 5, 3, generator())
    fast = ictd.unroll(tasks, batch, discount, tau, generator("unrolls"))
    visits, transitions, return_sums = naive.unroll(tasks, batch, discount, tau, generator("unrolls"))
    np.testing.assert_array_equal(fast.visits, visits)
    np.testing.assert_array_equal(fast.transitions, transitions)
    np.testing.assert_allclose(fast.return_sums, return_sums, atol=ROUNDING * 100)


@pytest.mark.parametrize("batch", [255, 256, 511])
def test_counts_of_large_batches_do_not_overflow(batch):
    tasks = ictd.Tasks(np.array([[1 - 1e-6, 1e-6], [1.0, 0.0]]), np.array([1.0, 0.0]))
    fast = ictd.unroll(tasks, batch, 0.9, 1, generator("unrolls"))
    visits, transitions, _ = naive.unroll(tasks, batch, 0.9, 1, generator("unrolls"))
    assert visits[0, 0] == transitions[0, 0, 0] == batch
    np.testing.assert_array_equal(fast.visits, visits)
    np.testing.assert_array_equal(fast.transitions, transitions)


def test_the_length_of_jumps_keeps_their_tables_small():
    transition = ictd.sample_tasks("boyan", 4, 1, generator()).transition
    p = transition[0]
    scratch = np.empty((2, 60), np.int64)
    length = jumps.steps_of_jump(0, transition, 50, scratch)
    paths = {steps: max(len(naive.paths_from(p, s, steps)) for s in range(4)) for steps in (length, length + 1)}
    assert paths[length] <= jumps.PATHS < paths[length + 1]
    assert jumps.steps_of_jump(0, transition, 2, scratch) == 2
    assert jumps.steps_of_jump(0, np.full((1, 60, 60), 1 / 60), 5, scratch) == 1


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_jumps_list_all_paths_of_their_length(steps):
    tasks = ictd.sample_tasks("boyan", 4, 1, generator())
    p, r = tasks.transition[0], tasks.reward[0]
    space = jumps.jumps_space(4)
    columns = jumps.fill_jump_table(0, tasks.transition, tasks.reward, 0.7, steps, *space)
    assert columns == max(len(naive.paths_from(p, s, steps)) for s in range(4))
    rows = 4 * columns
    accept = space[0][:rows].reshape(4, columns)
    last_row, gain = (array[: 2 * rows].reshape(4, columns, 2) for array in space[1:3])
    for s in range(4):
        drawn = {}
        for column in range(columns):
            keep = int(accept[s, column]) / 2**32
            for k, share in ((0, 1 - keep), (1, keep)):
                outcome = last_row[s, column, k] / columns, gain[s, column, k]
                drawn[outcome] = drawn.get(outcome, 0) + share / columns
        drawn = sorted((outcome, share) for outcome, share in drawn.items() if share)
        expected = sorted(
            ((path[-1], sum(0.7**k * r[state] for k, state in enumerate(path))), probability)
            for path, probability in naive.paths_from(p, s, steps)
        )
        np.testing.assert_allclose([of for of, _ in drawn], [of for of, _ in expected], atol=ROUNDING)
        np.testing.assert_allclose([share for _, share in drawn], [p for _, p in expected], atol=ALIAS)


def test_returns_of_many_states_have_the_right_mean():
    """Jumps are single steps here."""
    tasks = ictd.Tasks(np.full((1, 60, 60), 1 / 60), np.arange(60.0)[None])
    batches = ictd.unroll(tasks, 4000, 0.5, 2, generator("unrolls"))
    error = np.arange(60).std() * np.sqrt(1 + 0.5**2) / np.sqrt(4000)
    assert batches.return_sums.sum() / 4000 == pytest.approx(1.5 * 29.5, abs=STANDARD_ERRORS * error)


def test_batches_do_not_depend_on_later_tasks():
    tasks = ictd.sample_tasks("boyan", 3, 50, generator())
    several = ictd.unroll(tasks, 6, 0.9, 4, generator("unrolls"))
    fewer = ictd.unroll(tasks[:7], 6, 0.9, 4, generator("unrolls"))
    for name, array in vars(several).items():
        np.testing.assert_array_equal(array[:7], getattr(fewer, name))


def test_batch_statistics_have_the_right_means():
    task = ictd.sample_tasks("loop", 5, 1, generator())
    batch, discount, tau = 8, 0.8, 40
    batches = ictd.unroll(repeated(task, 2000), batch, discount, tau, generator("unrolls"))
    mu, p, r = task.stationary[0], task.transition[0], task.reward[0]
    assert_means(batches.visits.astype(float), batch * mu)
    assert_means(batches.transitions.astype(float), batch * mu[:, None] * p)
    assert_means(batches.return_sums, batch * mu * naive.truncated_value(p, r, discount, tau))


def test_returns_of_a_batch_are_independent():
    # Two states with values +1 and -1; the next state is random, so two returns from state 0 are independent.
    task = ictd.Tasks(np.full((1, 2, 2), 0.5), np.array([[1.0, -1.0]]))
    batches = ictd.unroll(repeated(task, 4000), 2, 0.5, 2, generator("unrolls"))
    sums = batches.return_sums[batches.visits[:, 0] == 2, 0]
    # A return is 1 +- 0.5: the sum of two is 1, 2 or 3 with probabilities 1/4, 1/2, 1/4.
    shares = [(sums == total).mean() for total in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.07)


def test_paths_follow_the_chain():
    tasks = ictd.sample_tasks("boyan", 4, 300, generator())
    paths = ictd.sample_paths(tasks, 20, generator("paths"))
    for i, path in enumerate(paths):
        assert (tasks.transition[i, path[:-1], path[1:]] > 0).all()
    starts = np.bincount(paths[:, 0], minlength=4) / len(paths)
    np.testing.assert_allclose(starts, tasks.stationary.mean(axis=0), atol=0.1)


def test_paths_have_the_frequencies_of_the_chain():
    task = ictd.sample_tasks("loop", 4, 1, generator())
    p = task.transition[0]
    paths = ictd.sample_paths(repeated(task, 200), 400, generator("paths"))
    counts = naive.transition_counts(paths, np.full(200, 400), 4).sum(axis=0)
    visits = counts.sum(axis=1, keepdims=True)
    error = np.sqrt(p * (1 - p) / visits)
    assert (np.abs(counts / visits - p) <= STANDARD_ERRORS * error + ROUNDING).all()
    assert len({tuple(path) for path in paths}) == 200


def test_transition_counts_equal_naive():
    paths, lengths = np.random.default_rng(0).integers(0, 3, (5, 8)), np.array([1, 7, 3, 6, 2])
    counts = transition_counts(paths[:, :-1], paths[:, 1:], lengths, 3)
    np.testing.assert_array_equal(counts, naive.transition_counts(paths, lengths, 3))


def batches_with(name, value):
    """Batch statistics of four tasks, with another first value of the third task."""
    fields = {"visits": np.full((4, 2), 2), "transitions": np.ones((4, 2, 2), int), "return_sums": np.zeros((4, 2))}
    ictd.BatchStatistics(**fields)
    fields[name][2].flat[0] = value
    return ictd.BatchStatistics(**fields)


ONES, PAIRS = np.ones((1, 2), int), np.eye(2, dtype=int)[None]
NEGATIVE = np.array([[[2, -1], [0, 1]]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tasks: ictd.unroll(tasks, 0, 0.9, 10, generator()), "batch_size is 0"),
        (lambda tasks: ictd.unroll(tasks, 5, 0.9, 0, generator()), "rollout_steps is 0"),
        (lambda tasks: ictd.unroll(tasks, 5, 1.0, 10, generator()), "discount is 1.0"),
        (lambda tasks: ictd.sample_paths(tasks, -1, generator()), "steps is -1"),
        (lambda tasks: ictd.BatchStatistics(ONES, ONES, ONES * 1.0), "transitions has shape"),
        (
            lambda tasks: ictd.BatchStatistics(ONES, NEGATIVE, ONES * 1.0),
            r"transitions\[0, 0, 1\]",
        ),
        (lambda tasks: ictd.BatchStatistics(ONES, PAIRS, ONES * np.nan), r"return_sums\[0, 0\] is not finite"),
        (lambda tasks: ictd.BatchStatistics(ONES * 1.0, PAIRS, ONES * 1.0), "visits is .* whole numbers"),
        (lambda tasks: ictd.BatchStatistics(ONES * 0, PAIRS * 0, ONES * 0.0), r"visits\[0\] has no visits"),
        (lambda tasks: batches_with("return_sums", np.nan), r"return_sums\[2, 0\]"),
        (lambda tasks: batches_with("transitions", 3), r"transitions\[2\] .* visits"),
        (lambda tasks: batches_with("visits", 5), r"transitions\[2\] .* visits"),
    ],
)
def test_invalid_batches_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(ictd.sample_tasks("boyan", 3, 2, generator()))


def test_trajectories_of_more_than_256_states_are_refused():
    tasks = ictd.Tasks(np.full((257, 257), 1 / 257), np.zeros(257))
    for call in (lambda: ictd.unroll(tasks, 1, 0.9, 1, generator()), lambda: ictd.sample_paths(tasks, 1, generator())):
        with pytest.raises(ValueError, match="257 states"):
            call()
