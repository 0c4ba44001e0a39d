"""Decide the claims on the experiments and on the theory."""

from pathlib import Path

from ictd.report.claim import as_records
from ictd.report.paper_claims import check_claims
from ictd.report.quoted import quoted_numbers, quoted_tables
from ictd.report.sentences import decide, load_sentences
from ictd.report.tables import load_tables
from ictd.report.theory_claims import check_theory
from ictd.storage import save_json, save_table, save_tables


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
    numbers: Path,
    folder: Path,
) -> None:
    """Write the claims on the theory, all claims, and the paper's sentences as JSON.

    The numbers that pages quote are written as CSV, and the tables into ``folder``.

    ``sentences`` is read, and ``decided`` has the sentences with their verdicts.  ``env``, ``states`` and ``depth`` are
    the main setting.
    """
    main_setting, of_paper = (env, states, depth), load_sentences(sentences)
    of_experiments, table_of = load_tables(tables), load_tables(theory_tables)
    on_theory = as_records(check_theory(table_of, discount))
    claims_made = check_claims(of_paper, of_experiments, main_setting)
    on_experiments = as_records(claims_made)
    save_json(theory, on_theory)
    save_json(claims, [*on_experiments, *on_theory])
    verdicts = decide(of_paper, on_experiments, main_setting)
    save_json(decided, verdicts)
    quoted = quoted_numbers(of_experiments | table_of, on_experiments, verdicts)
    save_table(numbers, {"name": [*quoted], "value": [*quoted.values()]})
    save_tables(folder, quoted_tables(of_experiments, on_experiments, of_paper, verdicts, main_setting))
