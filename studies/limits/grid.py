"""Names and numbers that several steps of the study share."""

# Task distributions on which Transformers are trained.  "heads" has uniform tasks, and a second head.
KINDS = ("uniform", "steps", "last_row", "rewards", "heads")
# The two baselines that define the gap: LSTD with a ridge, and LSTD with pseudo-counts of the mean chain.
GAP = ["lstd", "pseudo_counts"]
# Descents end if the MSVE is below this value; smaller values are not distinguished.
LEAST_MSVE = 1e-20


def forms(added: list[int]) -> list[str]:
    """Names of the forms of the Transformer.

    "alone" has one head for each context length, "one" one head for all lengths, and "heads" a second head that divides
    by m + k, where k is the first number of ``added``.  "one-k" has one head, which divides by m + k, and "heads-k" has
    two heads; the second head divides by m + k.
    """
    return ["alone", "one", f"one-{added[0]}", "heads", *(f"heads-{number}" for number in added[1:])]
