"""Write the tables of the page on control in context, as HTML."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.storage import load_json
from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.statistics import bootstrap_interval
from studies.control.measured import Offline, Online


def main(claims: Path, offline: list[Path], online: Path, output: Path) -> None:
    """Write the tables, a page each: the claims, shares and errors in every place, and regrets."""
    decided, acted, found = load_json(claims), Online(online), {"share": [], "error": [], "advantage_error": []}
    for path, name in ((path, name) for path in offline for name in found):
        at = Offline(path)
        for method in at.methods:
            of = at.share(method) if name == "share" else at.of(name, method)
            row = {f"{m} steps": with_interval(of[:, k]) for k, m in enumerate(at.lengths)}
            found[name].append({"place": path.stem, "method": method} | row)
    for name in acted.methods:
        row = {rule: with_interval(acted.regret(name, rule)[..., -1]) for rule in acted.rules}
        found.setdefault("regret", []).append({"method": name} | row)
    tables = {f"{name}s": pd.DataFrame(rows) for name, rows in found.items()}
    html.save_frames(output, {"claims": claims_overview(decided), "claims_all": claims_rows(decided)} | tables)


def with_interval(samples: np.ndarray) -> str:
    """Mean of samples (seeds, N), with its 95% bootstrap interval over processes."""
    return "{:.3g} ({:.3g} to {:.3g})".format(samples.mean(), *bootstrap_interval(samples.mean(axis=0)))
