"""Tolerances of the tests, with reasons."""

# The same algebra in another order: rounding errors only.
ROUNDING = 1e-12
# Weights after hundreds of updates by two engines.
ENGINES = 1e-10
# Central finite differences with steps of 1e-6.
DIFFERENCES = 1e-6
# Least errors by two searches, relative: one ends at the first step that lowers the error by less than 1e-6.
SEARCH = 1e-5
# An alias table's probabilities: 32-bit thresholds.
ALIAS = 2.0**-31
# Allowed error of a Monte Carlo mean, in standard errors.  Seeds are fixed, so results do not change between runs.
STANDARD_ERRORS = 5.0
