"""Our engine beside the predecessor's public code, on the same tasks, trajectories and initial P and Q.

``predecessor_reference.csv`` has what that code computes, and the commit; ``predecessor_reference.py`` makes it.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tolerances import ENGINES

from ictd.mrp import value_function
from studies.features import predecessor
from studies.features.predecessor_engine import Engine, StepSize, implicit_weights
from studies.features.tests import predecessor_cases as cases

REFERENCE = pd.read_csv(Path(__file__).parent / "predecessor_reference.csv")


ROLLOUT = 40


def shifted_targets(case, tasks, paths):
    """The targets that the public code gives the estimate of S_t where it does not bootstrap: those of S_{t+1}."""
    reward = tasks.reward[:, None, :]
    following = paths[:, :-1, case.length + 2 :]
    if case.loss == "msve_true":
        values = value_function(tasks.transition, tasks.reward, case.discount)
    else:
        values = sum(
            case.discount**k * np.matvec(np.linalg.matrix_power(tasks.transition, k), tasks.reward)
            for k in range(ROLLOUT)
        )
    assert values.shape == reward[:, 0].shape
    return np.take_along_axis(values[:, None, :], following, axis=-1).reshape(-1, case.batch)


def our_numbers(case):
    """Compute with our engine what ``predecessor_reference.run`` returns."""
    tasks, paths, start = case.data()
    rewards_only = case.loss == "mstde"
    options = case.depth, case.length, case.discount, case.learning_rate, case.decay
    engine = Engine(*start, *options, bootstrap=rewards_only)
    step_size = StepSize(case.dimension, *options)
    batches = predecessor.sampled_batches(tasks, paths[:, :-1], case.length, case.discount)
    targets = batches.rewards if rewards_only else shifted_targets(case, tasks, paths)
    rows = []
    for seen in range(case.interval, case.tasks + 1, case.interval):
        block = slice((seen - case.interval) * case.batches, seen * case.batches)
        assert engine.train(batches.columns[block], batches.queries[block], targets[block]) == len(targets[block])
        step_size.train(batches.columns[block], batches.queries[block], batches.rewards[block])
        P, Q = engine.matrices()
        last = tasks[seen - 1 : seen]
        columns = predecessor.sampled_rows(last, paths[seen - 1 : seen, -1:, : case.length + 1], case.discount)[:, 0]
        grams = columns.mT @ columns / case.length
        P_td, Q_td = predecessor.td_matrices(case.dimension, step_size.value())
        w = implicit_weights(P, Q, grams, case.depth)
        td = implicit_weights(P_td[None], Q_td[None], grams, case.depth)
        found = predecessor.metrics(w, td, last)
        similarity = found["similarity"].item()
        rows += cases.numbers(
            seen, P, Q, step_size.value(), found["value_difference"].item(), similarity, similarity
        )  # fmt: skip
    return pd.DataFrame(rows, columns=["tasks", "quantity", "value"])


@pytest.mark.parametrize("name", cases.CASES)
def test_pretraining_and_metrics_are_those_of_the_public_code(name):
    case, ours = cases.CASES[name], our_numbers(cases.CASES[name])
    theirs = REFERENCE[REFERENCE["case"] == name]
    compared = theirs.merge(ours, on=["tasks", "quantity"], suffixes=("", "_ours"))
    assert len(compared) == len(theirs) == len(ours) == 8 * case.tasks // case.interval
    if case.loss != "mstde":
        # Its batch TD has shifted targets, too; the Transformer's parameters are compared.
        compared = compared[compared["quantity"].str.contains("of")]
    np.testing.assert_allclose(compared["value_ours"], compared["value"], rtol=ENGINES, atol=ENGINES)


def test_sensitivities_and_implicit_weights_have_one_similarity():
    rows = REFERENCE.pivot(index=["case", "tasks"], columns="quantity", values="value")
    similarities = rows["sensitivity similarity"], rows["implicit weight similarity"]
    np.testing.assert_allclose(*similarities, atol=ENGINES)
    assert similarities[0].std() > 0.1
