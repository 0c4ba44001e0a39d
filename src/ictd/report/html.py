"""Tables as HTML, and the page that a notebook becomes."""

import html
import math
import re
from pathlib import Path

from ictd.pipeline.storage import save_text

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; margin-top: 2em; }
h1 { margin-top: 0; }
img { max-width: 100%; height: auto; display: block; margin: 1rem auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.3em 0.5em; border-bottom: 1px solid #ccc; }
td.number { text-align: right; white-space: nowrap; }
.scroll { overflow-x: auto; }
.fails { background: #fbe3d6; font-weight: bold; }
.caption { color: #444; font-size: 0.9rem; margin: 0.5rem auto 2rem; }
pre { white-space: pre-wrap; }
"""


def table(frame) -> str:
    """A pandas DataFrame as an HTML table; numbers to four digits, and texts that begin with "fails" marked."""
    head = "".join(f"<th>{_text(str(name).replace('_', ' '))}</th>" for name in frame.columns)
    rows = ("".join(_cell(value) for value in row) for row in frame.itertuples(index=False))
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def _cell(value) -> str:
    if isinstance(value, float):
        shown = f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
        return f'<td class="number">{"" if math.isnan(value) else shown}</td>'
    if isinstance(value, int):
        return f'<td class="number">{value}</td>'
    marked = ' class="fails"' if str(value).startswith("fails") else ""
    return f"<td{marked}>{_text(str(value))}</td>"


# Words of formulas, which stand between dollar signs, and their signs.
SIGNS = {
    "beta": "β", "eta": "η", "gamma": "γ", "nu": "ν", "theta": "θ", "xi": "ξ", "zeta": "ζ", "grad": "∇", "inf": "∞",
}  # fmt: skip


def _text(text: str) -> str:
    """Text of a cell, with its formulas in italics."""
    parts = html.escape(text, quote=False).split("$")
    parts[1::2] = [f"<i>{_formula(part)}</i>" for part in parts[1::2]]
    return "".join(parts).replace("theta^TD", "θ<sup>TD</sup>")


def _formula(text: str) -> str:
    """A formula in HTML: words of SIGNS, and _x, ^x or ^{xy} lowered or raised."""
    text = text.replace("&lt;=", "≤").replace("-&gt;", "→")
    text = re.sub(r"(?<![a-z])[a-z]+(?![a-z])", lambda word: SIGNS.get(word[0], word[0]), text)
    for sign, tag in (("_", "sub"), ("^", "sup")):
        text = re.sub(
            rf"\{sign}(?:\{{(.*?)\}}|(TD|\w|∞))", lambda part, tag=tag: f"<{tag}>{part[1] or part[2]}</{tag}>", text
        )
    return text


def page(title: str, body: str) -> str:
    """A page that needs nothing from elsewhere."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def save_frames(folder: Path, frames: dict, notes: dict[str, str] | None = None) -> None:
    """Write DataFrames by name as pages of one table into a folder; a note stands above its table."""
    for name, frame in frames.items():
        save(folder / f"{name}.html", name, (notes or {}).get(name, "") + table(frame))


def save(path: Path, title: str, body: str) -> None:
    """Write a page."""
    save_text(path, page(title, body))
