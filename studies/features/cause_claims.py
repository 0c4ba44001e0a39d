"""Claims on causes of eta: reversibility of the chain, and off-policy prompts.  Their trials are seeds."""

from collections.abc import Iterator

import pandas as pd

from ictd.report.claim import Claim, Statements
from ictd.report.tables import rows_with

# Largest share of unstable tasks at which TD counts as stable.
STABLE = 0.01
# How eta is found, by the method without its number of layers, in words.
METHODS = {
    "limit": "In the limit of many layers",
    "two_numbers": "With the best α and η at finite depth",
    "pretrained": "Pretrained towards true values",
}


def reversibility_claims(statements: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on the table of ``studies.features.reversibility``."""
    places = ["chain", "features", "discount"]
    for place, rows in table.groupby(places, sort=False):
        by_method = {method: trials.set_index(["drift", "seed"]) for method, trials in rows.groupby("method")}
        least, largest = rows["drift"].min(), rows["drift"].max()
        tabular = "tabular " if place[1] == "rotated" else ""
        for method, words in METHODS.items():
            if method in by_method:
                eta = by_method[method]["eta"]
                difference = (eta[least] - eta[largest]).dropna()
                named = {"method": tabular + method.replace("_", " "), "words": words}
                yield from statements.of_trials("reversible", place, difference, **named)
        if "three_numbers" in by_method:
            cosines = [by_method[method]["cosine"][largest] for method in ("three_numbers", "three_shuffled")]
            yield from statements.of_trials("reversed_block", place, cosines[0] - cosines[1])


def off_policy_claims(statements: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on the table of ``studies.features.off_policy``."""
    mean_unstable = table.groupby(["env", "features", "behaviour", "share"])["unstable"].transform("mean")
    stable = table[mean_unstable < STABLE]
    unstable = rows_with(table, behaviour="unstable", share=table["share"].max())
    places = ["env", "features", "method"]
    for place, rows in unstable.groupby(places, sort=False):
        if named := words_of(place[-1]):
            yield from statements.of_trials("off_policy_negative", place, rows["eta"].dropna(), **named)
    for place, rows in stable.groupby(places, sort=False):
        named = words_of(place[-1])
        # Pretraining is done at few shares.
        if named and place[-1] != "pretrained":
            behaviour, share = rows.groupby(["behaviour", "share"])["eta"].mean().idxmin()
            trials = rows_with(rows, behaviour=behaviour, share=share)
            yield from statements.of_trials("off_policy_only", place, trials["eta"], **named)


def words_of(method: str) -> dict[str, str]:
    """Words of a method such as "two_numbers_20"; none for methods whose eta is given."""
    name = method.rstrip("_0123456789")
    return {"method": name.replace("_", " "), "words": METHODS[name]} if name in METHODS else {}
