"""Decide the claims on the experiments and on the theory."""

from pathlib import Path

from ictd.report import html
from ictd.report.claim import as_records
from ictd.report.paper_claims import check_claims
from ictd.report.sentences import decide, load_sentences
from ictd.report.tables import load_tables
from ictd.report.theory_claims import check_theory, theory_overview
from ictd.storage import save_json


def main(
    sentences: Path,
    tables: list[Path],
    theory_tables: list[Path],
    env: str,
    states: int,
    depth: int,
    discount: float,
    theory: Path,
    claims: Path,
    decided: Path,
    page: Path,
) -> None:
    """Write the claims on the theory, all claims, and the paper's sentences as JSON, and a page on the theory.

    ``sentences`` is read, and ``decided`` has the sentences with their verdicts.  ``env``, ``states`` and ``depth`` are
    the main setting.  The page has a row for each kind of claim on the theory.
    """
    main_setting, of_paper = (env, states, depth), load_sentences(sentences)
    table_of = load_tables(theory_tables)
    on_theory = as_records(check_theory(table_of, discount))
    claims_made = check_claims(of_paper, load_tables(tables), main_setting)
    on_experiments = as_records(claims_made)
    save_json(theory, on_theory)
    save_json(claims, [*on_experiments, *on_theory])
    save_json(decided, decide(of_paper, on_experiments, main_setting))
    html.save(page, "theory", html.table(theory_overview(on_theory, table_of["statements"])))
