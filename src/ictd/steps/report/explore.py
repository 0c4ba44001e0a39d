"""Write explore.html, a page that pretrains in the browser (``ictd.report.explore``)."""

from pathlib import Path

from ictd.report.explore import in_one_file
from ictd.storage import save_text


def main(output: Path) -> None:
    """Write the page."""
    save_text(output, in_one_file())
