"""The grid of runs that a configuration spans."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Cell(NamedTuple):
    """A setting of the paper's grid with an algorithm; with a seed it makes a run."""

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
        """The cell that ``str`` names."""
        algo, env, states, depth = name.split("-")
        return cls(algo, env, int(states), int(depth))


CELL = list(Cell._fields)  # The columns that name a cell in tables.


def main_setting(config: dict) -> dict:
    """env, states and depth of the main setting, the first value of each list."""
    return {"env": config["envs"][0], "states": config["states"][0], "depth": config["depths"][0]}


def cells(config: dict, vary: str | None = None) -> list[Cell]:
    """Cells of a checked configuration's grid: the main setting and those that change one of its values.

    With ``vary``, they are only those that change "envs", "states" or "depths", or the main setting's for "main".
    """
    main = main_setting(config)
    settings = [main] if vary in (None, "main") else []
    for name, key in (("depth", "depths"), ("states", "states"), ("env", "envs")):
        if vary in (None, key):
            settings += [{**main, name: value} for value in config[key][1:]]
    return [Cell(algo, **setting) for setting in settings for algo in config["algos"]]


def seed_ranges(wanted: int | str, seeds: int, cells: int, cores: int, files: Iterable[Path]) -> list[str]:
    """Ranges "first-last" that the seeds are cut into, one a job.

    Ranges of finished runs are kept, so that more seeds, or jobs of another size, do not repeat what is there.  Of
    ranges that start alike, the one that most cells have is kept, and of those the longest.

    Parameters
    ----------
    wanted : number of seeds a job, or "auto" for as many as keep all cores busy
    seeds : number of seeds
    cells : number of cells, or of settings, that have these seeds
    cores : number of cores
    files : files of finished runs, whose names are their ranges
    """
    size = max(1, seeds // math.ceil(cores / cells)) if wanted == "auto" else wanted
    named = (re.fullmatch(r"(\d+)-(\d+)", file.stem) for file in files)
    finished = Counter((int(found[1]), int(found[2])) for found in named if found)
    by_number = sorted(finished, key=lambda one: (finished[one], one[1]))
    last_of = {first: last for first, last in by_number if first <= last < seeds}
    ranges, first = [], 0
    while first < seeds:
        following = min((start for start in last_of if start > first), default=seeds)
        last = last_of.get(first, min(first + size, following, seeds) - 1)
        ranges.append(f"{first}-{last}")
        first = last + 1
    return ranges


def seeds_of(text: str) -> range:
    """Seeds of a range "first-last"; ValueError if the text is not such a range."""
    first, last = map(int, text.split("-")) if re.fullmatch(r"\d+-\d+", text) else (1, 0)
    if first > last or last >= 2**63:
        raise ValueError(f"seeds is {text!r}; give first-last, such as 0-19.")
    return range(first, last + 1)
