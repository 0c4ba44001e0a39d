"""Made-up results of the paper's part."""

from pathlib import Path

import pandas as pd
from drawn import where

from ictd.pipeline.provenance import PROJECT
from ictd.report.claim import Claim, as_records
from ictd.report.paper.results import Results
from ictd.report.paper.sentences import load_sentences
from ictd.report.part import decide

SENTENCES = load_sentences(PROJECT / "report/sentences.toml")


def results_of(metrics: dict, theory: dict, main: tuple = ("boyan", 3, 4), discount: float = 0.9) -> Results:
    """Results with these tables."""
    env, states, depth = main
    settings = {"envs": [env], "states": [states], "depths": [depth], "discount": discount}
    return Results(Path("missing"), metrics, theory, {}, settings, {}, SENTENCES)


def claims_in(module, results: Results) -> dict[str, Claim]:
    """The claims of a module by their ids; their records become those of the results."""
    made = decide(module, results)
    assert len({claim.id for claim in made}) == len(made)
    results.claims = as_records(made)
    return {claim.id: claim for claim in made}


def changed(table: pd.DataFrame, column: str, value: float, **at) -> pd.DataFrame:
    """A table with another value in the rows that have these values."""
    rows = where(table, **at).index
    assert len(rows)
    return table.assign(**{column: table[column].astype(float).mask(table.index.isin(rows), value)})
