"""Write the numbers of the reference into pages in Markdown (``make pages``)."""

from pathlib import Path

from ictd.report.numbers import fill, load_references
from ictd.storage import load_text, save_text


def main(reference: Path, pages: list[Path]) -> None:
    """Write the numbers of the reference into the pages."""
    numbers, tables = load_references(reference)
    for page in pages:
        text = load_text(page)
        try:
            filled = fill(text, numbers, tables)
        except ValueError as error:
            raise ValueError(f"{page}: {error}") from None
        if filled != text:
            save_text(page, filled)
            print(f"{page}: numbers written")
