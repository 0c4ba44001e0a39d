"""The engine of explore.html in V8, without a browser."""

import json
import re

import numpy as np
from projects import ROOT
from py_mini_racer import MiniRacer

FOLDER = ROOT / "report/explore"
PAGE = FOLDER / "page.html"
PARTS = [FOLDER / "page.css", *FOLDER.glob("*.js")]
(ENGINE,) = re.findall(r'<script id="engine">(.+?)</script>', PAGE.read_text(), re.DOTALL)
# Arrays come in as lists.
TYPED = """
const typed = (object) => Object.fromEntries(Object.entries(object).map(
    ([name, value]) => [name, Array.isArray(value) ? Float64Array.from(value) : value]));
"""


class V8(MiniRacer):
    """A JavaScript engine that has loaded the scripts.

    Use it in a with statement: Python may hang at its end if the engine is still open.
    """

    def __init__(self):
        super().__init__()
        for name in re.findall(r"\{\{(.+?)\}\}", ENGINE):
            self.eval((FOLDER / name).read_text())

    def __call__(self, body: str, **given):
        """Run the body of a function that has the given names, and get the value that it returns.

        Arrays are lists.  Numbers that are not finite are None, as what is undefined.
        """
        names = json.dumps(given, default=lambda array: array.tolist())
        replacer = "(_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value)"
        call = f"JSON.stringify((({{{', '.join(given)}}}) => {{{body}}})({names}), {replacer})"
        text = self.eval(call)
        return json.loads(text) if isinstance(text, str) else None


def weights_of(found: dict) -> tuple[np.ndarray, np.ndarray]:
    """u (2n,) and A (2n, 2n) of weights that V8 returned."""
    u = np.array(found["u"], float)
    return u, np.array(found["A"], float).reshape(len(u), len(u))
