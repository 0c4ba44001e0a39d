"""The grid of runs that a configuration spans."""

import re
from collections import Counter
from typing import NamedTuple


class Cell(NamedTuple):
    """One setting of the paper's grid; with a seed it makes a run."""

    algo: str
    env: str
    states: int
    depth: int

    def __str__(self) -> str:
        return f"{self.algo}-{self.env}-{self.states}-{self.depth}"

    @classmethod
    def parse(cls, name: str) -> "Cell":
        """The cell that ``str`` names."""
        algo, env, states, depth = name.split("-")
        return cls(algo, env, int(states), int(depth))


CELL = list(Cell._fields)  # The columns that name a cell in tables.


def cells(config: dict, vary: str | None = None) -> list[Cell]:
    """Cells of the grid: the main setting and those that change one of its values.

    Parameters
    ----------
    config : a checked configuration
    vary : "envs", "states" or "depths", optional
        Only the cells that change this one; the main setting's cells when it is "main"; all when not given.
    """
    main = {"envs": config["envs"][0], "states": config["states"][0], "depths": config["depths"][0]}
    settings = [main] if vary in (None, "main") else []
    for key in ("depths", "states", "envs"):
        if vary in (None, key):
            settings += [{**main, key: value} for value in config[key][1:]]
    return [Cell(algo, s["envs"], s["states"], s["depths"]) for s in settings for algo in config["algos"]]


def seed_groups(seeds: int, size: int, finished: list[str]) -> list[str]:
    """Ranges "first-last" that seeds are cut into, one a job: those of finished runs, and at most ``size`` in the gaps.

    So more seeds, or jobs of another size, do not repeat what is there.  Of ranges that start alike, the one that most
    cells have is kept, and of those the longest.
    """
    ranges = Counter(tuple(map(int, name.split("-"))) for name in finished if re.fullmatch(r"\d+-\d+", name))
    best = sorted(ranges, key=lambda bounds: (ranges[bounds], bounds[1]))
    stops = {first: last + 1 for first, last in best if last < seeds}
    groups, first = [], 0
    while first < seeds:
        later = [start for start in stops if start > first]
        stop = stops.get(first) or min(first + size, seeds, *later)
        groups.append(f"{first}-{stop - 1}")
        first = stop
    return groups
