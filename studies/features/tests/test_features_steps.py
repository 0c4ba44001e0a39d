"""Pretraining, steps, settings and claims of the study."""

import numpy as np
import pandas as pd
import pytest
from tolerances import ENGINES

from ictd.engine import Engine
from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from ictd.report.part import statements_in
from ictd.report.tables import load_table
from ictd.rng import generator
from ictd.storage import load_arrays, save_arrays, save_table
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import initial_weights
from studies.features import compare, mean_part, pretrain, results
from studies.features.algorithms import DIRECTIONS, blocks_of, fit, td, trimmed_mean
from studies.features.mean_part import pretrained, taken_out
from studies.features.measures import block_coefficients
from studies.features.setting import checked_settings
from studies.features.tasks import distribution, held_out
from studies.features.tests.small import MAIN, small

SETTING = small()
TRIALS = 6


def test_each_target_and_seed_has_its_own_run(tmp_path):
    pretrain.main(MAIN | {"targets": ["values", "td", "mc"]}, 8, 5, 0.01, tmp_path / "w.npz")
    (A,) = load_arrays(tmp_path / "w.npz", "A")
    for place, target in enumerate(["values", "td", "mc"]):
        first = initial_weights(3, 0.1, generator(1, "boyan", 6, "features weights 3"))
        engine = Engine(first, 4, 0.9, 0.01)
        (block,) = training_blocks(distribution(SETTING), EnumeratedPrompts(), target, 0.9, 30, 1, 8, 5)
        engine.train(block.tasks.reward, block.targets, block.prompts(0.9), block.tasks.features)
        np.testing.assert_array_equal(A[place, 1], engine.weights().A)


def test_a_run_that_diverges_has_no_weights(tmp_path):
    pretrain.main(MAIN | {"initial_gain": 1e200}, 8, 5, 0.01, tmp_path / "w.npz")
    assert np.isnan(load_arrays(tmp_path / "w.npz", "A")[0]).all()


def test_the_other_start_is_the_residual_gradient():
    data = held_out(SETTING, 5, 0, "test")
    first = pretrain.first_weights(small(start="residual_gradient"), 0)
    blocks = data.phi[None] - data.following
    w, _ = td(data, blocks, np.array([1.0]), 4)
    errors = taken_out(first, data, 4)
    assert errors["ordinary"][2] == pytest.approx(trimmed_mean(data.msve(w)))


def test_parts_are_taken_out_of_the_test_functions_only():
    data, weights = held_out(SETTING, 5, 0, "test"), initial_weights(3, 0.5, np.random.default_rng(3))
    found = taken_out(weights, data, 4)
    for method in ("ordinary", "without_mean", "without_rest"):
        w = np.zeros((5, 3))
        for i in range(5):
            phi, following = data.phi[i], 0.9 * data.tasks.transition[i] @ data.phi[i]
            mean = np.broadcast_to(following.mean(axis=0), (6, 3))
            left = {"ordinary": following, "without_mean": following - mean, "without_rest": mean}[method]
            x, z = np.concatenate([phi, following], axis=1), np.concatenate([phi, left], axis=1)
            y = data.tasks.reward[i] + x @ weights.u
            for _ in range(4):
                # Each column adds its test function, -A[:, :d]' z, times its residual y; A's other columns change y.
                w[i] -= (y @ z) @ weights.A[:, :3] / 6
                y = y + (y @ z) @ weights.A @ x.T / 6
        assert found[method][2] == pytest.approx(trimmed_mean(data.msve(w)), rel=ENGINES)


@pytest.mark.parametrize("target", ["td", "values"])
def test_pretraining_reads_the_four_blocks(target):
    eta_m, eta_r, _ = pretrained(SETTING, 0, 8, 0.01)[f"pretrained_{target}"]
    rng, control = (generator(0, "boyan", 6, f"mean part {name}") for name in ("start", "control"))
    engine = Engine(initial_weights(6, 0.1, rng), 4, 0.9, 0.01)
    (block,) = training_blocks(distribution(SETTING), EnumeratedPrompts(), target, 0.9, 30, 0, 8, 1)
    tasks = block.tasks
    order = control.permuted(np.broadcast_to(np.arange(6), (30, 6)), axis=1)
    columns = np.empty((30, 13, 6))
    for i in range(30):
        following = tasks.transition[i] @ tasks.features[i]
        m = following.mean(axis=0)
        for s in range(6):
            shown = m, following[s] - m, following[order[i, s]] - m
            columns[i, :, s] = [*tasks.features[i, s], *(0.9 * np.concatenate(shown)), tasks.reward[i, s]]
    queries = np.concatenate([tasks.features, np.zeros((30, 6, 3))], axis=-1)
    engine.train(tasks.reward, block.targets, columns @ columns.mT / 6, queries)
    k, _ = block_coefficients(engine.weights().A)
    assert [eta_m, eta_r] == pytest.approx([k[1] / k[0], k[2] / k[0]], rel=1e-8)


@pytest.fixture
def weights(tmp_path):
    """Weights theta^TD for the target "td", and zero for "values"."""
    A = np.zeros((2, 2, 6, 6))
    A[0] = np.kron([[-1.0, 1.0], [0.0, 0.0]], np.eye(3))
    save_arrays(tmp_path / "w.npz", u=np.zeros((2, 2, 6)), A=A)
    return tmp_path / "w.npz"


def test_methods_are_compared_on_the_same_tasks(tmp_path, weights):
    compare.main("main", MAIN, 30, 20, weights, tmp_path / "e.csv")
    errors = load_table(tmp_path / "e.csv").pivot(index="seed", columns="method", values="median")
    np.testing.assert_array_equal(errors["pretrained_values"], errors["zero"])
    for seed in range(2):
        data = held_out(SETTING, 20, seed, "test")
        w, _ = td(data, blocks_of(data, "td"), np.array([1.0]), 4)
        assert errors["pretrained_td"][seed] == pytest.approx(np.median(data.msve(w)))
    assert (errors["projection"] <= errors.min(axis=1)).all() and errors["lstd_lambda"].mean() < errors["lstd"].mean()


def test_parts_are_measured_on_other_tasks_than_those_of_the_fits(tmp_path, weights):
    mean_part.main("main", MAIN, 30, 2, 1, 8, 0.01, weights, tmp_path / "p.csv")
    table = load_table(tmp_path / "p.csv").set_index(["columns", "method", "seed"]).sort_index()
    tuning, test = (held_out(SETTING, 30, 1, f"mean part {purpose}") for purpose in ("tuning", "test"))
    for method, zero in {"mean": "rest", "rest": "mean"}.items():
        numbers = fit(tuning, blocks_of(tuning, method), 4)
        w, _ = td(test, blocks_of(test, method), numbers, 4)
        row = table.loc["equal", method, 1]
        assert row["trimmed"] == pytest.approx(trimmed_mean(test.msve(w)))
        assert row[method] == pytest.approx(numbers[1] / numbers[0]) and row[zero] == 0
    assert table.loc["equal", "ordinary", 1]["trimmed"] == pytest.approx(trimmed_mean(test.msve(0 * w)))
    assert set(table.loc["reversible"].index.unique(0)) == set(DIRECTIONS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"main": {"env": "bayou"}}, "env has 'bayou'"),
        ({"main": {"dimension": 11}}, "dimension is 11 with 10 states"),
        ({"variations": [{"name": "main"}]}, "has a name twice"),
        ({"variations": [{"name": "loop", "targets": ["td"]}]}, "mean_part has 'loop'"),
    ],
)
def test_settings_that_do_not_fit(given, message):
    section = load_config({"features": given}, PROJECT)["features"]
    with pytest.raises(ValueError, match=message):
        checked_settings(section)


def test_measures_of_weights_have_their_target_and_seed(tmp_path):
    settings = {"main": MAIN, "variations": [], "mean_part": {"settings": ["main"]}}
    etas = np.array([[0.1, 0.2], [0.3, 0.4]])
    A = np.kron(np.array([[-1, 1], [0, 0]]) + etas[..., None, None] * np.array([[0, 0], [-1, 1]]), np.eye(3))
    save_arrays(tmp_path / "weights/main.npz", A=A)
    for folder in ("errors", "mean_part"):
        save_table(tmp_path / folder / "main.csv", {"columns": ["equal", "weighted"]})
    found = results.load(tmp_path, settings)
    assert results.samples(found["weights"], "eta", target="values").to_dict() == pytest.approx({0: 0.3, 1: 0.4})
    assert found["equal"]["columns"].tolist() == ["equal"]


# Values by which all claims hold, by method or setting.
HOLDS = {
    "eta": {"main": 0.5, "constant": -0.1, "complete": 0.2, "other_start": 0.4},
    "parts": {"td": 1.0, "mean": 0.88, "rest": 0.99, "split": 0.88, "without_mean": 1.1, "without_rest": 1.0},
    "errors": {"pretrained_values": 0.8, "td": 1.0, "lstd": 0.9, "lstd_lambda": 0.3},
}


def verdicts(changes):
    """Verdicts by claim; all rows have a value of each trial."""
    eta, parts, errors = (HOLDS[name] | changes.get(name, {}) for name in HOLDS)
    trials = pd.DataFrame({"seed": range(TRIALS), "noise": 1 + 0.001 * np.arange(TRIALS), "target": "values"})
    trials = trials.assign(columns="equal", four=0.9, mean=2.0, rest=0.1)

    def rows(setting, method="", value=1.0, **others):
        made = trials.assign(setting=setting, method=method, eta=value * trials["noise"], **others)
        return made.assign(trimmed=made["eta"], median=made["eta"] ** 2)

    equal = [rows("main", *one) for one in parts.items()] + [rows("constant", method) for method in parts]
    reversible = rows("main", "split", columns="reversible", mean=9.0, rest=0.9)
    compared = [rows(setting, *one) for setting in ("main", "constant") for one in errors.items()]
    frames = {
        "weights": pd.concat(rows(name, value=value) for name, value in eta.items()),
        "equal": pd.concat(equal),
        "parts": pd.concat([*equal, reversible]),
        "errors": pd.concat(compared),
    }
    return {claim.id: claim.verdict for statement in statements_in(results) for claim in statement.decide(frames)}


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({}, set()),
        ({"eta": {"complete": 0.7}}, {"more_than_complete/main-values"}),
        ({"eta": {"constant": 0.7}}, {"more_than_constant/main-values"}),
        ({"eta": {"other_start": -0.4}}, {"positive_eta/other_start"}),
        ({"parts": {"mean": 0.96}}, {"mean_alone/main"}),
        ({"parts": {"rest": 0.9}}, {"rest_alone/main"}),
        ({"parts": {"without_rest": 1.2}}, {"mean_taken_out/main"}),
        ({"errors": {"td": 0.7}}, {"better_than_td/main", "better_than_td/constant"}),
        ({"errors": {"lstd_lambda": 0.85}}, {"lstd_lambda_is_better/main", "lstd_lambda_is_better/constant"}),
    ],
)
def test_claims_hold_or_are_refuted(changes, refuted):
    found = verdicts(changes)
    assert {name for name, verdict in found.items() if verdict != "holds"} == refuted
    assert {name.partition("/")[0] for name in found} == {statement.id for statement in statements_in(results)}
