"""What the study's rules go through: variants of pretraining, places where they are tried, and controls there."""

PLACE = ("family", "states", "actions", "discount")
YARDSTICKS = ("lspi", "lspi_mean", "smoothed", "theta_td")  # On batches; besides, what agents alone have.
METHODS = (*YARDSTICKS, "posterior", "q_learning", "sarsa", "uniform")
LIMITS = "exact_seen exact_unseen exact_as_seen exact_as_unseen random_error random_advantage aligned_advantage".split()
LIMITS += "random_sign quarter_error half_error".split()


def variants(config: dict) -> dict[str, dict]:
    """Each variant of pretraining by its name: the main one but for what it changes.  ``config`` is the whole one."""
    own, found = config["control"], {}
    for one in own["variants"]:
        tasks = {"tasks": own["tasks"] if found else own["main_tasks"]}
        found[one["name"]] = own["main"] | tasks | {key: one[key] for key in one if key != "name"}
    return found


def snapshots(config: dict) -> list[int]:
    """Numbers of tasks at which weights are kept: those that are set, and at which any variant ends."""
    return sorted({*config["control"]["snapshots"], *(one["tasks"] for one in variants(config).values())})


def places(config: dict) -> dict[str, dict]:
    """Each place by its name: family, states, actions and discount."""
    own = config["control"]
    return {one["name"]: {key: (own["main"] | one)[key] for key in PLACE} for one in own["places"]}


def but_for(variants: dict[str, dict], first: str, *keys: str) -> list[str]:
    """Variants that are the first one but for some keys, and for the number of tasks."""
    same = [key for key in variants[first] if key not in (*keys, "tasks")]
    return [name for name, one in variants.items() if all(one[key] == variants[first][key] for key in same)]


def tried(config: dict, place: str) -> list[str]:
    """Variants that are tried in a place: those with as many pairs, and but for the first place with the main numbers
    of layers and policies.  First come those that were pretrained for it."""
    where, every = places(config), variants(config)
    at, shared = where[place], () if place == next(iter(where)) else ("depth", "policies")
    among = but_for(every, next(iter(every)), *({*config["control"]["main"]} - {*shared}))
    fits = [name for name in among if all(every[name][key] == at[key] for key in ("states", "actions"))]
    return sorted(fits, key=lambda name: any(every[name][key] != at[key] for key in at))


def check(config: dict) -> None:
    """Refuse variants and places that cannot be tried; ValueError."""
    every, where, acting = variants(config), places(config), config["control"]["online"]["variants"]
    for name in [one for one in every if one in METHODS]:
        raise ValueError(f"Config: control.variants has the name {name!r}, which is a yardstick's; give another.")
    for name in [one for one in every if every[one]["tasks"] > (most := config["control"]["main_tasks"])]:
        raise ValueError(f"Config: control.variants gives {name!r} more tasks than the first has; give at most {most}.")
    for place in [one for one in where if not tried(config, one)]:
        raise ValueError(f"Config: control.places has {place!r}, whose states and actions no variant has; add one.")
    for name in [one for one in every if not any(one in tried(config, place) for place in where)]:
        raise ValueError(f"Config: control.variants has {name!r}, whose states and actions no place has; add one.")
    can = tried(config, next(iter(where)))
    for name in [one for one in acting if one not in can]:
        raise ValueError(f"Config: control.online.variants has {name!r}; choose from {', '.join(can)}.")
    if next(iter(every)) not in acting:
        raise ValueError(f"Config: control.online.variants lacks the first variant, {next(iter(every))!r}; add it.")
