"""Products of small matrices, compared with NumPy's."""

import numpy as np
import pytest
from tolerances import ROUNDING

from ictd import small_matrices
from ictd.kernels import size


@pytest.mark.parametrize("shape", [(2, 7, 5), (3, 9, 24)])
@pytest.mark.parametrize(("added", "transposed"), [(False, True), (True, False)])
def test_products_equal_numpy(shape, added, transposed):
    rows, terms, columns = shape
    rng = np.random.default_rng(0)
    a, b, out = (rng.normal(size=axes) for axes in ((rows, terms), (terms, columns), (rows, columns)))
    if terms > 7:
        a[:, :4] = 0.0  # Long rows skip four zeros at once.
    expected = a @ b + out if added else a @ b
    product = small_matrices.add_product if added else small_matrices.multiply
    product(size(terms), size(columns), np.ascontiguousarray(a.T).T if transposed else a, b, out)
    np.testing.assert_allclose(out, expected, atol=ROUNDING)


@pytest.mark.parametrize("rows", [0, 1, 4, 7])
def test_outer_products_equal_numpy(rows):
    rng = np.random.default_rng(0)
    a, b, out = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 3)), rng.normal(size=(3, 3))
    expected = a.T @ b + out
    small_matrices.add_outer_products(size(3), a, b, out)
    np.testing.assert_allclose(out, expected, atol=ROUNDING)
