"""Variants of pretraining, places where they are tried, methods, and control experiments of the study."""

# What identifies a place.
PLACE = ("family", "states", "actions", "discount")
# Baselines on batches of transitions, and all methods without pretraining, including methods that only act.
BASELINES = ("lspi", "lspi_mean", "smoothed", "theta_td", "rewards")
METHODS = (*BASELINES, "posterior", "q_learning", "sarsa", "uniform")
# Suffixes of the names of methods for each format of the Transformer's prompt.
FORMATS = {"": "a column for each transition", " grouped": "a column for each observed pair"}
# Control experiments, in which a method's estimates are partly exact (``partly_exact``).
CONTROLS = (
    "exact_unseen",
    "exact_as_unseen",
    "random_advantage",
    "aligned_advantage",
    "half_error",
)


def variants(config: dict) -> dict[str, dict]:
    """Settings of each variant of pretraining, by its name; ``config`` is the whole configuration.

    A variant has the main settings and its own changes.  The first variant has ``main_tasks`` tasks, all others have
    ``tasks``.
    """
    control = config["control"]
    by_name = {}
    for changes in control["variants"]:
        tasks = control["tasks"] if by_name else control["main_tasks"]
        variant = control["main"] | {"tasks": tasks} | changes
        by_name[variant.pop("name")] = variant
    return by_name


def snapshots(config: dict) -> list[int]:
    """Numbers of tasks at which snapshots are taken: ``snapshots`` of the settings, and ``tasks`` of all variants."""
    return sorted({*config["control"]["snapshots"], *(variant["tasks"] for variant in variants(config).values())})


def places(config: dict) -> dict[str, dict]:
    """Family, states, actions and discount of each place, by its name."""
    control = config["control"]
    by_name = {}
    for changes in control["places"]:
        place = control["main"] | changes
        by_name[place["name"]] = {key: place[key] for key in PLACE}
    return by_name


def equal_except(variants: dict[str, dict], first: str, *keys: str) -> list[str]:
    """Names of the variants that differ from the first variant at most in some keys and in the number of tasks."""
    main = variants[first]
    same = [key for key in main if key not in (*keys, "tasks")]
    return [name for name, variant in variants.items() if all(variant[key] == main[key] for key in same)]


def tried(config: dict, place: str) -> list[str]:
    """Names of the variants that are evaluated in a place; variants pretrained for the place come first.

    These variants have the place's numbers of states and actions.  In all places except the first, they also have the
    main depth, policies and prompts.
    """
    all_variants, all_places = variants(config), places(config)
    settings = all_places[place]
    may_differ = {*config["control"]["main"]}
    if place != next(iter(all_places)):
        may_differ -= {"depth", "policies", "prompts"}
    candidates = equal_except(all_variants, next(iter(all_variants)), *may_differ)
    fitting = [name for name in candidates if _agree(all_variants[name], settings, ("states", "actions"))]
    return sorted(fitting, key=lambda name: not _agree(all_variants[name], settings, PLACE))


def _agree(variant: dict, place: dict, keys: tuple[str, ...]) -> bool:
    return all(variant[key] == place[key] for key in keys)


def check(config: dict) -> None:
    """Refuse variants and places that cannot be tried, with a ValueError."""
    all_variants, all_places = variants(config), places(config)
    first, home = next(iter(all_variants)), next(iter(all_places))
    most = config["control"]["main_tasks"]
    tried_in = {place: tried(config, place) for place in all_places}
    for name, variant in all_variants.items():
        if name in METHODS:
            raise ValueError(f"Config: control.variants has the name {name!r}, which is a baseline's; give another.")
        if variant["tasks"] > most:
            problem = f"control.variants gives {name!r} more tasks than the first has"
            raise ValueError(f"Config: {problem}; give at most {most}.")
    for place, names in tried_in.items():
        if not names:
            raise ValueError(f"Config: control.places has {place!r}, whose states and actions no variant has; add one.")
    for name in all_variants:
        if not any(name in names for names in tried_in.values()):
            raise ValueError(f"Config: control.variants has {name!r}, whose states and actions no place has; add one.")
    acting = config["control"]["online"]["variants"]
    for name in acting:
        if name not in tried_in[home]:
            raise ValueError(f"Config: control.online.variants has {name!r}; choose from {', '.join(tried_in[home])}.")
    if first not in acting:
        raise ValueError(f"Config: control.online.variants lacks the first variant, {first!r}; add it.")
