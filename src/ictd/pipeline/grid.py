"""The grid of runs that a configuration spans."""

import math
import re
from bisect import bisect_right
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


def algos_together(config: dict, cores: int | None) -> bool:
    """Whether one job pretrains by all algorithms, and one looks at all by the theory: where there are fewer cores than
    settings, unless ``seeds_per_job`` is a number."""
    return config["seeds_per_job"] == "auto" and (cores or 1) < len({cell.setting for cell in cells(config)})


def seed_ranges(config: dict, seeds: int, runs: int, cores: int | None, files: Iterable[Path]) -> list[str]:
    """Ranges "first-last" of seeds, one a job, as ``seeds_in_a_job`` and ``seed_groups`` have them.

    ``files`` are those of finished ranges, which they are named after.
    """
    size = seeds_in_a_job(config["seeds_per_job"], seeds, runs, cores)
    return seed_groups(seeds, size, [file.stem for file in files])


def seeds_in_a_job(wanted: int | str, seeds: int, runs: int, cores: int | None) -> int:
    """How many seeds one job takes: the number wanted, or for "auto" as many as keep all cores busy.

    ``seeds`` is the number of them, ``runs`` how many cells or the like have these seeds, and ``cores`` is None where
    it is not known.
    """
    if wanted != "auto":
        return wanted
    jobs_a_run = math.ceil((cores or 1) / max(runs, 1))
    return max(1, seeds // jobs_a_run)


def seed_groups(seeds: int, size: int, finished: list[str]) -> list[str]:
    """Ranges "first-last" that seeds are cut into, one a job: those of finished runs, and at most ``size`` in the gaps.

    So more seeds, or jobs of another size, do not repeat what is there.  Of ranges that start alike, the one that most
    cells have is kept, and of those the longest.
    """
    named = [tuple(map(int, name.split("-"))) for name in finished if re.fullmatch(r"\d+-\d+", name, re.ASCII)]
    ranges = Counter((first, last) for first, last in named if first <= last)
    best = sorted(ranges, key=lambda bounds: (ranges[bounds], bounds[1]))
    stops = {first: last + 1 for first, last in best if last < seeds}
    starts = sorted(stops)
    groups, first = [], 0
    while first < seeds:
        later = starts[bisect_right(starts, first) :][:1]
        stop = stops.get(first) or min(first + size, seeds, *later)
        groups.append(f"{first}-{stop - 1}")
        first = stop
    return groups
