"""Tables as HTML, and pages that need nothing from elsewhere."""

import html
import math
import re
from pathlib import Path
from urllib.parse import unquote

from ictd.storage import save_text

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

# Columns whose names are those of the code, in words.
HEADS = {
    "algo": "algorithm", "env": "environment", "states": "n", "depth": "L", "alpha": "step size",
    "theta": "theta^TD", "cosine": "cosine to theta^TD", "raw_cosine": "cosine, A as it is",
    "share_A21": "share of A21", "share_A22": "share of A22", "diagonal_signs": "signs as theta^TD's",
    "largest_u": "largest |u|", "unidentifiable": "share unidentifiable", "msve_0": "MSVE, enumerated",
}  # fmt: skip


class Markup(str):
    """Text that is HTML already, in a table's cell or as what a notebook's cell shows."""

    def _repr_html_(self) -> str:
        return self


def anchor(kind: str, name: str) -> str:
    """What a link to something on the page names."""
    return f"{kind}-{re.sub(r'[^A-Za-z0-9_]+', '-', name)}"


def table(frame) -> str:
    """A pandas DataFrame as an HTML table; numbers to four digits, and columns of verdicts marked.

    On a narrow screen a row becomes a list with the columns' names.
    """
    names = [HEADS.get(name, str(name).replace("_", " ")) for name in frame.columns]
    head = "".join(f"<th>{text(name)}</th>" for name in names)
    judged = [frame[name].astype(str).str.match("fails|holds").all() for name in frame.columns]
    plain = [html.escape(name.replace("theta^TD", "θ^TD")) for name in names]
    rows = ("".join(map(_cell, plain, judged, row)) for row in frame.itertuples(index=False))
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def _cell(name: str, judged: bool, value) -> str:
    if isinstance(value, float):
        shown = f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
        return f'<td class="number" data-of="{name}">{"" if math.isnan(value) else shown}</td>'
    if isinstance(value, int):
        return f'<td class="number" data-of="{name}">{value}</td>'
    marked = judged and re.match("fails|holds", str(value))
    shown = value if isinstance(value, Markup) else text(str(value))
    return f'<td{f" class={marked[0]!r}" if marked else ""} data-of="{name}">{shown}</td>'


# Words of formulas, which stand between dollar signs, and their signs.
SIGNS = {
    "beta": "β", "eta": "η", "gamma": "γ", "nu": "ν", "theta": "θ", "xi": "ξ", "zeta": "ζ", "grad": "∇", "inf": "∞",
}  # fmt: skip


def text(raw: str) -> str:
    """Text as HTML, with its formulas in italics."""
    parts = html.escape(raw, quote=False).split("$")
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


def without_dead_links(body: str) -> str:
    """A page's body where links that lead nowhere on the page, nor to the web, are plain text."""
    ids = {name for _, name in re.findall(r"""\bid=(["'])(.*?)\1""", body)}
    return re.sub(
        r'<a\b[^>]*href="(?:#([^"]*)|(https?:)?[^"]*)"[^>]*>(.*?)</a>',
        lambda link: link[0] if unquote(link[1] or "") in ids or link[2] else link[3],
        body,
        flags=re.DOTALL,
    )


def page(title: str, body: str) -> str:
    """A page that needs nothing from elsewhere, with its sections, headings of the second level, as contents."""
    titles = dict.fromkeys(re.findall(r"<h2>(.*?)</h2>", body))
    for label in titles:
        body = body.replace(f"<h2>{label}</h2>", f'<h2 id="{anchor("section", label)}">{label}</h2>', 1)
    links = "".join(f'<a href="#{anchor("section", label)}">{label}</a>' for label in titles)
    nav = f'<nav aria-label="Contents">{links}</nav>\n' if links else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{STYLE}</style>\n</head>\n<body>\n{nav}<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def save_frames(folder: Path, frames: dict) -> None:
    """Write DataFrames by name as pages of one table into a folder, and what is HTML already as it is."""
    for name, frame in frames.items():
        save(folder / f"{name}.html", name, frame if isinstance(frame, str) else table(frame))


def save(path: Path, title: str, body: str) -> None:
    """Write a page."""
    save_text(path, page(title, body))
