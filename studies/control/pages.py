"""Write the tables of the page on control in context, as HTML."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.storage import load_json
from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.statistics import bootstrap_interval
from studies.control.grid import LIMITS
from studies.control.measured import Offline, Online


def main(claims: Path, offline: list[Path], online: Path, output: Path) -> None:
    """Write the tables, a page each: claims, shares, errors and choices in every place, and regrets with choices."""
    decided, acted = load_json(claims), Online(online)
    found = {name: [] for name in ("share", "error", "advantage_error", "cosine", "choice", "regret")}
    for path in offline:
        at = Offline(path)
        for method, name in product(at.methods, list(found)[:4]):
            of = at.share(method) if name == "share" else at.of(name, method)
            row = {f"{m} steps": with_interval(of[:, k]) for k, m in enumerate(at.lengths)}
            found[name].append({"place": path.stem, "method": method} | row)
        for method in [one for one in at.methods if at.of("parameter", one).any() and one.split()[-1] not in LIMITS]:
            chosen = zip(at.of("parameter", method)[0], at.of("at_end", method)[0], at.lengths, strict=True)
            row = {f"{m} steps": f"{one:.3g}{'*' * bool(end)}" for one, end, m in chosen}
            found["choice"].append({"place": path.stem, "method": method} | row)
    for name, row in ((name, {"method": name}) for name in acted.methods):
        for rule in acted.rules:
            row[rule] = with_interval(acted.of("regret", name, rule)[..., -1])
            row[f"chosen, {rule}"] = acted.of("choices", name, rule)[0]
        found["regret"].append(row)
    tables = {f"{name}s": pd.DataFrame(rows) for name, rows in found.items()}
    html.save_frames(output, {"claims": claims_overview(decided), "claims_all": claims_rows(decided)} | tables)


def with_interval(samples: np.ndarray) -> str:
    """Mean of samples (seeds, N), with its 95% bootstrap interval over processes."""
    return "{:.3g} ({:.3g} to {:.3g})".format(samples.mean(), *bootstrap_interval(samples.mean(axis=0)))
