"""What the study's rules go through."""

import itertools

FORMS = ("yardsticks", "alone", "one", "empty", "heads")
KINDS = ("uniform", "steps", "last_row", "rewards")
LEAST = 1e-20  # A mean MSVE that counts as none.


def parts(config: dict) -> list[str]:
    """Tables that the study's are joined from, without endings; ``config`` is the whole configuration."""
    own, names = config["limits"], ("rows", "spectrum")
    settings = itertools.product(config["envs"], own["descend"]["states"], own["descend"]["depths"], names)
    trials = {"course": range(own["course"]["seeds"]), "forms": FORMS, "fits": KINDS}
    descends = [f"descend/{env}-{states}-{depth}/{name}" for env, states, depth, name in settings]
    return [*descends, *(f"{name}/{trial}" for name, of in trials.items() for trial in of)]
