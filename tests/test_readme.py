"""Numbers that the README states, beside those of the reference."""

import re

import pandas as pd
from projects import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def stated() -> list[tuple[list[str], str]]:
    """Rows of the table of claims: names of claims, and in how many settings they hold."""
    return [(re.findall(r"`(\w+)`", row[1]), row[3].strip()) for row in (
        line.split("|") for line in TEXT.splitlines() if re.match(r"\| `\w+`.*\| \d+ of \d+ \|$", line)
    )]  # fmt: skip


def test_the_table_of_claims_is_that_of_the_reference():
    claims = pd.read_csv(ROOT / "reference/claims.csv")
    names = claims["id"].str.split("/").str[0]
    rows = stated()
    assert len(rows) == 15
    for kinds, holds in rows:
        for kind in kinds:
            of = claims[names == kind]
            assert f"{(of['verdict'] == 'holds').sum()} of {len(of)}" == holds, kind
    of_paper = {kind for kinds, _ in rows for kind in kinds}
    everywhere = sum((claims[names == kind]["verdict"] == "holds").all() for kind in of_paper)
    words = {int(a): int(b) for a, b in re.findall(r"There are (\d+); .* and (\d+) hold in all of them", TEXT)}
    assert words == {len(of_paper): everywhere}


def test_numbers_on_the_weights_are_those_of_the_reference():
    """Ranges over cells of what the reference has means of."""
    tables = pd.read_csv(ROOT / "reference/tables.csv")
    agreement = tables[(tables["table"] == "metrics/agreement") & (tables["column"] == "apart")]["mean"]
    low, high = re.search(r"correlation of their mean A ([\d.]+) to ([\d.]+)\)", TEXT).groups()
    assert (f"{agreement.min():.2f}", f"{agreement.max():.2f}") == (low, high)
    msve = tables[(tables["table"] == "metrics/weights") & (tables["column"] == "enumerated_msve")]
    of_main = msve.set_index("group")["mean"][["td-boyan-5-30", "mc-boyan-5-30"]]
    found = re.search(r"prompts of pretraining the same models reach ([\d.]+) and (\d\.\d+)", TEXT).groups()
    assert tuple(f"{value:.3f}" for value in of_main) == found
