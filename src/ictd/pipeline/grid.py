"""The grid of runs that a configuration spans."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Cell(NamedTuple):
    """One setting of the grid with one algorithm.  A cell and a seed determine a run."""

    algo: str
    env: str
    states: int
    depth: int

    def __str__(self) -> str:
        return f"{self.algo}-{self.setting}"

    @property
    def setting(self) -> str:
        """The cell without its algorithm, "env-states-depth"."""
        return f"{self.env}-{self.states}-{self.depth}"

    @classmethod
    def parse(cls, name: str) -> "Cell":
        """Make the cell from its name, such as "td-boyan-5-30"."""
        return cls(*parse_name(name))


def parse_name(name: str) -> tuple:
    """Split the name of a cell or setting, such as "boyan-5-30"; numbers become integers."""
    return tuple(int(part) if part.isdecimal() else part for part in name.split("-"))


# Largest number of seeds in a job with seeds_per_job: auto.  The memory of a job grows with the number of its seeds.
MOST_SEEDS = 20
CELL = list(Cell._fields)  # Columns that identify a cell in tables.


def main_setting(config: dict) -> dict:
    """The main setting, a dict of env, states and depth: the first value of each list."""
    return {"env": config["envs"][0], "states": config["states"][0], "depth": config["depths"][0]}


def evaluation_envs(config: dict) -> list[str]:
    """The environments of the unseen tasks; the first decides claims."""
    named = config["readings"]["evaluation_env"]
    return [named] if isinstance(named, str) else named


def cells(config: dict, vary: str | None = None) -> list[Cell]:
    """List the cells of the grid: the main setting, and the settings that change one of its values.

    Parameters
    ----------
    config : dict, a checked configuration
    vary : str, optional
        "main" for the cells of the main setting only; "envs", "states" or "depths" for the cells that change this value
        only; by default all cells.
    """
    main = main_setting(config)
    settings = [main] if vary in (None, "main") else []
    for name, key in (("depth", "depths"), ("states", "states"), ("env", "envs")):
        if vary in (None, key):
            settings += [{**main, name: value} for value in config[key][1:]]
    return [Cell(algo, **setting) for setting in settings for algo in config["algos"]]


def flat_settings(settings: dict, section: str = "") -> dict:
    """Values of settings by their keys, joined by dots; a list is a text."""
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found |= flat_settings(value, f"{section}{key}.")
        else:
            found[section + key] = str(value) if isinstance(value, list | dict) else value
    return found


def seed_ranges(wanted: int | str, seeds: int, cells: int, cores: int, files: Iterable[Path]) -> list[str]:
    """Divide the seeds into ranges "first-last", one for each job.

    Ranges of finished runs are kept, so that a change of the number of seeds or of the size of jobs repeats no run.  If
    several finished ranges start at the same seed, the one with the most files is kept; in a tie, the longest one.

    Parameters
    ----------
    wanted : int or "auto"
        Number of seeds in a job.  "auto" takes the largest number, up to ``MOST_SEEDS``, with at least one job for each
        core.
    seeds : int, number of seeds
    cells : int, number of cells or settings; each of them has jobs for all seeds
    cores : int, number of cores
    files : iterable of Path
        Files of finished runs; the name of a file is its range.

    Returns
    -------
    list of str, the ranges in ascending order
    """
    if wanted == "auto":
        size = min(MOST_SEEDS, max(1, seeds // math.ceil(cores / cells)))
    else:
        size = wanted
    matches = (re.fullmatch(r"(\d+)-(\d+)", file.stem) for file in files)
    finished = Counter((int(match[1]), int(match[2])) for match in matches if match)  # Number of files of each range.
    # Of ranges with the same first seed, the last one in this order remains.
    by_number = sorted(finished, key=lambda pair: (finished[pair], pair[1]))
    last_seed = {first: last for first, last in by_number if first <= last < seeds}
    ranges, first = [], 0
    while first < seeds:
        next_finished = min((start for start in last_seed if start > first), default=seeds)
        last = last_seed.get(first, min(first + size, next_finished, seeds) - 1)
        ranges.append(f"{first}-{last}")
        first = last + 1
    return ranges


def seeds_of(text: str) -> range:
    """Parse the seeds of a range "first-last"; a text that is not a range raises a ValueError."""
    first, last = map(int, text.split("-")) if re.fullmatch(r"\d+-\d+", text) else (1, 0)
    if first > last or last >= 2**63:
        raise ValueError(f"seeds is {text!r}; give first-last, such as 0-19.")
    return range(first, last + 1)


def variants(main: dict, changes: list[dict]) -> dict[str, dict]:
    """Settings by name: for each of some changes, which have a key "name", the main settings with these changes.

    Raises a ValueError if two changes have the same name.
    """
    found = {change["name"]: main | {key: change[key] for key in change if key != "name"} for change in changes}
    if len(found) < len(changes):
        raise ValueError(f"Config: {[change['name'] for change in changes]} has a name twice; give each its own name.")
    return found


def log_spaced_integers(largest: int, number: int) -> np.ndarray:
    """Make an ascending int array of at most ``number`` log-spaced integers from 1 to ``largest``.

    Numbers that round to the same integer are merged.  If ``number`` is 1, the array has ``largest`` only.
    """
    return np.unique(np.geomspace(largest, 1, number).round().astype(np.int64))
