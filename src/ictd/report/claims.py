"""Decide the claims on the experiments and on the theory."""

from pathlib import Path

from ictd.report import html
from ictd.report.claim import Statements, as_records
from ictd.report.paper_claims import check_claims
from ictd.report.tables import load_tables
from ictd.report.theory_claims import check_theory, theory_overview
from ictd.storage import save_json


def main(
    statements: Path,
    theory_statements: Path,
    tables: list[Path],
    theory_tables: list[Path],
    env: str,
    states: int,
    depth: int,
    discount: float,
    theory: Path,
    claims: Path,
    page: Path,
) -> None:
    """Write the claims on the theory as JSON, all claims as JSON, and a page on the theory.

    ``env``, ``states`` and ``depth`` are the main setting.  The page has a row for each kind of claim on the theory.
    """
    table_of = load_tables(theory_tables)
    on_theory = as_records(check_theory(Statements(theory_statements), table_of, discount))
    on_experiments = as_records(check_claims(Statements(statements), load_tables(tables), (env, states, depth)))
    save_json(theory, on_theory)
    save_json(claims, [*on_experiments, *on_theory])
    html.save(page, "theory", html.table(theory_overview(on_theory, table_of["statements"])))
