"""Tables as HTML, and pages in one file each, which load nothing."""

import html
import math
import re
from base64 import b64encode
from itertools import accumulate
from pathlib import Path
from urllib.parse import unquote

from ictd.report.markdown import as_html
from ictd.report.verdicts import VERDICTS, words

# A formula in LaTeX.
FORMULA = re.compile(r"(\$[^$]+\$)")
# A text that begins with a verdict.
VERDICT = "|".join(VERDICTS)
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

# Captions show at most this number of words, and the others in a fold.
CAPTION_WORDS = 45
# Words for the names of columns.
HEADINGS = {
    "algo": "algorithm", "env": "environment", "states": "n", "depth": "L", "msve_falls": "MSVE falls",
    "same_pattern": "TD and MC agree", "same_noise": "their residuals agree",
}  # fmt: skip


# Columns with names of the code, which tables show in words.
NAMES = ("algo", "env", "family", "method", "setting", "target")


class Markup(str):
    """HTML, as the content of a table's cell or as the output of a notebook's cell."""

    def _repr_html_(self) -> str:
        return self

    def __repr__(self) -> str:
        # A notebook stores it beside the HTML.
        return f"<HTML of {len(self)} characters>"


def anchor(kind: str, name: str) -> str:
    """The id of something on a page, for links to it."""
    return f"{kind}-{re.sub(r'[^A-Za-z0-9_]+', '-', name)}"


def table(frame) -> str:
    """Make an HTML table of a pandas DataFrame.

    Numbers have four digits, and names of the code are replaced by words.  Verdicts are coloured if their column has
    verdicts only.  On a narrow screen each row becomes a list with the names of the columns.
    """
    named = [name for name in NAMES if name in frame]
    frame = frame.assign(
        **{name: [words(value) if type(value) is str else value for value in frame[name]] for name in named}
    )
    headings = [HEADINGS.get(name, words(str(name))) for name in frame.columns]
    kinds = [' class="number"' if frame[name].dtype.kind in "iuf" else "" for name in frame.columns]
    head = "".join(f"<th{kind}>{text(heading)}</th>" for kind, heading in zip(kinds, headings, strict=True))
    has_verdicts = [frame[name].astype(str).str.match(f"$|{VERDICT}").all() for name in frame.columns]
    names = list(map(attribute, headings))
    body = ""
    for values in frame.itertuples(index=False):
        cells = "".join(map(_cell, names, has_verdicts, values))
        body += f"<tr>{cells}</tr>\n"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def _cell(name: str, is_verdict: bool, value) -> str:
    """A cell of the column ``name``, as HTML."""
    if isinstance(value, float):
        shown = f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
        return f'<td class="number" data-of="{name}">{"" if math.isnan(value) else shown}</td>'
    if isinstance(value, int):
        return f'<td class="number" data-of="{name}">{value}</td>'
    verdict = re.match(VERDICT, str(value)) if is_verdict else None
    shown = value if isinstance(value, Markup) else text(str(value))
    return f'<td{f" class={VERDICTS[verdict[0]]!r}" if verdict else ""} data-of="{name}">{shown}</td>'


# Symbols in texts, as HTML, and without markup for attributes.
SYMBOLS = {"theta^TD": ("θ<sup>TD</sup>", "θᵀᴰ"), "Theta^looped": ("Θ<sup>looped</sup>", "Θ looped")}


def text(raw: str) -> str:
    """Text as HTML, with its formulas as they are (``with_formulas``); no line ends beside ±."""
    shown = FORMULA.sub(r"<var>\1</var>", html.escape(raw, quote=False)).replace(" ± ", "\u00a0±\u00a0")
    for name, (symbol, _) in SYMBOLS.items():
        shown = shown.replace(name, symbol)
    return shown


def attribute(raw: str) -> str:
    """Text as an attribute of HTML, which has no markup."""
    for name, (_, plain) in SYMBOLS.items():
        raw = raw.replace(name, plain)
    return html.escape(raw)


def with_formulas(body: str) -> str:
    """The body of a page, with MathML in place of LaTeX between dollar signs, which ``text`` has marked."""
    marked = re.compile(r"<var>(\$.*?\$)</var>")
    shown = as_html("\n\n".join(map(html.unescape, marked.findall(body))))
    formulas = iter(re.findall("<math.*?</math>", shown, re.DOTALL))
    return marked.sub(lambda _: next(formulas), body)


def without_dead_links(body: str) -> str:
    """The body of a page, with plain text in place of links that lead neither to the page nor to the web.

    Links of the class "file" stay.
    """
    ids = {name for _, name in re.findall(r"""\bid=(["'])(.*?)\1""", body)}
    return re.sub(
        r'<a\b(?! class="file")[^>]*href="(?:#([^"]*)|(https?:)?[^"]*)"[^>]*>(.*?)</a>',
        lambda link: link[0] if unquote(link[1] or "") in ids or link[2] else link[3],
        body,
        flags=re.DOTALL,
    )


def page(title: str, body: str) -> str:
    """Make an HTML page that loads nothing; its headings of the second level are its table of contents."""
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


def figure(path: Path, caption: str) -> str:
    """A PNG with its caption, at half its width in pixels, or the width of a narrower screen.

    The caption without its first sentence, which is a title, is the alternative text.
    """
    data = path.read_bytes()
    width = int.from_bytes(data[16:20]) // 2  # A PNG's header has its width in these bytes.
    alt = attribute(caption.partition(". ")[2] or caption)
    picture = f'<img width="{width}" alt="{alt}" src="data:image/png;base64,{b64encode(data).decode()}">'
    return f'<figure id="{path.stem}">{picture}<figcaption>{folded(caption)}</figcaption></figure>\n'


def folded(caption: str) -> str:
    """A caption as HTML: its first sentences, with at most CAPTION_WORDS words unless it is one, and a fold."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", caption)
    lengths = accumulate(len(sentence.split()) for sentence in sentences)
    shown = max(1, sum(length <= CAPTION_WORDS for length in lengths))
    first, rest = (text(" ".join(part)) for part in (sentences[:shown], sentences[shown:]))
    return f"{first}\n{fold('More', rest)}" if rest else first


def fold(title: str, *parts: str) -> str:
    """Put parts into a fold that a click on its title opens."""
    return "\n".join([f"<details><summary>{text(title)}</summary>", *parts, "</details>"])


def banner(other_settings: str) -> str:
    """Say as HTML which settings of the run are not the project's own; empty if there are none.

    ``other_settings`` lists their keys, as of ``ictd.pipeline.config.differences``.
    """
    if not other_settings:
        return ""
    return (
        '\n<p class="banner"><b>This run has other settings than the project\'s own.</b> All numbers, verdicts and'
        f" counts on this page are those of this run. Other settings: {text(other_settings)}.</p>\n"
    )
