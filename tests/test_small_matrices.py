"""Products of small matrices, compared with NumPy's."""

import numpy as np
import pytest
from tolerances import ROUNDING

from ictd import small_matrices
from ictd.kernels import size


@pytest.mark.parametrize(("terms", "columns"), [(7, 5), (9, 24)])
def test_products_equal_numpy(terms, columns):
    rng = np.random.default_rng(0)
    a, b, out = (rng.normal(size=axes) for axes in (terms, (terms, columns), columns))
    if terms > 7:
        a[:4] = 0.0  # Long rows skip four zeros at once.
    expected = a @ b + out
    small_matrices.add_vector_product(size(terms), size(columns), a, b, out)
    np.testing.assert_allclose(out, expected, atol=ROUNDING)


@pytest.mark.parametrize("rows", [0, 1, 4, 7])
def test_outer_products_equal_numpy(rows):
    rng = np.random.default_rng(0)
    a, b, out = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 3)), rng.normal(size=(3, 3))
    expected = a.T @ b + out
    small_matrices.add_outer_products(size(3), a, b, out)
    np.testing.assert_allclose(out, expected, atol=ROUNDING)
