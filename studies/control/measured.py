"""Results of the study, by the names of methods."""

from pathlib import Path

import numpy as np

from ictd.storage import load_named
from studies.control.grid import equal_except

# Arrays of a file of ``offline``: first those with a row for each method, seed and number of tasks, then those of the
# place, and those of the run that the figure shows.
OFFLINE = ("method", "seed", "tasks", "parameter", "at_grid_end", "mean_value", "changes")
OFFLINE += ("error", "advantage_error", "cosine", "context_lengths", "optimal")
OFFLINE += ("run_transition", "run_q", "run_exact", "run_optimal", "run_kind", "run_share")
ONLINE = ("method", "rule", "seed", "choices", "regret", "steps")


class Offline:
    """Results of policy iteration in a place, from a file of the step ``offline``."""

    def __init__(self, path: Path):
        self.arrays = load_named(path, *OFFLINE)
        self.lengths = self.arrays["context_lengths"].tolist()
        self.methods = list(dict.fromkeys(self.arrays["method"]))

    def task_counts(self, method: str) -> list[int]:
        """Numbers of tasks after which a method is evaluated, ascending."""
        return sorted(set(self.arrays["tasks"][self.arrays["method"] == method].tolist()))

    def rows(self, name: str, method: str, tasks: float = np.inf) -> np.ndarray:
        """Rows (seeds, lengths, ...) of an array for one method, at its largest number of tasks up to ``tasks``."""
        last = max(number for number in self.task_counts(method) if number <= tasks)
        return self.arrays[name][(self.arrays["method"] == method) & (self.arrays["tasks"] == last)]

    def share(self, method: str, iteration: int = -1, tasks: float = np.inf) -> np.ndarray:
        """Value (seeds, lengths, N) of a method's policy, relative to those of the uniform and the optimal policy.

        The value is scaled so that its mean over processes is the share of the way from the uniform to the optimal
        policy.
        """
        optimal = self.arrays["optimal"]
        uniform = self.arrays["mean_value"][0, 0, 0]
        value = self.rows("mean_value", method, tasks)[:, :, iteration]
        return 1 - (optimal - value) / (optimal - uniform).mean()

    def first(self, variants: dict[str, dict]) -> str:
        """Name of the first variant in the configuration.

        It is the first in ``methods``, because ``variants`` is in alphabetical order here.
        """
        return next(name for name in self.methods if name in variants)

    def shares_by(self, key: str, variants: dict[str, dict]) -> tuple[list, list[np.ndarray]]:
        """Values of a key of variants, ascending, and the shares (seeds, lengths, N) of the variants with these values.

        The variants differ from the first variant only in this key and in the number of tasks.  All shares are those
        after the same number of tasks, the least number of these variants.  Variants without a snapshot up to then are
        left out.
        """
        first = self.first(variants)
        names = {variants[name][key]: name for name in [*equal_except(variants, first, key), first]}
        tasks = min(variants[name]["tasks"] for name in names.values())
        values = [value for value in sorted(names) if self.task_counts(names[value])[0] <= tasks]
        return values, [self.share(names[value], tasks=tasks) for value in values]


class Online:
    """Results of acting, from the file of the step ``online``."""

    def __init__(self, path: Path):
        self.arrays = load_named(path, *ONLINE)
        self.methods = list(dict.fromkeys(self.arrays["method"]))
        self.rules = list(dict.fromkeys(self.arrays["rule"]))

    def rows(self, name: str, method: str, rule: str) -> np.ndarray:
        """Rows (seeds, ...) of an array for a method with a rule, or with the only rule that the method has."""
        rows = self.arrays["method"] == method
        rules = self.arrays["rule"]
        if len(set(rules[rows])) > 1:
            rows = rows & (rules == rule)
        return self.arrays[name][rows]
