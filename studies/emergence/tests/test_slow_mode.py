"""The direction that follows a slow mode."""

import numpy as np
import pandas as pd
import pytest
from tolerances import ROUNDING

from studies.emergence import slow_mode

GAMMA, N, DEPTH = 0.9, 3, 4


def test_the_rank_one_part_of_a_known_matrix():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 5))
    alpha, found = slow_mode.rank_one_part(0.3 * np.eye(5) + np.outer(left, right))
    assert alpha == pytest.approx(0.3, abs=1e-6)
    assert abs(found @ right) / np.linalg.norm(right) == pytest.approx(1, abs=1e-9)


def test_the_slow_mode_is_a_perron_vector():
    matrices = np.random.default_rng(0).uniform(size=(4, N, N))
    vectors = np.ones((4, N))
    for _ in range(500):
        vectors = np.einsum("tij,tj->ti", matrices, vectors)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(slow_mode.perron_vectors(matrices), vectors, rtol=1e-9)


def test_designs_differ_by_their_discounts(tmp_path):
    tables = []
    for design in slow_mode.DESIGNS:
        slow_mode.main(design, N, 2, 2, 300, GAMMA, 8, 0.01, 0.1, tmp_path / f"{design}.csv")
        tables.append(pd.read_csv(tmp_path / f"{design}.csv"))
        assert tables[-1][["slow", "ones"]].stack().between(0, 1 + ROUNDING).all()
    assert (tables[0]["identity"] != tables[1]["identity"]).all()
