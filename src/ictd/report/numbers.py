"""Numbers and tables in Markdown pages, written from results.

A number stands between two comments, which no reader sees: ``<!--=NAME:FORMAT-->0.83<!---->``.  NAME is the name of a
number, with the study's name and a dot before it if it is a study's, and FORMAT is a Python format such as ``.0%``.

The functions with the decorator ``numbers`` make numbers, and each claim does: ``CLAIM/SETTING`` is its value,
``CLAIM/SETTING/low`` and ``CLAIM/SETTING/high`` are the ends of its interval, ``CLAIM/lowest`` and ``CLAIM/highest``
are over settings, and ``CLAIM/settings``, ``CLAIM/holds`` and ``CLAIM/refuted`` are the numbers of settings, and of
those where it holds and where it is refuted.

A table stands between the lines ``<!--=table NAME-->`` and ``<!---->``.

The reference of a part of the project, the paper's part or a study, is a file ``reference/pages/PART.csv``: numbers,
tables and claims of a finished run, with one value in each row.  ``make pages`` writes it into the pages.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report.part import PAPER
from ictd.report.tables import load_table, load_tables
from ictd.report.verdicts import HOLDS, REFUTED, holding
from ictd.storage import load_json, reading

NUMBER = re.compile(r"<!--=([\w./-]+)(?::([^>\n]*))?-->([^\n]*?)<!---->")
TABLE = re.compile(r"<!--=table ([\w.]+)-->\n(.*?)<!---->", re.DOTALL)
# In Markdown, a comment at the beginning of a paragraph, a line or an item ends the paragraph.
AT_START = re.compile(r"^[\s>*-]*(?:\d+\. *)?<!--=(?!table )", re.MULTILINE)
# What is written in place of a number or table that a run with other settings does not have.
ABSENT = "(not in this run)"
COLUMNS = ["kind", "name", "row", "column", "value"]
# The columns of claims in the reference.
OF_CLAIMS = ["value", "low", "high", "relation", "threshold", "verdict"]


def fill(
    text: str, numbers: dict[str, float | str], tables: dict[str, pd.DataFrame | str], absent: str | None = None
) -> str:
    """Write numbers, and tables as DataFrames or HTML, into a page.

    ``absent`` is written in place of a number or a table that does not exist, for a run with other settings.

    Raises a ValueError if the page names a number or a table that does not exist, or an impossible format, or if a
    number begins a line.
    """
    line = AT_START.search(text)
    if line:
        raise ValueError(f"{text[line.start() :].strip()[:40]!r} begins a line, which ends the paragraph; move it.")

    def number(match: re.Match) -> str:
        name, form, _ = match.groups()
        if absent is not None and numbers.get(name, "") == "":
            return absent
        if name not in numbers:
            raise ValueError(f"there is no number {name!r}.")
        try:
            shown = format(numbers[name], form or "")
        except ValueError:
            raise ValueError(f"number {name!r} is {numbers[name]!r}, which has no format {form!r}.") from None
        return f"<!--={name}{f':{form}' if form else ''}-->{shown}<!---->"

    def table(match: re.Match) -> str:
        name = match[1]
        if absent is not None and name not in tables:
            return f"{absent}\n"
        if name not in tables:
            raise ValueError(f"there is no table {name!r}.")
        shown = tables[name] if isinstance(tables[name], str) else as_markdown(tables[name])
        return f"<!--=table {name}-->\n{shown}<!---->"

    return NUMBER.sub(number, TABLE.sub(table, text))


def as_markdown(frame: pd.DataFrame) -> str:
    """A DataFrame as a table in Markdown; numbers have three digits."""
    cells = [[*map(str, frame.columns)], *([*map(_cell, row)] for row in frame.itertuples(index=False))]
    rows = [f"| {' | '.join(row)} |" for row in cells]
    rows.insert(1, "|" + "---|" * len(frame.columns))
    return "".join(f"{row}\n" for row in rows)


def _cell(value) -> str:
    """A value as a cell of a table; the symbol that texts write as theta^TD is a formula."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.3g}"
    return str(value).replace("theta^TD", r"$\theta^{\mathrm{TD}}$").replace("|", r"\|")


def quoted(rows: pd.DataFrame, part: str) -> tuple[dict[str, float | str], dict[str, pd.DataFrame]]:
    """Numbers and tables of the reference of a part, also of its claims, by their names in pages."""
    of_numbers = rows[rows["kind"] == "number"]
    numbers = dict(zip(of_numbers["name"], map(_plain, of_numbers["value"]), strict=True)) | _of_claims(rows)
    tables = {}
    for name, cells in rows[rows["kind"] == "table"].groupby("name", sort=False):
        columns = cells["column"].unique()
        values = cells["value"].map(_plain).to_numpy(dtype=object).reshape(-1, len(columns))
        tables[name] = pd.DataFrame(values, columns=columns)
    prefix = "" if part == PAPER else f"{part}."
    return tuple({f"{prefix}{name}": value for name, value in named.items()} for named in (numbers, tables))


def _plain(value):
    """A number, if the value or its text is one; whole numbers are integers."""
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def load_references(folder: Path) -> tuple[dict[str, float | str], dict[str, pd.DataFrame]]:
    """Numbers and tables of the references of all parts, by their names in pages.

    ``folder`` is the folder ``reference``.
    """
    numbers, tables = {}, {}
    for path in sorted(folder.glob("pages/*.csv")):
        of_part = quoted(load_reference(path), path.stem)
        numbers |= of_part[0]
        tables |= of_part[1]
    return numbers, tables


def _of_claims(rows: pd.DataFrame) -> dict[str, float | str]:
    """Numbers of the claims in a reference, by their names in pages."""
    numbers, groups = {}, {}
    for name, claim in _claims_of(rows).items():
        numbers[name] = claim["value"]
        numbers |= {f"{name}/{end}": claim[end] for end in ("low", "high")}
        groups.setdefault(name.split("/")[0], []).append(claim)
    for name, group in groups.items():
        values = [claim["value"] for claim in group if not isinstance(claim["value"], str)]
        numbers |= {f"{name}/lowest": min(values), f"{name}/highest": max(values)} if values else {}
        numbers |= {f"{name}/settings": len(group), f"{name}/holds": holding(group)}
        numbers[f"{name}/refuted"] = sum(claim["verdict"] == REFUTED for claim in group)
    return numbers


def _claims_of(rows: pd.DataFrame) -> dict[str, dict]:
    """The claims in a reference, by their names, with the fields of ``OF_CLAIMS``."""
    claims = {}
    for row in rows[rows["kind"] == "claim"].itertuples():
        claims.setdefault(row.name, {})[row.column] = _plain(row.value)
    return claims


def load_reference(path: Path) -> pd.DataFrame:
    """Read the reference of a part; every value is a text."""
    with reading(path):
        return pd.read_csv(path, dtype=str, keep_default_na=False)


def reference_of(folder: Path) -> pd.DataFrame:
    """The reference of a part, from its folder of results: numbers, tables and claims, with one value in each row.

    Every value is a text; NaN and None are empty.
    """
    numbers = load_table(folder / "numbers.csv")
    rows = [
        ("number", name, "", "", _plain(value)) for name, value in zip(numbers["name"], numbers["value"], strict=True)
    ]
    for name, frame in load_tables(sorted(folder.glob("tables/*.csv"))).items():
        rows += [
            ("table", name, row, column, value)
            for row, values in enumerate(frame.to_dict("records"))
            for column, value in values.items()
        ]
    for claim in load_json(folder / "claims.json"):
        rows += [("claim", claim["id"], "", column, claim[column]) for column in OF_CLAIMS]
    # Only NaN is not equal to itself.
    texts = ["" if value is None or value != value else str(value) for *_, value in rows]
    return pd.DataFrame(rows, columns=COLUMNS).astype(str).assign(value=texts)


def different(found: pd.DataFrame, reference: pd.DataFrame, tolerance: float, rounding: float) -> list[str]:
    """Compare the numbers, tables and claims of a run with the reference; a sentence for each difference.

    Numbers may differ by ``tolerance``, relative to the reference, or by ``rounding``, and those of a claim by a
    thousandth of its interval, because searches end at different points.  A claim with the threshold 1 and without an
    interval is on a count, or on a deviation over what rounding may do, which differs between processors.  If it holds
    in both, the values agree.
    """
    both = found.merge(reference, "outer", on=COLUMNS[:-1], suffixes=("", "_wanted"), indicator=True)
    claims = _claims_of(reference)
    sentences = []
    for kind, item, row, column, new, old, where in both.itertuples(index=False):
        name = " ".join(filter(None, (kind, item, row, column)))
        allowed = rounding
        if kind == "claim" and item in claims and column in ("value", "low", "high"):
            low, high, threshold, verdict = (claims[item].get(key) for key in ("low", "high", "threshold", "verdict"))
            if threshold == 1 and low == "" and verdict == HOLDS:
                continue
            if not isinstance(low, str) and not isinstance(high, str):
                allowed = max(rounding, 1e-3 * (high - low))
        if where != "both":
            sentences.append(f"{name} is {'missing' if where == 'right_only' else 'not in the reference'}")
        elif not _close(_plain(new), _plain(old), tolerance, allowed):
            sentences.append(f"{name} is {new}, in the reference {old}")
    return sentences


def _close(new, old, tolerance: float, rounding: float) -> bool:
    """Whether two numbers or texts are equal, numbers up to the tolerances of ``different``."""
    if isinstance(new, str) or isinstance(old, str):
        return new == old
    return new == old or abs(new - old) <= max(rounding, tolerance * abs(old))
