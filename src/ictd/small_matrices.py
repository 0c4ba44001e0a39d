"""Products of small matrices, as kernels that other kernels call.

The numbers of terms and columns of a product are ``kernels.size`` tuples, which the compiler knows.  A sum has its
terms in ascending order of the index j, starts with the entry that it is added to, and has the precision of the
matrices.  No output overlaps an input.  Matrices may be transposed views.

The order of the loops depends on the number of columns, and does not change a sum.  With at most ``UNROLLED`` columns,
the innermost loop sums into a number, the compiler unrolls all loops, and several sums stay in registers.  With more
columns, the innermost loop runs along a row.
"""

from ictd.kernels import kernel

# Largest number of columns for which the compiler unrolls all loops, which is slower for longer rows.
UNROLLED = 20


@kernel(noalias=True, inline=True)
def add_vector_product(terms, columns, a, b, out):
    """Add a b to out (columns,), for a (terms,) and b (terms, columns).

    Along a row, four terms are added at once, because loading and storing the sums takes as long as computing four
    terms.  Four terms with factors a_j of zero are skipped: most states of Boyan's chain have two successors.
    """
    if len(columns) > UNROLLED:
        for j in range(0, len(terms) - 3, 4):
            if a[j] != 0.0 or a[j + 1] != 0.0 or a[j + 2] != 0.0 or a[j + 3] != 0.0:
                for s in range(len(columns)):
                    first = out[s] + a[j] * b[j, s] + a[j + 1] * b[j + 1, s]
                    out[s] = first + a[j + 2] * b[j + 2, s] + a[j + 3] * b[j + 3, s]
        for j in range(len(terms) - len(terms) % 4, len(terms)):
            for s in range(len(columns)):
                out[s] += a[j] * b[j, s]
    else:
        for s in range(len(columns)):
            total = out[s]
            for j in range(len(terms)):
                total += a[j] * b[j, s]
            out[s] = total


@kernel(noalias=True)
def add_outer_products(n, a, b, out):
    """Add a_l' b_l to out (k, k) for each row of a and b (L, k), from the last row to the first.

    Four rows are added at once, as in ``add_vector_product``.
    """
    for m in range(len(a) - 1, 2, -4):
        for i in range(len(n)):
            for s in range(len(n)):
                later = out[i, s] + a[m, i] * b[m, s] + a[m - 1, i] * b[m - 1, s]
                out[i, s] = later + a[m - 2, i] * b[m - 2, s] + a[m - 3, i] * b[m - 3, s]
    for m in range(len(a) % 4 - 1, -1, -1):
        for i in range(len(n)):
            for s in range(len(n)):
                out[i, s] += a[m, i] * b[m, s]
