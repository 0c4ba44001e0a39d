"""What the library says about arguments that it refuses: one line a kind of error.

``test_checks.py`` gives every argument of every public function invalid values; this table has the sentences.
"""

import numpy as np
import pytest
from naive import material

import ictd
from ictd import (
    BatchStatistics,
    Context,
    Model,
    TaskDistribution,
    Tasks,
    lstd_lambda,
    pretrain,
    sample_tasks,
    stationary_distribution,
    td_lambda,
    theta_td,
    value_function,
)
from ictd.baselines import constant_estimate
from ictd.pretraining import pretrain_history
from ictd.sampling import sample_paths, unroll
from ictd.theory.recursion import evolve

HALVES, REWARD, TWO = np.full((1, 2, 2), 0.5), np.zeros((1, 2)), np.full((2, 2), 0.5)
ENDING = Tasks([[0, 0.5], [0, 0]], [0, 0], episodic=True)
# Of two classes, and with a state that is never left.
SPLIT, STUCK = [[0, 1, 0, 0], [1, 0, 0, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1]], [[0, 0.5], [0, 1]]
SLOW = [[0, 1.0], [1 - 2e-8, 0]]  # It ends after 10^8 steps on average.
STATES, REWARDS = [0, 1, 0], [1.0, 2.0]


def rng():
    return np.random.default_rng(0)


def tensor(*shape, **options):
    """Newer versions of Python are tested without torch."""
    import torch

    return torch.ones(shape, **options)


def transitions(states=(0, 1), rewards=(1.0, 1.0), next_states=(1, 0), n=2, **given):
    return Context.from_transitions(states, rewards, next_states, n, **given)


def trajectory(states=STATES, rewards=REWARDS, n=2, **given):
    return Context.from_trajectory(states, rewards, n, **given)


def td(states=STATES, rewards=REWARDS, discount=1, decay=0.5, n=2, **given):
    return td_lambda(states, rewards, discount, decay, 0.1, n, **given)


def history(**changes):
    tasks, batches, start = material("boyan", 3, 0.9, tasks=5)
    settings = {"algo": "td", "depth": 3, "discount": 0.9, "learning_rate": 1e-3, "start": start, "batches": batches}
    return pretrain_history(tasks, **settings | changes)


def short(tasks=None, **settings):
    return pretrain(tasks or TaskDistribution("loop", 3), 2, 0.9, updates=2, progress=False, **settings)


def two_tasks():
    return sample_tasks("loop", 4, 2, rng())


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Chains
        (lambda: stationary_distribution([[1.1, -0.1], [0, 1]]), r"^transition\[0, 1\] is -0.1, which is not a prob"),
        (lambda: stationary_distribution([[0.2, 0.8], [0.998, 0]]), r"\[1\] sums to 0.998, not to one; correct"),
        (lambda: stationary_distribution(np.eye(2000)), r"has 2000 closed .* \[\[0\], .* \.\.\. .*\[1999\]\], so"),
        (lambda: stationary_distribution([*HALVES, np.eye(2)]), r"^transition\[1\] has 2 closed classes"),
        (lambda: stationary_distribution(SPLIT), r"\[\[0, 1\], \[3\]\], so that its stationary .* is not unique\.$"),
        (lambda: stationary_distribution(STUCK, episodic=True), r"states, \[\[1\]\], in which episodes never end; if"),
        (lambda: stationary_distribution(np.eye(2), start=[0, 1]), "start is .*; give episodic=True"),
        (lambda: stationary_distribution(TWO / 2, episodic=True, start=[0, 0.5]), "start sums to 0.5"),
        (lambda: value_function(TWO, np.ma.masked_equal([1.0, 2.0], 2), 0.5), "^reward is .* masked entries"),
        (lambda: value_function(TWO, tensor(2, requires_grad=True), 0.5), r"^reward .* Use tensor.detach\(\).num"),
        (lambda: value_function(TWO, TWO, 0), r"reward has shape \(2, 2\); give \(transition \* reward\)"),
        (lambda: value_function(TWO, [1e308, 1e308], 0.9), r"value\[0\] is beyond the range of floats; give"),
        (lambda: value_function(TWO, [1, 1], 1), r"discount is 1; give a number from 0 to 1 - 2\^-26 .* episodic=True"),
        (lambda: value_function(np.eye(2), [1, 1], 1, True), r"has closed classes of states, \[\[0\], \[1\]\], in whi"),
        (lambda: value_function(SLOW, [1, 1], 1, True), r"^transition\[0\] is the row .* take more than 2\^26 steps"),
        # Tasks and environments
        (lambda: Tasks(HALVES[None], REWARD[None]), "leading axes"),
        (lambda: Tasks(np.ones((1, 1, 1)), np.zeros((1, 1))), "number of states is 1"),
        (lambda: Tasks([[0.5, 0.5], [0, 1]], [0, 0]), r"transition\[0\] stays in state 1 forever, .* episodic=True"),
        (lambda: Tasks([[0.5, 0.5], [0, 1]], [0, 0], [0.5, 0.5]), r"that of the chain, \[0. 1.\]"),
        (lambda: Tasks(HALVES, REWARD, episodic=True), r"^transition\[0\] has closed classes of states, \[\[0, 1\]\]"),
        (lambda: Tasks(HALVES / 2, REWARD, [[0.4, 0.6]], episodic=True), "is not stationary"),
        (lambda: Tasks(HALVES, REWARD, behaviour=[[[0, 1], [0, 1]]]), r"behaviour\[0, 0\] never visits"),
        (lambda: Tasks(HALVES, REWARD, features=np.zeros((2, 2))), r"features\[0\] are all zero"),
        (lambda: Tasks(HALVES, REWARD)[0], "no slice of tasks"),
        (lambda: sample_tasks("boyan", 5, 1, rng(), threshold=0.5), r"'threshold'\]: boyan has no argument threshold"),
        (lambda: sample_tasks(lambda *_: None, 4, 1, rng()), "returned NoneType; return .transition, reward"),
        (lambda: sample_tasks(lambda *_: (TWO, [0, 0]), 4, 2, rng()), "arrays of shapes"),
        # Trajectories and batches
        (lambda: sample_paths(ENDING, 3, rng()), "tasks has episodes; sample_steps says"),
        (lambda: unroll(ENDING, 3, 0.9, 5, rng()), "tasks has episodes; pretraining takes"),
        (lambda: BatchStatistics([[1, 1]], [[[2, -1], [0, 1]]], [[0.0, 0.0]]), r"transitions\[0, 0, 1\]"),
        (lambda: BatchStatistics([[2, 1]], [[[1, 0], [0, 1]]], [[0.0, 0.0]]), r"transitions\[0\] .* visits"),
        # Contexts
        (lambda: trajectory([0, 1, 0], [1.0, 2.0, 3.0]), r"rewards has shape \(3,\); .*m = 2\."),
        (lambda: trajectory(["a", "b"], [1.0]), r"^states is \['a', 'b'\] .* whole numbers; pandas.factorize numbers"),
        (lambda: transitions(discounts=[1.5, 0]), r"discounts\[0\] is 1.5, not from 0 to 1"),
        (lambda: transitions(next_states=[None, 0]), r"next_states\[0\] is missing, but termin"),
        (lambda: transitions([[0], [1]]), r"states has shape \(2, 1\); .* several steps in each context, or \(m\) for"),
        (lambda: transitions([[0, 1], [0]]), "^states has rows of different lengths; give rows of one length"),
        (lambda: transitions([], [], []), "^states is empty; give at least one entry"),
        (lambda: Context(3, np.arange(9).reshape(3, 3)), r"G\[0, 1\] differs in the transpose"),
        (lambda: Context([3], np.eye(3)), r"G has shape \(3, 3\); .* leading axes \(1,\)\."),
        (lambda: Context(1, np.eye(3)).grouped([[-1.0]]), r"pseudo_counts\[0, 0\] is -1.0, not from 0 to inf"),
        (lambda: Context.joined([Context(1, np.eye(n)) for n in (3, 5)]), r"contexts\[1\].G has shape \(5, 5\)"),
        # Estimates
        (lambda: td(discount=[0.9, 1.2]), r"discount\[1\] is 1.2, not from 0 to 1"),
        (lambda: td([0, 1]), r"states has shape \(2,\); give \(3,\)"),
        (lambda: td(next_states=[1, 0]), r"states has shape \(3,\); give \(2,\) with next_states"),
        (lambda: td(truncations=[1, 0]), "next_states are missing; with truncations"),
        (lambda: td([0, 1], next_states=[0, 0]), r"next_states\[0\] is not the next entry .*; mark ends in terminals"),
        (lambda: td([0, 1], next_states=[0, 0], n=None, features=[[1, 0], [1, 1]]), r"next_states\[0\] is not"),
        (lambda: td([0, 2, 0]), "states.* not one of 2 states"),
        (lambda: td(n=None), "n is missing"),
        (lambda: td(n=3, features=np.eye(2)), "n is 3, and features are those of 2 states"),
        (lambda: lstd_lambda([0, 0], [1e308], 0.99, 0.5, 1e-3, 1), "estimate of LSTD is not finite"),
        (lambda: constant_estimate(trajectory().with_features([[1.0], [2.0]]), 0.9), "not one-hot"),
        (lambda: trajectory().with_features([[1.0, 1], [0, 1]]).grouped(), "features of the context are not one-hot"),
        # Transformers
        (lambda: Model(theta_td(5), 3, 0.9).values(trajectory()), "context has 2 .* made for 5"),
        (lambda: Model(theta_td(2), 3, 0.9).values(np.zeros((5, 3))), "context is .* Context"),
        (lambda: Model(theta_td(1), 3, 0.9).values(trajectory(n=None, features=[[1], [2]])), "queries are missing"),
        (lambda: ictd.LinearTransformer(theta_td(3), 2)(tensor(5, 4), None), r"shape \(5, 4\), 2 features.* 3"),
        (lambda: ictd.LinearTransformer(theta_td(3), 2)(tensor(7, 3), 3), r"m \+ 3\) with m above 0"),
        (lambda: ictd.load_model("nowhere", "td-boyan-2-30"), "nowhere holds no weights"),
        # Pretraining
        (lambda: history(start=theta_td(2)), "start has 2 features, and the tasks have 3"),
        (lambda: history(start=ictd.Weights(np.full(6, np.nan), np.eye(6))), r"start.u\[0\] is not finite"),
        (lambda: history(tasks_seen=[2, 4]), "tasks_seen must ascend .* 5"),
        (lambda: history(batches=BatchStatistics([1, 0, 0], np.diag([1, 0, 0]), np.zeros(3))), "batches.visits has"),
        (lambda: short(tasks=two_tasks()), "tasks is <Tasks: 2 tasks, 4 states>; give a TaskDistribution of"),
        (lambda: short(tasks=TaskDistribution("boyan", 501)), "501 features; .* at most 1000 states and 500 features"),
        # Theory
        (lambda: evolve(theta_td(5), two_tasks(), 0.9, 3), r"for 5 states, and the tasks have 4\."),
        (lambda: evolve(theta_td(4), two_tasks(), 1, 3), "discount is 1"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_with_its_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()
