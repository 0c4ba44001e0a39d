"""Claims on causes of eta: reversibility of the chain, and off-policy prompts.  Their trials are seeds."""

from collections.abc import Iterator

import pandas as pd

from ictd.report.claim import Claim, Statements
from ictd.report.tables import rows_with

# Largest share of unstable tasks at which TD counts as stable.
STABLE = 0.01


def reversibility_claims(statements: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on the table of ``studies.features.reversibility``."""
    places = ["chain", "features", "discount"]
    for place, rows in table.groupby(places, sort=False):
        by_method = {method: trials.set_index(["drift", "seed"]) for method, trials in rows.groupby("method")}
        least, largest = rows["drift"].min(), rows["drift"].max()
        for method in ("limit", "two_numbers", "pretrained"):
            if method in by_method:
                eta = by_method[method]["eta"]
                difference = (eta[least] - eta[largest]).dropna()
                yield from statements.of_trials("reversible", [*place, method], difference)
        if "three_numbers" in by_method:
            cosines = [by_method[method]["cosine"][largest] for method in ("three_numbers", "two_numbers")]
            yield from statements.of_trials("reversed_block", place, cosines[0] - cosines[1])


def off_policy_claims(statements: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on the table of ``studies.features.off_policy``."""
    unstable = rows_with(table, behaviour="unstable", share=table["share"].max())
    known = unstable[unstable["method"].isin(methods_with_eta(table))]
    for place, rows in known.groupby(["env", "features", "method"], sort=False):
        yield from statements.of_trials("off_policy_negative", place, rows["eta"].dropna())
    mean_unstable = table.groupby(["env", "features", "behaviour", "share"])["unstable"].transform("mean")
    stable = table[(mean_unstable < STABLE) & table["method"].isin(methods_with_eta(table))]
    stable = stable[stable["method"] != "pretrained"]
    for place, rows in stable.groupby(["env", "features", "method"], sort=False):
        smallest = rows.groupby(["behaviour", "share"])["eta"].mean().idxmin()
        trials = rows_with(rows, behaviour=smallest[0], share=smallest[1])
        yield from statements.of_trials("off_policy_only", place, trials["eta"])


def methods_with_eta(table: pd.DataFrame) -> list[str]:
    """Methods whose eta was found, not given."""
    names = table["method"].unique()
    return [name for name in names if name in ("limit", "pretrained") or name.startswith("two_numbers")]
