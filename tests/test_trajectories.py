"""Trajectories and sufficient statistics."""

import naive
import numpy as np
import pytest
from tolerances import ALIAS, ROUNDING, STANDARD_ERRORS

import ictd
from ictd import sampling
from ictd.evaluation import sample_contexts
from ictd.prompt import Context


def generator(purpose="tests"):
    return ictd.generator(3, "loop", 5, purpose)


@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("boyan", 5), ("loop", 9), ("loop", 40)])
def test_alias_tables_draw_from_the_given_distributions(env, states):
    tasks = ictd.sample_tasks(env, states, 10, generator())
    for i in range(len(tasks)):
        accept, successor = naive.tables(tasks, i)
        rows = np.vstack([tasks.transition[i], tasks.stationary[i]])
        drawn = np.array([naive.alias_probabilities(accept[s], successor[s]) for s in range(states + 1)])
        np.testing.assert_allclose(drawn, rows, atol=ALIAS)
        assert (drawn[rows == 0] == 0).all()


@pytest.mark.parametrize(("batch", "tau", "discount"), [(1, 1, 0.0), (7, 2, 0.5), (300, 5, 0.99), (4, 30, 0.9)])
def test_unroll_equals_naive_loop(batch, tau, discount):
    tasks = ictd.sample_tasks("loop", 5, 3, generator())
    fast = ictd.unroll(tasks, batch, discount, tau, generator("unrolls"))
    visits, transitions, returns = naive.unroll(tasks, batch, discount, tau, generator("unrolls"))
    np.testing.assert_array_equal(fast.visits, visits)
    np.testing.assert_array_equal(fast.transitions, transitions)
    np.testing.assert_allclose(fast.return_sums, returns, atol=ROUNDING * 100)


def test_jumps_are_the_paths_of_their_steps():
    tasks = ictd.sample_tasks("boyan", 4, 1, generator())
    p, r = tasks.transition[0], tasks.reward[0]
    length, largest = sampling.steps_of_jump(p, 50)
    assert largest <= sampling.PATHS < max(len(naive.paths_from(p, s, length + 1)) for s in range(4))
    assert largest == max(len(naive.paths_from(p, s, length)) for s in range(4))
    assert sampling.steps_of_jump(p, 2)[0] == 2
    for steps, columns in ((1, 4), (2, 9), (length, largest), (2, 12)):
        tables = sampling.jump_table(p, r, 0.7, steps, columns)
        accept, last, gain = (table.reshape(4, columns, -1) for table in tables)
        for s in range(4):
            drawn = {}
            for column in range(columns):
                keep = int(accept[s, column, 0]) / 2**32
                for k, share in ((0, 1 - keep), (1, keep)):
                    place = int(last[s, column, k]), gain[s, column, k]
                    drawn[place] = drawn.get(place, 0) + share / columns
            expected = {
                (path[-1], sum(0.7**i * r[state] for i, state in enumerate(path))): chance
                for path, chance in naive.paths_from(p, s, steps)
            }
            drawn = {place: share for place, share in sorted(drawn.items()) if share}
            np.testing.assert_allclose([*drawn], [*map(list, sorted(expected))], atol=ROUNDING)
            np.testing.assert_allclose([*drawn.values()], [expected[one] for one in sorted(expected)], atol=ALIAS)


def test_a_jump_is_of_one_step_where_states_are_many():
    p = np.full((60, 60), 1 / 60)
    assert sampling.steps_of_jump(p, 5) == (1, 60)
    tasks = ictd.Tasks(p[None], np.arange(60.0)[None])
    many = ictd.unroll(tasks, 4000, 0.5, 2, generator("unrolls"))
    both = many.return_sums.sum() / 4000
    assert both == pytest.approx(1.5 * 29.5, abs=STANDARD_ERRORS * np.arange(60).std() * 1.12 / np.sqrt(4000))


def test_the_first_tasks_of_more_are_unrolled_alike():
    tasks = ictd.sample_tasks("boyan", 3, 50, generator())
    whole, part = (ictd.unroll(one, 6, 0.9, 4, generator("unrolls")) for one in (tasks, tasks[:7]))
    assert whole.return_sums[:7].tobytes() == part.return_sums.tobytes()
    assert whole.transitions[:7].tobytes() == part.transitions.tobytes()


def test_unrolled_statistics_have_the_right_means():
    one = ictd.sample_tasks("loop", 5, 1, generator())
    size, batch, discount, tau = 2000, 8, 0.8, 40
    tasks = ictd.Tasks(*(np.repeat(array, size, axis=0) for array in (one.transition, one.reward, one.stationary)))
    unrolls = ictd.unroll(tasks, batch, discount, tau, generator("unrolls"))
    mu, p = one.stationary[0], one.transition[0]

    def close(samples, expected):
        error = samples.std(axis=0) / np.sqrt(size)
        assert (np.abs(samples.mean(axis=0) - expected) <= STANDARD_ERRORS * error + ROUNDING).all()

    close(unrolls.visits.astype(float), batch * mu)
    close(unrolls.transitions.astype(float), batch * mu[:, None] * p)
    close(unrolls.return_sums, batch * mu * naive.truncated_value(p, one.reward[0], discount, tau))


def test_returns_of_a_batch_are_independent():
    # With two states of values +1 and -1 that are left at random, returns of the same start state must not repeat.
    tasks = ictd.Tasks(np.full((1, 2, 2), 0.5), np.array([[1.0, -1.0]]))
    many = ictd.Tasks(*(np.repeat(a, 4000, axis=0) for a in (tasks.transition, tasks.reward, tasks.stationary)))
    unrolls = ictd.unroll(many, 2, 0.5, 2, generator("unrolls"))
    both = unrolls.return_sums[unrolls.visits[:, 0] == 2, 0]
    # Two independent returns 1 +- 0.5: their sum is 1, 2 or 3 with probabilities 1/4, 1/2, 1/4.
    shares = [(both == total).mean() for total in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.07)


def test_sampled_paths_follow_the_chain():
    tasks = ictd.sample_tasks("boyan", 4, 300, generator())
    paths = ictd.sample_paths(tasks, 20, generator("paths"))
    for i, path in enumerate(paths):
        assert (tasks.transition[i, path[:-1], path[1:]] > 0).all()
    start = np.bincount(paths[:, 0], minlength=4) / len(paths)
    np.testing.assert_allclose(start, tasks.stationary.mean(axis=0), atol=0.1)


def test_sampled_paths_have_the_transitions_frequencies():
    one = ictd.sample_tasks("loop", 4, 1, generator())
    tasks = ictd.Tasks(*(np.repeat(array, 200, axis=0) for array in (one.transition, one.reward, one.stationary)))
    paths = ictd.sample_paths(tasks, 400, generator("paths"))
    counts = np.zeros((4, 4))
    np.add.at(counts, (paths[:, :-1].ravel(), paths[:, 1:].ravel()), 1)
    visits = counts.sum(axis=1, keepdims=True)
    error = np.sqrt(one.transition[0] * (1 - one.transition[0]) / visits)
    assert (np.abs(counts / visits - one.transition[0]) <= STANDARD_ERRORS * error + ROUNDING).all()
    # Successive steps draw anew: what follows s, a does not depend on how a was reached.
    assert len({tuple(path) for path in paths}) == 200


def test_contexts_are_the_beginnings_of_paths():
    lengths = np.array([1, 7, 30, 2])
    tasks = ictd.sample_tasks("loop", 4, 4, ictd.generator(3, "loop", 4, "tasks"))
    contexts = sample_contexts(tasks, lengths, ictd.generator(3, "loop", 4, "contexts"))
    paths = ictd.sample_paths(tasks, 30, ictd.generator(3, "loop", 4, "contexts"))
    for i, m in enumerate(lengths):
        one = Context.of_paths(paths[i, : m + 1], tasks.reward[i])
        for name in "CDEbd":
            np.testing.assert_allclose(getattr(contexts, name)[i], getattr(one, name), atol=ROUNDING)


def test_streams_differ_in_each_of_their_keys():
    keys = {(0, "boyan", 5, "tasks"), (1, "boyan", 5, "tasks"), (0, "loop", 5, "tasks"), (0, "boyan", 3, "tasks")}
    keys |= {(0, "boyan", 5, "unrolls"), (0, "boyan", 5, "validation"), (0, "boyan", 5, "tuning")}
    assert len({ictd.generator(*key).integers(2**63) for key in keys}) == len(keys)
    again = ictd.generator(0, "boyan", 5, "tasks").integers(2**63)
    assert again == ictd.generator(0, "boyan", 5, "tasks").integers(2**63)


ONES = np.ones((1, 2), int)


def unrolls_with(name, value):
    """Unrolls of four tasks, with another first value of the third one's."""
    fields = {"visits": np.full((4, 2), 2), "transitions": np.ones((4, 2, 2), int), "return_sums": np.zeros((4, 2))}
    ictd.BatchStatistics(**fields)
    fields[name][2].flat[0] = value
    return ictd.BatchStatistics(**fields)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: ictd.unroll(t, 0, 0.9, 10, generator()), "batch_size is 0"),
        (lambda t: ictd.unroll(t, 5, 0.9, 0, generator()), "rollout_steps is 0"),
        (lambda t: ictd.unroll(t, 5, 1.0, 10, generator()), "discount is 1.0"),
        (lambda t: ictd.sample_paths(t, -1, generator()), "steps is -1"),
        (lambda t: ictd.BatchStatistics(ONES, ONES, ONES * 1.0), "transitions has shape"),
        (lambda t: ictd.BatchStatistics(ONES, np.ones((1, 2, 2), int), ONES * 1.0), r"transitions\[0\] has counts"),
        (
            lambda t: ictd.BatchStatistics(ONES, np.array([[[2, -1], [0, 1]]]), ONES * 1.0),
            r"transitions\[0, 0, 1\] is not",
        ),
        (
            lambda t: ictd.BatchStatistics(ONES, np.eye(2, dtype=int)[None], ONES * np.nan),
            r"return_sums\[0, 0\] is not finite",
        ),
        (lambda t: ictd.BatchStatistics(ONES * 1.0, np.eye(2)[None], ONES * 1.0), "visits is .* whole numbers"),
        (lambda t: ictd.BatchStatistics(ONES * 0, np.zeros((1, 2, 2), int), ONES * 0.0), r"visits\[0\] has no visits"),
        (lambda t: unrolls_with("return_sums", np.nan), r"return_sums\[2, 0\] is not finite"),
        (lambda t: unrolls_with("transitions", 3), r"transitions\[2\] has counts that do not add up to visits"),
        (lambda t: unrolls_with("visits", 5), r"transitions\[2\] has counts that do not add up to visits"),
    ],
)
def test_bad_unrolls_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(ictd.sample_tasks("boyan", 3, 2, generator()))
