"""What the study's rules go through: long runs, and readings of what the paper leaves open."""

import itertools

# Our readings of what the configuration has no key for.
OURS = {"parameters": "theta", "layers": "looped", "clip": 0, "precision": "float64", "corner": "drawn", "skip": False}


def courses(config: dict) -> list[str]:
    """Algorithm and environment of each setting that is pretrained far beyond the paper's number of tasks."""
    return [f"{algo}-{env}" for algo in config["algos"] for env in config["envs"]]


def parts(config: dict) -> dict[str, list[str]]:
    """Tables that ``course`` and ``phase`` are joined from, each a setting or trial, without endings."""
    plane = config["emergence"]["phase"]
    trials = itertools.product(plane["states"], range(plane["seeds"]))
    return {
        "course": [f"course/{course}" for course in courses(config)],
        "phase": [f"phase/{states}/{seed}" for states, seed in trials],
    }


def readings(config: dict) -> dict[str, dict]:
    """Fields of ``readings.Reading`` for each reading, by its name: ours but for what it changes.

    ``config`` is the whole configuration, with the study's settings under its name.
    """
    ours = OURS | {"learning_rate": config["learning_rate"]}
    ours |= {key: config["readings"][key] for key in ("scaled_attention", "initial_gain")}
    return {
        one["name"]: ours | {key: value for key, value in one.items() if key != "name"}
        for one in config["emergence"]["readings"]
    }
