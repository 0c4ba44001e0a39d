"""What the study's rules go through."""

KINDS = ("uniform", "steps", "last_row", "rewards", "heads")  # The last is of uniform tasks, with a second head.
GAP = ["lstd", "pseudo_steps"]  # Between which the gap is: LSTD with a ridge, and with pseudo-steps of the mean chain.
LEAST = 1e-20  # A mean MSVE that counts as none.


def forms(added: list[int]) -> list[str]:
    """Forms of the Transformer: one head, or two with each number that is added to a divisor, their first unsaid."""
    return ["alone", "one", f"one-{added[0]}", "heads", *(f"heads-{number}" for number in added[1:])]
