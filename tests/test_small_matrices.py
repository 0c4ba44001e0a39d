"""Products of small matrices, compared with NumPy's."""

import numpy as np
import pytest
from tolerances import ROUNDING

from ictd import small_matrices
from ictd.kernels import size


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 2), (2, 7, 5), (5, 4, 1), (3, 9, 24)])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
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


def test_sums_have_the_precision_of_the_matrices():
    """In double precision, the terms 1e8, 1 and -1e8 sum to 1; in single precision, to 0."""
    for precision, expected in ((np.float64, 1), (np.float32, 0)):
        a, b, out = np.array([[1e8, 1, -1e8]], precision), np.ones((3, 1), precision), np.empty((1, 1), precision)
        small_matrices.multiply(size(3), size(1), a, b, out)
        assert out[0, 0] == expected


def test_transpose_equals_numpy():
    a, out = np.arange(6.0).reshape(2, 3), np.empty((3, 2))
    small_matrices.transpose(a, out)
    np.testing.assert_array_equal(out, a.T)
