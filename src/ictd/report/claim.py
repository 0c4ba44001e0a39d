"""A claim: a statistic with a threshold, and the verdict that follows.

What is claimed, by which statistic and with which threshold, stands in a file ``claims.toml``; the values
are computed.  Thresholds are ours where the paper's words give no number.  A pattern "emerges", or two are "similar",
when it holds more than half of the sum of squares (a squared cosine or correlation above one half); noise is "mild"
when its sum of squares is less than half of the pattern's; two are "at the same place" when their distance is below
half their norm.
"""

import math
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ictd.pipeline.storage import save_json
from ictd.statistics import bootstrap_interval

# A structure is close when less than this share of the sum of squares is outside; in random weights half of it is.
TENTH = 0.1
# About the resolution of single precision, in which networks are usually trained.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Claim:
    """One claim about one setting, with the statistic that decides it."""

    id: str
    section: str
    setting: str
    statement: str
    statistic: str
    value: float
    relation: str
    threshold: float

    @property
    def verdict(self) -> str:
        """ "holds" or "fails"; a value that is not a number fails."""
        met = self.value < self.threshold if self.relation == "<" else self.value > self.threshold
        return "holds" if met else "fails"


class Statements:
    """What is claimed, by name, with the statistic and the threshold that decide it.

    The TOML file ``path`` has a table a name: section, statement, statistic, relation and threshold, and ``id`` where
    the claim's is not the name.  What stands before the tables is of all, and {words} are filled in.
    """

    def __init__(self, path: Path):
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        shared = {key: value for key, value in found.items() if not isinstance(value, dict)}
        self.tables = {name: {"id": name} | shared | found[name] for name in found if name not in shared}

    def claim(self, name: str, setting, value: float, /, **words) -> Claim:
        """A claim about a setting, a sequence of words and numbers."""
        text = dict(self.tables[name])
        for word, meaning in words.items():
            texts = {key: part.replace(f"{{{word}}}", str(meaning)) for key, part in text.items() if key != "threshold"}
            text |= texts
        setting = "-".join(map(str, setting))
        value = value if isinstance(value, int) else float(value)
        return Claim(setting=setting, value=value, **text | {"id": f"{text['id']}/{setting}"})

    def of_trials(self, name: str, setting, samples, /, **words) -> list[Claim]:
        """The claim that a mean over trials is on one side of the threshold; none for fewer than two trials.

        Decided is by an end of the 95% bootstrap interval, over trials, of what the statistic says.
        """
        if len(samples) < 2:
            return []
        low, high = bootstrap_interval(np.asarray(samples))
        end, value = ("lower", low) if self.tables[name]["relation"] == ">" else ("upper", high)
        made = self.claim(name, setting, value, **words)
        statistic = f"{end} end of the 95% bootstrap interval, over trials, of {made.statistic}"
        return [replace(made, statistic=statistic)]


def as_records(claims: list[Claim]) -> list[dict]:
    """Claims with their verdicts as plain values; None stands for a value that is not finite."""
    records = []
    for claim in claims:
        value = claim.value if math.isfinite(claim.value) else None
        records.append({**asdict(claim), "value": value, "verdict": claim.verdict})
    return records


def save_claims(path: Path, claims: list[Claim], others: list[dict] = ()) -> None:
    """Write claims with their verdicts as JSON, and after them records of others."""
    save_json(path, [*as_records(claims), *others])
