"""Write explore.html, the page that pretrains in the browser, in one file that loads nothing.

``report/explore/page.html`` names the other files of its folder, in the order of their use.  The scripts of its element
``engine`` compute, and know nothing of the page, which makes its workers from their text.  The other scripts draw
figures and handle controls.
"""

import re
from pathlib import Path

from ictd.storage import save_text


def main(page: Path, parts: list[Path], output: Path) -> None:
    """Write a page with the text of each part in place of its name."""
    texts = {part.name: part.read_text(encoding="utf-8") for part in parts}
    save_text(output, re.sub(r"\{\{(.+?)\}\}\n?", lambda name: texts[name[1]], page.read_text(encoding="utf-8")))
