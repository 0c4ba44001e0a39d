"""The grid of runs that a configuration spans."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Cell(NamedTuple):
    """A setting of the paper's grid and an algorithm.  A cell and a seed determine a run."""

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
        algo, env, states, depth = name.split("-")
        return cls(algo, env, int(states), int(depth))


# Most seeds of a job with seeds_per_job: auto.  The memory of a job grows with the number of its seeds.
MOST_SEEDS = 20
CELL = list(Cell._fields)  # Columns of tables that identify a cell.


def main_setting(config: dict) -> dict:
    """The main setting, a dict of env, states and depth: the first value of each list."""
    return {"env": config["envs"][0], "states": config["states"][0], "depth": config["depths"][0]}


def cells(config: dict, vary: str | None = None) -> list[Cell]:
    """List the cells of a grid: those of the main setting, and those that change one of its values.

    Parameters
    ----------
    config : dict, a checked configuration
    vary : str, optional
        "main" for the cells of the main setting only; "envs", "states" or "depths" for those that change this value.
    """
    main = main_setting(config)
    settings = [main] if vary in (None, "main") else []
    for name, key in (("depth", "depths"), ("states", "states"), ("env", "envs")):
        if vary in (None, key):
            settings += [{**main, name: value} for value in config[key][1:]]
    return [Cell(algo, **setting) for setting in settings for algo in config["algos"]]


def seed_ranges(wanted: int | str, seeds: int, cells: int, cores: int, files: Iterable[Path]) -> list[str]:
    """Divide the seeds into ranges "first-last", one for each job.

    Ranges of finished runs are kept, so that runs are not repeated when the number of seeds or the size of jobs
    changes.  If finished ranges have the same first seed, the range with the most files is kept, and among those with
    equally many files the longest.

    Parameters
    ----------
    wanted : int or "auto"
        Number of seeds in a job.  "auto" is the largest number, up to ``MOST_SEEDS``, that keeps all cores busy.
    seeds : int, number of seeds
    cells : int, number of cells, or of settings, that have these seeds
    cores : int, number of cores
    files : iterable of Path
        Files of finished runs, named after their ranges.

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
    # The last range with a first seed overrides the others.
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
