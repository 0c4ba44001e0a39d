"""Write what was measured in control in context as CSV, and its claims as pages."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.statistics import bootstrap_interval
from ictd.storage import load_json, save_tables
from studies.control.measured import Offline, Online


def main(claims: Path, offline: list[Path], online: Path, output: Path) -> None:
    """Write ``measures`` for each number of transitions m, with the share after one iteration (``once``), ``regrets``
    after all steps, both as means with 95% intervals over processes, and pages of claims."""
    acted, measures, regrets = Online(online), [], []
    for place, at in ((path.stem, Offline(path)) for path in offline):
        for method, tasks in ((one, tasks) for one in at.methods for tasks in at.counts(one)):
            found = {name: at.of(name, method, tasks) for name in ("error", "advantage_error", "cosine", "changes")}
            found |= {"share": at.share(method, tasks=tasks), "once": at.share(method, 1, tasks)}
            chosen, end = (at.of(name, method)[0] for name in ("parameter", "at_end"))
            for k, m in enumerate(at.lengths):
                row = {"place": place, "method": method, "tasks": tasks, "m": m}
                row |= {"parameter": chosen[k], "at_end": end[k]}
                measures.append(row | with_intervals({name: one[:, k] for name, one in found.items()}))
    for method, rule in product(acted.methods, acted.rules):
        row = {"method": method, "rule": rule, "choices": acted.of("choices", method, rule)[0]}
        regrets.append(row | with_intervals({"regret": acted.of("regret", method, rule)[..., -1]}))
    save_tables(output, {"measures": pd.DataFrame(measures), "regrets": pd.DataFrame(regrets)})
    decided = load_json(claims)
    html.save_frames(output, {"claims": claims_overview(decided), "claims_all": claims_rows(decided)})


def with_intervals(samples: dict[str, np.ndarray]) -> dict[str, float]:
    """Means of samples (seeds, N), and the ends of their 95% bootstrap intervals over processes."""
    ends = {name: bootstrap_interval(one.mean(axis=0)) for name, one in samples.items()}
    return {key: value for name, (low, high) in ends.items()
            for key, value in ((name, samples[name].mean()), (f"{name}_low", low), (f"{name}_high", high))}  # fmt: skip
