"""Tolerances of the tests, with reasons."""

# The same algebra in another order: rounding errors only.
ROUNDING = 1e-12
# Weights after hundreds of updates by two engines.
ENGINES = 1e-10
# Central finite differences with steps of 1e-6.
DIFFERENCES = 1e-6
# An alias table's probabilities: 32-bit thresholds.
ALIAS = 2.0**-31
# Allowed error of a Monte Carlo mean, in standard errors.  Seeds are fixed, so results do not change between runs.
STANDARD_ERRORS = 5.0
