"""How far apart two computations may be in the tests, and why."""

# The same algebra in another order: rounding alone.
ROUNDING = 1e-12
# Weights after hundreds of updates by two engines.
ENGINES = 1e-10
# Central finite differences with steps of 1e-6.
DIFFERENCES = 1e-6
# Least errors by two searches, relative: one ends at the first step that lowers the error by less than 1e-6.
SEARCH = 1e-5
# An alias table's probabilities: 32-bit thresholds.
ALIAS = 2.0**-31
# Standard errors that a Monte Carlo mean may be off; with fixed seeds, so a pass stays a pass.
STANDARD_ERRORS = 5.0
