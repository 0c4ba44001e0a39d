"""The parts of tables, the long runs, and the readings of a configuration."""

import itertools

from ictd.pipeline.grid import cells

# Our readings of open questions of the paper for which the configuration has no key.
OURS = {"parameters": "theta", "layers": "looped", "clip": 0, "precision": "float64", "corner": "drawn", "skip": False}


def courses(config: dict) -> list[str]:
    """Names ALGO-ENV of the long runs."""
    return [f"{algo}-{env}" for algo in config["algos"] for env in config["envs"]]


def joined_tables(config: dict, phase_seeds: list[str]) -> dict[str, list[str]]:
    """Names of the parts of each table that is concatenated; ``phase_seeds`` are ranges of seeds."""
    study = config["emergence"]
    best, designs = study["best_numbers"], study["slow_mode"]["designs"]
    best_settings = itertools.product(config["envs"], best["states"])
    return {
        **{table: [f"{table}/{cell}" for cell in cells(config)] for table in ("measures", "exchanged", "trained")},
        "best_numbers": [f"best_numbers/{env}-{states}" for env, states in best_settings],
        **{table: [f"{table}/{design}" for design in designs] for table in ("slow_mode", "best_directions")},
        "dynamics": [f"dynamics/{algo}" for algo in config["algos"]],
        "course": [f"course/{course}" for course in courses(config)],
        "phase": [f"phase/{seeds}" for seeds in phase_seeds],
    }


def discounts(config: dict, states: int) -> list[float]:
    """Discounts for which the best numbers are computed: all discounts for the main number of states."""
    return config["emergence"]["best_numbers"]["discounts"] if states == config["states"][0] else [config["discount"]]


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
