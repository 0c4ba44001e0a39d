"""Markov reward processes, and their environments."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.mrp import truncation_bias


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("transition", "stationary"),
    [
        ([[0.7, 0.3], [0.1, 0.9]], [0.25, 0.75]),
        # Kemeny and Snell's weather in the land of Oz.
        ([[0.5, 0.25, 0.25], [0.5, 0.0, 0.5], [0.25, 0.25, 0.5]], [0.4, 0.2, 0.4]),
        # Periodic.
        ([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5]),
        # Nearly decomposable: solving the linear system loses relative precision.
        ([[1 - 2**-46, 2**-46], [3 * 2**-46, 1 - 3 * 2**-46]], [0.75, 0.25]),
    ],
)
def test_stationary_distribution_of_known_chains(transition, stationary):
    np.testing.assert_allclose(ictd.stationary_distribution(transition), stationary, rtol=ROUNDING)


def test_values_satisfy_the_bellman_equation():
    """Leading axes broadcast."""
    tasks = ictd.sample_tasks("loop", 6, 4, rng())
    v = ictd.value_function(tasks.transition[:, None], tasks.reward, 0.97)
    bellman = tasks.reward + 0.97 * np.einsum("isj,iks->ikj", tasks.transition.mT, v)
    np.testing.assert_allclose(v, bellman, atol=ROUNDING * 100)


def test_values_of_chains_with_an_end():
    # Sutton and Barto's random walk of 19 states, with the rewards -1 and 1 at its ends.
    walk, reward = (np.eye(19, k=1) + np.eye(19, k=-1)) / 2, np.zeros(19)
    reward[[0, -1]] = -0.5, 0.5
    value = ictd.value_function(walk, reward, 1, episodic=True)
    np.testing.assert_allclose(value, np.arange(-9, 10) / 10, rtol=ROUNDING, atol=ROUNDING)
    # An end is a state of value 0 that is never left.
    absorbing = np.pad(walk, (0, 1))
    absorbing[:, -1] = 1 - absorbing.sum(axis=1)
    found = ictd.value_function(walk, reward, 0.9, episodic=True)
    np.testing.assert_allclose(found, ictd.value_function(absorbing, np.append(reward, 0), 0.9)[:-1], rtol=ROUNDING)


# The die of Knuth and Yao, which shows the faces 7 to 12 after fair flips.
DIE, FLIPS = np.zeros((13, 13)), np.repeat([1.0, 0.0], [7, 6])
for state, after in enumerate([(1, 2), (3, 4), (5, 6), (1, 7), (8, 9), (10, 11), (2, 12)]):
    DIE[state, after] = 0.5


def test_several_reward_vectors_of_one_chain():
    expected = [ictd.value_function(DIE, reward, 1, episodic=True) for reward in np.eye(13)]
    np.testing.assert_array_equal(ictd.value_function(DIE[None], np.eye(13), 1, episodic=True), expected)
    np.testing.assert_array_equal(ictd.value_function(DIE, np.eye(13)[:2], 1, episodic=True), expected[:2])
    assert (FLIPS @ expected)[0] == pytest.approx(11 / 3)


def test_values_of_endless_episodes_are_discounted():
    np.testing.assert_allclose(ictd.value_function([[0, 0.5], [0, 1]], [1, 1], 0.5, True), [1.5, 2], rtol=ROUNDING)


def test_tasks_with_episodes():
    walk = (np.eye(5, k=1) + np.eye(5, k=-1)) / 2
    start = np.eye(5)[2]
    tasks = ictd.Tasks(np.stack([walk, walk]), np.zeros((2, 5)), episodic=True, start=start)
    np.testing.assert_allclose(tasks.stationary, [np.array([1, 2, 3, 2, 1]) / 9] * 2, rtol=ROUNDING)
    assert repr(tasks[1:]) == "<Tasks: 1 tasks, 5 states, with episodes>"
    assert tasks[1:].episodic and tasks[1:].start.tolist() == [start.tolist()]
    single = ictd.Tasks(walk, np.zeros(5), tasks.stationary[0], episodic=True, start=start)
    np.testing.assert_array_equal(single.stationary, tasks.stationary[:1])
    assert not ictd.Tasks([[0.5, 0.5], [0.5, 0.5]], [0, 0]).episodic


def test_bairds_counterexample_is_a_task():
    """The target policy stays in the last of seven states, and the behaviour visits all equally often (Baird, 1995)."""
    features = np.hstack([2 * np.eye(7), np.ones((7, 1))])
    features[6, 6:] = 1, 2
    target = np.tile(np.eye(7)[6], (7, 1))
    tasks = ictd.Tasks(target, np.zeros(7), features=features, behaviour=np.full(7, 1 / 7))
    np.testing.assert_array_equal(tasks.stationary, [[0, 0, 0, 0, 0, 0, 1]])
    np.testing.assert_allclose(tasks.visited, 1 / 7, rtol=ROUNDING)
    two_classes = ictd.Tasks(np.eye(2), np.zeros(2), [0.5, 0.5], behaviour=[0.25, 0.75])
    np.testing.assert_array_equal(two_classes.stationary, [[0.5, 0.5]])


@pytest.mark.parametrize("slow", [1e-2, 1e-6, 1e-10, 1e-14])
def test_a_given_stationary_distribution_is_compared_with_that_of_the_chain(slow):
    """Also if the chain is nearly decomposable, so that a wrong one hardly changes."""
    chain = np.array([[1 - slow, slow], [2 * slow, 1 - 2 * slow]])
    ictd.Tasks(chain, [0, 0], [2 / 3, 1 / 3])
    ictd.Tasks(chain.astype(np.float32) if slow > 1e-7 else chain, [0, 0], np.array([2 / 3, 1 / 3], np.float32))
    for wrong in ([0.5, 0.5], [0.666, 0.334], [1, 0]):
        with pytest.raises(ValueError, match=r"^stationary\[0\] is not stationary; .*, \[0.666\d* 0.333"):
            ictd.Tasks(chain, [0, 0], wrong)
    # Blocks of two states: within a block all is well.
    blocks = np.kron(chain, np.full((2, 2), 0.5))
    ictd.Tasks(blocks, np.zeros(4), [1 / 3, 1 / 3, 1 / 6, 1 / 6])
    with pytest.raises(ValueError, match="is not stationary"):
        ictd.Tasks(blocks, np.zeros(4), np.full(4, 0.25))


def test_a_function_can_give_one_chain():
    """As the message for a chain in place of an environment says."""
    p, r = [[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0]
    for wrong in (p, np.array(p), ictd.Tasks(p, r)):
        with pytest.raises(ValueError, match=r"^env is .* such as lambda states, size, rng: \(\[p\] \* size, "):
            ictd.TaskDistribution(wrong, r)
    tasks = ictd.TaskDistribution(lambda states, size, rng: ([p] * size, [r] * size), states=2).sample(3, rng())
    np.testing.assert_array_equal(tasks.transition, [p] * 3)


def test_a_sampler_over_a_finite_list_gives_all_of_it_and_says_when_it_stopped():
    chains = iter([np.full((2, 2), 0.5)] * 5)
    finite = ictd.TaskDistribution(lambda *_: (list(next(chains) for _ in "1"), [[0, 0]]), states=2)
    for _ in range(5):
        finite.sample(1, rng())
    with pytest.raises(
        ValueError, match=r"^environment '<lambda>' gave 5 tasks, and stopped by StopIteration\(\) when"
    ):
        finite.sample(1, rng())


def test_msve_of_a_known_case():
    mu, value, estimate = np.array([0.25, 0.75]), np.array([1.0, 2.0]), np.array([3.0, 1.0])
    assert ictd.msve(mu, value, estimate) == 0.25 * 4 + 0.75 * 1


@pytest.mark.parametrize("steps", [1, 20])
def test_truncation_bias_equals_naive(steps):
    tasks = ictd.sample_tasks("boyan", 4, 5, rng())
    value = ictd.value_function(tasks.transition, tasks.reward, 0.8)
    bias = truncation_bias(tasks.transition, value, 0.8, steps)
    for i in range(len(tasks)):
        truncated = naive.truncated_value(tasks.transition[i], tasks.reward[i], 0.8, steps)
        np.testing.assert_allclose(bias[i], truncated - value[i], atol=ROUNDING)


@pytest.mark.parametrize("states", [2, 7])
def test_boyan_has_the_transitions_of_algorithm_3(states):
    tasks = ictd.sample_tasks("boyan", states, 200, rng())
    allowed = np.zeros((states, states), bool)
    for s in range(states - 1):
        allowed[s, s + 1 : s + 3] = True
    allowed[states - 1] = True
    assert ((tasks.transition > 0).any(axis=0) == allowed).all()
    if states == 2:
        assert (tasks.transition[:, 0, 1] == 1).all()


def test_loop_has_the_transitions_of_algorithm_4(threshold=0.8):
    tasks = ictd.sample_tasks("loop", 6, 2000, rng(), threshold=threshold)
    cycle = [tasks.transition[:, s, (s + 1) % 6] > 0 for s in range(6)]
    assert np.all(cycle)
    assert (np.diagonal(tasks.transition, axis1=1, axis2=2) == 0).all()
    chords = (tasks.transition > 0).sum() - 6 * len(tasks)
    assert abs(chords / (len(tasks) * 6 * 4) - (1 - threshold)) < 0.01


def assert_uniform(sample, low=0.0, high=1.0):
    """A large sample has the quantiles of a uniform distribution."""
    levels = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(np.quantile(sample, levels), low + (high - low) * levels, atol=0.02 * (high - low))


def assert_ratio_of_uniforms(ratio):
    """A large sample has the distribution of a quotient of two uniform numbers."""
    assert_uniform(np.where(ratio < 1, ratio / 2, 1 - 1 / (2 * ratio)))


def test_boyan_draws_from_the_distributions_of_algorithm_3():
    tasks = ictd.sample_tasks("boyan", 4, 20_000, rng())
    assert_uniform(tasks.reward[:, 2], -1, 1)
    assert_uniform(tasks.transition[:, 0, 1])
    assert_uniform(tasks.transition[:, 1, 2])
    # The last row is z / sum(z) for uniform z.
    assert_ratio_of_uniforms(tasks.transition[:, 3, 0] / tasks.transition[:, 3, 2])
    assert np.corrcoef(tasks.transition[:, 0, 1], tasks.transition[:, 1, 2])[0, 1] == pytest.approx(0, abs=0.03)


def test_loop_draws_from_the_distributions_of_algorithm_4():
    tasks = ictd.sample_tasks("loop", 4, 40_000, rng())
    assert_uniform(tasks.reward[:, 0], -1, 1)
    with_chords = tasks.transition[(tasks.transition[:, 0, 2] > 0) & (tasks.transition[:, 0, 3] > 0), 0]
    assert_ratio_of_uniforms(with_chords[:, 2] / with_chords[:, 1])
    assert (tasks.transition[:, 1, 3] > 0).mean() == pytest.approx(0.5, abs=0.02)


def test_a_single_chain_is_a_set_of_one_task():
    several = ictd.sample_tasks("boyan", 4, 1, rng())
    single = ictd.Tasks(several.transition[0], several.reward[0].tolist(), several.stationary[0])
    assert len(single) == 1
    for name, array in vars(several).items():
        np.testing.assert_array_equal(getattr(single, name), array)
    batches = ictd.unroll(several, 8, 0.9, 5, rng())
    np.testing.assert_array_equal(ictd.unroll(single, 8, 0.9, 5, rng()).transitions, batches.transitions)
    assert len(ictd.BatchStatistics(*(array[0] for array in vars(batches).values()))) == 1


def test_tasks_are_selected_by_slices():
    tasks = ictd.sample_tasks("loop", 3, 5, rng())
    selected = tasks[1:4]
    assert len(selected) == 3 and selected.states == 3
    for name, array in vars(tasks).items():
        np.testing.assert_array_equal(getattr(selected, name), array[1:4])


def test_slices_of_tasks_keep_the_distribution_of_visited_states():
    behaviour = rng().dirichlet(np.ones(3), size=5)
    tasks = ictd.Tasks(*vars(ictd.sample_tasks("loop", 3, 5, rng())).values(), behaviour=behaviour)
    np.testing.assert_allclose(tasks.visited, behaviour, atol=ROUNDING)
    np.testing.assert_array_equal(tasks[1:4].visited, tasks.visited[1:4])
    assert repr(tasks) == "<Tasks: 5 tasks, 3 states, with a behaviour>"


def test_relabelled_tasks_are_tasks_with_permuted_labels():
    tasks = ictd.sample_tasks("boyan", 5, 50, rng())
    permuted = ictd.sample_tasks("relabelled_boyan", 5, 50, rng())
    # The new label of each state, by its reward.
    ranks = np.argsort(np.argsort(tasks.reward, axis=1), axis=1)
    position = np.take_along_axis(np.argsort(permuted.reward, axis=1), ranks, axis=1)
    for i, order in enumerate(position):
        np.testing.assert_array_equal(permuted.transition[i][np.ix_(order, order)], tasks.transition[i])
    assert len(np.unique(position, axis=0)) > 20
