"""What the study's rules go through: variants of pretraining, places where they are tried, and controls there."""

LIMITS = "exact_seen exact_unseen exact_as_seen exact_as_unseen random_error random_advantage aligned_advantage".split()
LIMITS += "random_sign quarter_error half_error".split()


def variants(config: dict) -> dict[str, dict]:
    """Each variant of pretraining by its name: the main one but for what it changes.  ``config`` is the whole one."""
    own, found = config["control"], {}
    for one in own["variants"]:
        tasks = {"tasks": own["tasks"] if found else own["main_tasks"]}
        found[one["name"]] = own["main"] | tasks | {key: one[key] for key in one if key != "name"}
    return found


def places(config: dict) -> dict[str, dict]:
    """Each place by its name: family, states, actions and discount."""
    own, keys = config["control"], ("family", "states", "actions", "discount")
    return {one["name"]: {key: (own["main"] | one)[key] for key in keys} for one in own["places"]}


def tried(config: dict, place: str) -> list[str]:
    """Variants that can be tried in a place, as they have as many pairs: first those that were pretrained for it."""
    at, every = places(config)[place], variants(config)
    fits = [name for name, one in every.items() if all(one[key] == at[key] for key in ("states", "actions"))]
    return sorted(fits, key=lambda name: any(every[name][key] != at[key] for key in at))
