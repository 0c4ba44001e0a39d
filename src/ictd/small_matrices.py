"""Products of small matrices, as kernels that other kernels call.

The numbers of terms and columns of a product are ``kernels.size`` tuples, which the compiler knows; the number of rows
is that of the output.  A sum has its terms in ascending order of the index j, starts with its first term or with the
entry that it is added to, and has the precision of the matrices.  No output overlaps an input.  Matrices may be
transposed views.
"""

from ictd.kernels import kernel


@kernel(noalias=True)
def multiply(terms, columns, a, b, out):
    """Fill out (., columns) with a b, for a (., terms) and b (terms, columns)."""
    for i in range(out.shape[0]):
        for s in range(len(columns)):
            total = a[i, 0] * b[0, s]
            for j in range(1, len(terms)):
                total += a[i, j] * b[j, s]
            out[i, s] = total


@kernel(noalias=True)
def add_product(terms, columns, a, b, out):
    """Add a b to out (., columns), for a (., terms) and b (terms, columns)."""
    for i in range(out.shape[0]):
        for s in range(len(columns)):
            total = out[i, s]
            for j in range(len(terms)):
                total += a[i, j] * b[j, s]
            out[i, s] = total


@kernel(noalias=True)
def transpose(a, out):
    """Fill out with a'."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
