"""What the study measured, by the names of methods."""

from pathlib import Path

import numpy as np

from ictd.storage import load_named

OFFLINE = "method seed tasks parameter at_end worth changes error advantage_error cosine".split()
OFFLINE += "context_lengths optimal run_transition run_q run_exact run_optimal run_kind run_share".split()


class Offline:
    """Policy iteration in a place."""

    def __init__(self, path: Path):
        self.arrays = load_named(path, *OFFLINE)
        self.lengths, self.methods = self.arrays["context_lengths"].tolist(), list(dict.fromkeys(self.arrays["method"]))

    def counts(self, method: str) -> list[int]:
        """Numbers of tasks after which it was measured."""
        return sorted(set(self.arrays["tasks"][self.arrays["method"] == method].tolist()))

    def of(self, name: str, method: str, tasks: float = np.inf) -> np.ndarray:
        """An array's rows of a method (seeds, lengths, ...), after the most tasks that are at most ``tasks``."""
        last = max(one for one in self.counts(method) if one <= tasks)
        return self.arrays[name][(self.arrays["method"] == method) & (self.arrays["tasks"] == last)]

    def share(self, method: str, iteration: int = -1, tasks: float = np.inf) -> np.ndarray:
        """Value (seeds, lengths, N) of a policy; the mean over N is its share of the way from uniform to optimal."""
        optimal, uniform = self.arrays["optimal"], self.arrays["worth"][0, 0, 0]
        return 1 - (optimal - self.of("worth", method, tasks)[:, :, iteration]) / (optimal - uniform).mean()


class Online:
    """Agents that act."""

    def __init__(self, path: Path):
        self.arrays = load_named(path, "method", "rule", "seed", "choices", "regret", "steps")
        self.methods, self.rules = (list(dict.fromkeys(self.arrays[name])) for name in ("method", "rule"))

    def of(self, name: str, method: str, rule: str) -> np.ndarray:
        """An array's rows of a method (seeds, ...) by a rule, or by the only one that it has."""
        rows, rules = self.arrays["method"] == method, self.arrays["rule"]
        return self.arrays[name][rows & ((rules == rule) | (len(set(rules[rows])) == 1))]
