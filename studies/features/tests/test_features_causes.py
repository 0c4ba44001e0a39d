"""Reversed chains and their claims, beside slow and obvious twins."""

import numpy as np
import pandas as pd
import pytest
from tolerances import ENGINES

from ictd.pipeline.provenance import PROJECT
from ictd.report.claim import Statements
from studies.features.algorithms import limit_error, projection, trimmed_mean
from studies.features.cause_claims import reversibility_claims
from studies.features.reversibility import (
    CHAINS,
    KINDS,
    THREE_BLOCKS,
    MixedChains,
    draw_held_out,
    first_order,
    reversed_chain,
    span_cosine,
    three_block_functions,
    three_block_gram,
)
from studies.features.symmetric import values_and_derivatives

STATEMENTS = Statements(PROJECT / "studies/features/claims.toml")


def mixed(chain="boyan", drift=1.0, features="normal", size=5):
    distribution = MixedChains(chain, drift, features, 6, 6 if features == "rotated" else 3)
    return draw_held_out(distribution, size, 0.9, 0, "test")


@pytest.mark.parametrize("chain", CHAINS)
def test_mixed_chains_go_from_reversible_to_the_own_chain(chain):
    own, half, reversible = (mixed(chain, drift) for drift in (1.0, 0.5, 0.0))
    for data in (half, reversible):
        np.testing.assert_allclose(data.tasks.stationary, own.tasks.stationary, rtol=1e-9)
    flow = reversible.tasks.stationary[..., None] * reversible.chain
    np.testing.assert_allclose(flow, flow.mT, atol=1e-12)
    assert first_order(reversible) == pytest.approx(1)
    assert first_order(own) < first_order(half) < 1
    np.testing.assert_allclose(half.chain, 0.75 * own.chain + 0.25 * reversed_chain(own.chain, own.weight), atol=1e-12)


def test_a_directed_ring_never_returns_in_two_steps():
    assert first_order(mixed("ring")) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_columns_have_the_features_and_the_stationary_weights(kind):
    data = mixed(features=kind)
    means = (data.weight[..., None] * data.phi).sum(axis=1)
    assert (np.abs(means) < 1e-12).all() == (kind == "centred")
    np.testing.assert_allclose(data.weight, data.tasks.visited, rtol=1e-9)
    if kind == "rotated":
        np.testing.assert_allclose(data.phi @ data.phi.mT, np.broadcast_to(np.eye(6), data.chain.shape), atol=1e-12)


@pytest.mark.parametrize("chain", CHAINS)
def test_eligibility_gives_the_projection(chain):
    data = mixed(chain, size=20)
    backward = reversed_chain(data.chain, data.weight)
    z = np.stack([np.linalg.inv(np.eye(6) - 0.9 * p) @ phi for p, phi in zip(backward, data.phi, strict=True)])
    assert limit_error(data, z) == pytest.approx(trimmed_mean(data.msve(projection(data))), rel=1e-6)
    assert span_cosine(data, z) == pytest.approx(1)
    assert span_cosine(data, data.phi) < 0.99


@pytest.mark.parametrize("kind", ["reversed", "shuffled"])
def test_a_layer_reads_three_blocks(kind):
    data, numbers, depth = mixed(), np.array([0.7, 0.3, 0.2]), 4
    values, _ = values_and_derivatives(numbers, THREE_BLOCKS, three_block_gram(data, kind), data.tasks.features, depth)
    z = three_block_functions(data, 0.3 / 0.7, 0.2 / 0.7, kind)
    for i in range(5):
        w = np.zeros(3)
        for _ in range(depth):
            delta = data.reward[i] + 0.9 * data.phi_next[i] @ w - data.phi[i] @ w
            w = w + 0.7 * sum(data.weight[i, s] * delta[s] * z[i, s] for s in range(6))
        np.testing.assert_allclose(values[i], data.phi[i] @ w, rtol=ENGINES, atol=ENGINES)


def rows_of(**columns):
    return pd.DataFrame({"seed": range(6)} | columns)


def test_claims_on_reversibility():
    noise = 0.01 * np.arange(6)
    place = {"chain": "ring", "features": "normal", "discount": 0.9}
    table = pd.concat(
        rows_of(**place, drift=drift, method=method, eta=eta + noise, cosine=cosine + noise)
        for drift, method, eta, cosine in [
            (0.0, "two_numbers", 1.0, 0.9),
            (1.0, "two_numbers", 0.2, 0.5),
            (1.0, "three_numbers", 0.1, 0.4),
            (1.0, "three_shuffled", 0.1, 0.5),
            (0.0, "limit", 0.5, 0.9),
            (1.0, "limit", 0.7, 0.9),
        ]
    )
    verdicts = {claim.id: (claim.verdict, round(claim.value, 3)) for claim in reversibility_claims(STATEMENTS, table)}
    assert verdicts == {
        "reversible, two numbers/ring-normal-0.9": ("holds", 0.8),
        "reversible, limit/ring-normal-0.9": ("refuted", -0.2),
        "reversed_block/ring-normal-0.9": ("refuted", -0.1),
    }
