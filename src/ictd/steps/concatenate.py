"""Concatenate tables with the same columns."""

from pathlib import Path

from ictd.storage import load_text, save_text


def main(parts: list[Path], tables: list[Path]) -> None:
    """Write each table, such as ``theory/neu.csv``, from its parts in the folder of the same name, ``theory/neu/``.

    The parts keep their given order.  Numbers keep their digits, because the parts are joined as
    text.  ValueError if a table has no part, or if its parts have different columns.
    """
    for table in tables:
        folder = table.with_suffix("")
        own_parts = [part for part in parts if part.is_relative_to(folder)]
        if not own_parts:
            raise ValueError(f"{table} has no part in {folder}.")
        save_text(table, concatenated(own_parts))


def concatenated(parts: list[Path]) -> str:
    """The header of the first part, and the rows of all parts."""
    text = ""
    for part in parts:
        header, line_end, rows = load_text(part).partition("\n")
        if not text:
            first_header = header
            text = header + line_end
        if header != first_header:
            raise ValueError(f"{part} has the columns {header}; {parts[0]} has {first_header}.")
        text += rows
    return text
