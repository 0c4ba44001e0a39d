"""The parts of next features, their coefficients and their claims, beside slow and obvious twins."""

import numpy as np
import pandas as pd
import pytest
from tolerances import ENGINES, ROUNDING

from ictd import initial_weights
from ictd.engine import Engine
from ictd.pipeline.provenance import PROJECT
from ictd.report.claim import Statements
from ictd.rng import generator
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, estimates
from studies.features.algorithms import limit_error, trimmed_mean
from studies.features.cause_claims import mean_part_claims
from studies.features.mean_part import FITS, MEANS, RESTS, cases_of, fit_numbers, fitted, limit_errors, pretrained
from studies.features.reversibility import reversed_chain
from studies.features.split import TD_ERROR, Split, fit_form, fit_test_functions, fit_two_blocks, on_blocks
from studies.features.symmetric import values_and_derivatives
from studies.features.tasks import distribution, held_out

SETTING = {
    "env": "boyan", "states": 6, "features": "normal", "dimension": 3, "depth": 4, "discount": 0.9,
    "prompts": "enumerated", "initial_gain": 0.1, "updates": 30, "targets": ["td", "values"], "seeds": 2,
}  # fmt: skip
KINDS = ["enumerated", "weighted", 12]
STATEMENTS = Statements(PROJECT / "studies/features/claims.toml")


def split(size=5, mean="columns", **changes):
    data = held_out(SETTING | changes, size, 0, "test")
    return Split.of(data, np.random.default_rng(0), mean)


@pytest.mark.parametrize("mean", ["columns", "stationary"])
@pytest.mark.parametrize("prompts", KINDS)
def test_parts_of_next_features(prompts, mean):
    found = split(prompts=prompts, mean=mean)
    data = found.data
    for i in range(5):
        columns = range(len(data.weight[i]))
        over_columns = sum(data.weight[i, s] * data.phi_next[i, s] for s in columns)
        stationary = sum(data.tasks.stationary[i, s] * data.tasks.features[i, s] for s in range(6))
        m = over_columns if mean == "columns" else stationary
        for s in columns:
            np.testing.assert_allclose(found.mean[i, s], m, rtol=ROUNDING, atol=ROUNDING)
            np.testing.assert_allclose(found.mean[i, s] + found.rest[i, s], data.phi_next[i, s], atol=ROUNDING)
        # The control has the next features of all columns, in another order, without their mean.
        others = sum(data.weight[i, s] * found.control[i, s] for s in columns)
        np.testing.assert_allclose(others, 0, atol=ROUNDING)
        difference = np.sort(found.control[i], axis=0) - np.sort(data.phi_next[i], axis=0)
        np.testing.assert_allclose(difference - difference[0], 0, atol=ROUNDING)
        assert not np.allclose(found.control[i], found.rest[i])


def test_the_stationary_mean_is_that_of_weighted_columns():
    weighted, stationary = (split(prompts="weighted", mean=mean) for mean in ("columns", "stationary"))
    np.testing.assert_allclose(weighted.mean, stationary.mean, rtol=1e-9, atol=ROUNDING)


def test_an_exchanged_mean_is_that_of_the_task_before():
    found = split()
    np.testing.assert_array_equal(found.exchanged().control[1:], found.mean[:-1])
    np.testing.assert_array_equal(found.exchanged().control[0], found.mean[-1])


@pytest.mark.parametrize("prompts", KINDS)
def test_eta_m_multiplies_the_mean_td_error_and_eta_r_a_covariance(prompts):
    found, alpha, eta_m, eta_r = split(prompts=prompts), 0.7, 2.0, -0.4
    numbers = alpha * np.array([1, eta_m, eta_r])
    values, _ = values_and_derivatives(numbers, FITS["split"], found.gram, found.data.tasks.features, 4)
    data = found.data
    for i in range(5):
        w = np.zeros(3)
        for _ in range(4):
            delta = [
                data.reward[i, s] + (0.9 * data.phi_next[i, s] - data.phi[i, s]) @ w for s in range(len(data.weight[i]))
            ]
            mean_delta = sum(c * error for c, error in zip(data.weight[i], delta, strict=True))
            m = sum(c * following for c, following in zip(data.weight[i], data.phi_next[i], strict=True))
            change = np.zeros(3)
            for c, error, phi, following in zip(data.weight[i], delta, data.phi[i], data.phi_next[i], strict=True):
                change += c * error * phi + 0.9 * eta_r * c * (error - mean_delta) * (following - m)
            w = w + alpha * (change + 0.9 * eta_m * mean_delta * m)
        np.testing.assert_allclose(values[i], data.tasks.features[i] @ w, rtol=ENGINES, atol=ENGINES)


def test_the_best_test_functions_have_the_mean_over_one_minus_gamma():
    found = split(prompts="weighted")
    data = found.data
    backward = reversed_chain(data.chain, data.tasks.stationary)
    best = np.linalg.solve(np.eye(6) - 0.9 * backward, data.phi)
    mean = (data.tasks.stationary[..., None] * best).sum(axis=1)
    np.testing.assert_allclose(mean, found.mean[:, 0] / (1 - 0.9), rtol=1e-9, atol=1e-9)
    ours = (data.tasks.stationary[..., None] * (data.phi + 0.9 * 10 * found.mean)).sum(axis=1)
    np.testing.assert_allclose(mean, ours, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prompts", KINDS)
def test_limits_are_those_of_lstd_with_these_test_functions(prompts):
    found = split(20, prompts=prompts)
    errors, data = limit_errors(found), found.data
    for i, j in [(0, 0), (4, 10), (11, 15), (44, 20)]:
        z = data.phi + MEANS[i] * 0.9 * found.mean + RESTS[j] * 0.9 * found.rest
        assert errors[i, j] == pytest.approx(limit_error(data, z), rel=1e-5)
    assert MEANS[4] == 0 and RESTS[10] == 0


def test_the_mean_has_no_effect_if_constants_are_features():
    errors = limit_errors(split(20, features="constant"))
    np.testing.assert_allclose(errors[8:, 10], errors[8, 10], rtol=1e-6)


@pytest.mark.parametrize("prompts", KINDS)
def test_weights_on_blocks_have_the_same_estimates(prompts):
    found = split(prompts=prompts)
    weights = initial_weights(3, 0.5, np.random.default_rng(1))
    expected = estimates(weights, found.data.gram, 4)
    np.testing.assert_allclose(estimates(on_blocks(weights, ()), found.gram, 4)[:, :3], expected, rtol=ENGINES)


@pytest.mark.parametrize(("taken_out", "left"), [((1,), "rest"), ((2,), "mean"), ((1, 2), "td")])
def test_a_part_is_taken_out_of_the_test_functions_only(taken_out, left):
    found, alpha, eta = split(), 0.7, 0.6
    weights = Weights(np.zeros(6), np.kron(alpha * np.array([[-1, 1], [-eta, eta]]), np.eye(3)))
    numbers = alpha * np.array([1, eta])[: len(FITS[left])]
    values, _ = values_and_derivatives(numbers, FITS[left], found.gram, found.data.tasks.features, 4)
    w = estimates(on_blocks(weights, taken_out), found.gram, 4)[:, :3]
    np.testing.assert_allclose(np.matvec(found.data.tasks.features, w), values, rtol=ENGINES, atol=ENGINES)
    assert found.error(on_blocks(weights, taken_out), 4) == pytest.approx(trimmed_mean(found.data.msve(w)))


def test_fits_recover_coefficients():
    k = np.array([0.8, 1.6, -0.2, 0.1])
    A = np.kron(np.outer(k, TD_ERROR), np.eye(3))
    for fit in (fit_form, fit_test_functions):
        fitted_k, share = fit(A, 3)
        np.testing.assert_allclose(fitted_k, k, rtol=ROUNDING)
        assert share == pytest.approx(1)
    rng = np.random.default_rng(0)
    noisy = A + 0.01 * rng.normal(size=A.shape)
    # The slow twin: least squares over k and a multiple of 11' in each block, for the first two of three features.
    target = noisy.reshape(4, 3, 4, 3)[:, :2, :, :2].swapaxes(1, 2)
    blocks = np.array([[np.linalg.lstsq(np.stack([np.eye(2).ravel(), np.ones(4)], axis=1), block.ravel())[0][0]
                        for block in row] for row in target])  # fmt: skip
    fitted_k, share = fit_form(noisy, 2)
    np.testing.assert_allclose(fitted_k, np.linalg.lstsq(TD_ERROR[:, None], blocks.T)[0][0], rtol=ENGINES)
    assert share == pytest.approx(2 * 3 * (fitted_k**2).sum() / (target**2).sum())
    fitted_k, share = fit_test_functions(noisy, 2)
    np.testing.assert_allclose(fitted_k, -blocks[:, 0], rtol=ENGINES)
    assert share == pytest.approx(2 * (fitted_k**2).sum() / (target[:, 0] ** 2).sum())
    two = Weights(np.zeros(6), np.kron([[-0.8, 0.8], [-0.4, 0.4]], np.diag([1.0, 1.0, 5.0])))
    k, share = fit_two_blocks(two, 2)
    np.testing.assert_allclose(k, [0.8, 0.4, 0.4, 0], rtol=ROUNDING)
    assert share == pytest.approx(1)


def test_the_estimate_is_a_sum_of_test_functions():
    found, weights = split(), initial_weights(6, 0.5, np.random.default_rng(3))
    w = estimates(weights, found.gram, 4)[:, :3]
    for i in range(5):
        columns = np.concatenate(
            [found.data.phi[i], 0.9 * np.concatenate([found.mean[i], found.rest[i], found.control[i]], axis=1)], axis=1
        )
        y, expected = found.data.reward[i] + columns @ weights.u, np.zeros(3)
        for _ in range(4):
            # Each column adds its test function, -A[:, :d]' x, times its residual y; A's other columns change y only.
            expected += sum(c * y[s] * -(weights.A[:, :3].T @ columns[s]) for s, c in enumerate(found.data.weight[i]))
            y = y + [
                sum(c * y[s] * columns[s] @ weights.A @ x for s, c in enumerate(found.data.weight[i])) for x in columns
            ]
        np.testing.assert_allclose(w[i], expected, rtol=ENGINES, atol=ENGINES)


@pytest.mark.parametrize("method", ["mean", "split"])
def test_a_fit_is_no_worse_than_a_grid(method):
    found = split(40)
    numbers = fit_numbers(found, FITS[method], 4)
    mu = found.data.tasks.stationary

    def msve(numbers):
        values, _ = values_and_derivatives(numbers, FITS[method], found.gram, found.data.tasks.features, 4)
        return (mu * (found.data.value - values) ** 2).sum(axis=-1).mean()

    near = [numbers * factors for factors in np.ndindex(*(3,) * len(numbers))]
    near += [numbers + 0.05 * np.array(step) - 0.05 for step in np.ndindex(*(3,) * len(numbers))]
    grid = [np.array([alpha, *(alpha * np.array(etas))]) for alpha in (0.5, 1, 2, 3)
            for etas in np.ndindex(*(4,) * (len(numbers) - 1))]  # fmt: skip
    assert msve(numbers) <= min(msve(other) for other in near + grid) * (1 + 1e-6)


def test_a_fit_with_more_numbers_is_no_worse_on_its_own_tasks():
    found = split(40)
    result = fitted(found, found, 4, FITS)
    numbers = {method: fit_numbers(found, FITS[method], 4) for method in ("td", "tied", "mean", "rest", "split")}
    mu, losses = found.data.tasks.stationary, {}
    for method, chosen in numbers.items():
        values, _ = values_and_derivatives(chosen, FITS[method], found.gram, found.data.tasks.features, 4)
        losses[method] = (mu * (found.data.value - values) ** 2).sum(axis=-1).mean()
    assert losses["split"] <= min(losses.values()) * (1 + 1e-6)
    assert max(losses["tied"], losses["mean"], losses["rest"]) <= losses["td"] * (1 + 1e-6)
    k, _, _ = result["values", "split"]
    np.testing.assert_allclose(k[:3], numbers["split"], rtol=ENGINES)
    assert k[3] == 0 and result["values", "exchanged"][0][1] == 0
    errors = limit_errors(found)
    assert result["values", "limit"][2] == pytest.approx(errors.min(), rel=1e-6)


@pytest.mark.parametrize(("target", "algo"), [("td", "td"), ("values", "mc")])
def test_pretraining_reads_the_four_blocks(target, algo):
    found = pretrained(SETTING, 0, 8, 0.01)[target]
    rng, control = (generator(0, "boyan", 6, f"mean part {name}") for name in ("start", "control"))
    engine = Engine(initial_weights(6, 0.1, rng), algo, 4, 0.9, 0.01)
    (block,) = training_blocks(distribution(SETTING, 0), EnumeratedPrompts(), target, 0.9, 30, 0, 8, 1)
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
    engine.train(tasks.reward, block.batches, columns @ columns.mT / 6, queries)
    np.testing.assert_allclose(found.A, engine.weights().A, rtol=ENGINES, atol=ENGINES)
    assert not np.allclose(found.A, initial_weights(6, 0.1, generator(0, "boyan", 6, "mean part start")).A)


def test_pretraining_that_diverges_has_no_weights():
    assert pretrained(SETTING | {"initial_gain": 1e200}, 0, 8, 0.01) == {}


def test_cases_of_settings():
    assert list(cases_of(SETTING)) == ["own", "stationary", "weighted", "reversible"]
    assert list(cases_of(SETTING | {"prompts": 30})) == ["own"]
    assert list(cases_of(SETTING | {"env": "boyan_centred"})) == ["own"]
    without = cases_of(SETTING | {"features": "constant"})["without_constant"]
    assert without.draw(3, 0, "test").phi.shape == (3, 6, 2)
    data = cases_of(SETTING)["reversible"].draw(3, 0, "test")
    flow = data.tasks.stationary[..., None] * data.chain
    np.testing.assert_allclose(flow, flow.mT, atol=ROUNDING)


SEEDS = 6


def rows_of(setting, case, **methods):
    """Rows of a case; each method has (mean, rest, control, error) for the target before its last underscore."""
    rows = []
    for name, (mean, rest, control, error) in methods.items():
        target, _, method = name.partition("_")
        for seed in range(SEEDS):
            noise = 0.001 * seed
            rows.append({
                "setting": setting, "case": case, "target": target, "seed": seed, "method": method, "alpha": 1.0,
                "mean": mean + noise, "rest": rest + noise, "control": control + noise, "error": error * (1 + noise),
                "share": 0.9 - mean / 4,
            })  # fmt: skip
    return pd.DataFrame(rows)


def decided(**changes):
    own = {
        "values_td": (0, 0, 0, 1.0), "values_tied": (0.5, 0.5, 0, 0.95), "values_mean": (2.0, 0, 0, 0.9),
        "values_rest": (0, 0.1, 0, 0.99), "values_split": (2.0, 0.1, 0, 0.89),
        "values_other_states": (2.0, 0, 0.1, 0.89), "values_exchanged": (0, 0.5, 0.1, 0.95),
        "td_split": (0.2, -0.1, 0, 1.0), "values_limit": (3.0, 0.0, 0, 0.9),
        "values_pretrained": (0.8, 0.1, 0, 0.9), "td_pretrained": (2.0, 0.1, 0, 0.9),
        "values_without_mean": (0, 0.5, 0, 1.2), "values_without_rest": (0.5, 0, 0, 1.0),
    } | changes  # fmt: skip
    compared = ("values_td", "values_mean", "values_split", "values_other_states", "values_limit", "td_split")
    weighted = {key: own[key] for key in compared}
    table = pd.concat([
        rows_of("main", "own", **own),
        rows_of("main", "weighted", **weighted),
        rows_of("main", "reversible", **weighted | {"values_split": (2.0, 0.9, 0, 0.8)}),
        rows_of("constant", "own", **weighted | {"values_mean": (2.0, 0, 0, 1.0)}),
    ])  # fmt: skip
    found = {"main": SETTING, "constant": SETTING | {"features": "constant"}}
    claims = list(mean_part_claims(STATEMENTS, found, table))
    assert len({claim.id for claim in claims}) == len(claims)
    return {claim.id: claim for claim in claims}


def test_claims_on_the_mean_part():
    claims = decided()
    verdicts = {name: claim.verdict for name, claim in claims.items()}
    assert verdicts["split_mean, two numbers/main-own"] == verdicts["split_rest, two numbers/main-own"] == "holds"
    assert verdicts["split_mean, TD/main-own"] == "refuted" and verdicts["split_rest, TD/main-own"] == "holds"
    assert verdicts["split_share, pretrained, true values/main-own"] == "holds"
    assert verdicts["split_share, pretrained, TD/main-own"] == "refuted"
    assert verdicts["split_mean, limit/main-weighted"] == "holds"
    for name in ("split_mean_alone", "split_rest_alone", "split_tied", "split_exchanged"):
        assert verdicts[f"{name}/main-own"] == "holds"
    assert claims["split_mean_alone/main-own"].value == pytest.approx(np.log10(0.9 / np.sqrt(0.89)), abs=1e-4)
    assert verdicts["split_own_states/main-own"] != "holds"
    assert verdicts["split_own_states/main-reversible"] == "holds"
    assert verdicts["split_sensitive, two numbers/main-reversible"] == "holds"
    assert verdicts["split_sensitive, limit/main-reversible"] == "refuted"
    assert verdicts["split_reversible, two numbers/main-reversible"] == "holds"
    assert verdicts["split_control, constant/main"] == "holds"
    assert claims["split_taken_out, true values/main"].value == pytest.approx(np.log10(1.2))
    assert not [name for name in verdicts if name.endswith("/constant-own")]


def test_claims_can_fail():
    claims = decided(
        values_split=(0.5, 0.9, 0, 0.5), values_without_rest=(0.5, 0, 0, 1.5), values_exchanged=(0, 0, 2, 1)
    )
    refuted = (
        "split_mean, two numbers/main-own", "split_rest, two numbers/main-own", "split_mean_alone/main-own",
        "split_exchanged/main-own", "split_taken_out, true values/main",
    )  # fmt: skip
    assert {claims[name].verdict for name in refuted} == {"refuted"}
