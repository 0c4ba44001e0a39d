"""The page explore.html, which pretrains in the browser, in one file that loads nothing.

``page.html`` names the other files of this folder, in the order of their use.  The scripts of its element ``engine``
compute, and know nothing of the page, which makes its workers from their text.  The other scripts draw figures and
handle controls.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def in_one_file() -> str:
    """``page.html`` with the text of each file in place of its name."""
    return re.sub(r"\{\{(.+?)\}\}\n?", lambda name: _text(name[1]), _text("page.html"))


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
