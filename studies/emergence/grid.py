"""The long runs, the plane of states and depths, and the readings that a configuration spans."""

# Our readings of what the paper leaves open and the configuration has no key for.
OURS = {"parameters": "theta", "layers": "looped", "clip": 0, "precision": "float64", "corner": "drawn", "skip": False}


def courses(config: dict) -> list[str]:
    """Names ALGO-ENV of the long runs."""
    return [f"{algo}-{env}" for algo in config["algos"] for env in config["envs"]]


def joined_tables(config: dict, phase_seeds: list[str]) -> dict[str, list[str]]:
    """Names of the tables that "course" and "phase" are concatenated from; ``phase_seeds`` are ranges of seeds."""
    return {
        "course": [f"course/{course}" for course in courses(config)],
        "phase": [f"phase/{seeds}" for seeds in phase_seeds],
    }


def readings(config: dict) -> dict[str, dict]:
    """Fields of ``readings.Reading`` for each reading, by its name: ours, with the reading's changes.

    ``config`` is the whole configuration, with the study's settings under "emergence".
    """
    ours = OURS | {"learning_rate": config["learning_rate"]}
    ours |= {key: config["readings"][key] for key in ("scaled_attention", "initial_gain")}
    fields = {}
    for entry in config["emergence"]["readings"]:
        changes = {key: value for key, value in entry.items() if key != "name"}
        fields[entry["name"]] = ours | changes
    return fields
