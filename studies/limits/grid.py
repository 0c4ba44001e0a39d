"""What the study's rules go through."""

import itertools

KINDS = ("uniform", "steps", "last_row", "rewards", "heads")  # The last is of uniform tasks, with a second head.
GAP = ["lstd", "pseudo_steps"]  # Between which the gap is: LSTD with a ridge, and with pseudo-steps of the mean chain.
LEAST = 1e-20  # A mean MSVE that counts as none.


def forms(added: list[int]) -> list[str]:
    """Forms of the Transformer: with a second head for each number that is added to its divisor, the first unsaid."""
    return ["alone", "one", "heads", *(f"heads-{number}" for number in added[1:])]


def parts(config: dict) -> list[str]:
    """Tables that the study's are joined from, without endings; ``config`` is the whole configuration."""
    own, names = config["limits"], ("rows", "spectrum")
    settings = itertools.product(config["envs"], own["descend"]["states"], own["descend"]["depths"], names)
    trials = {"course": range(own["course"]["seeds"]), "fits": KINDS}
    trials["forms"] = ["yardsticks", *forms(own["forms"]["added"])]
    descends = [f"descend/{env}-{states}-{depth}/{name}" for env, states, depth, name in settings]
    return [*descends, *(f"{name}/{trial}" for name, of in trials.items() for trial in of)]
