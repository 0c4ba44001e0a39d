"""Markdown of the documentation in the markup of Typst, in which the article is written."""

import json
import re
import unicodedata

import mistune

MARKDOWN = mistune.create_markdown(renderer=None, plugins=["table"])
# In a formula: names of Typst after a backslash, words, and letters, each of which is a symbol.
NAME = re.compile(r"\\([a-z]+)|(TF|TD|MC|[a-z]{2,})|([^\W\d_]{2,})")
SIGNS = str.maketrans({"{": "(", "}": ")", "Σ": "∑", "*": "∗", "²": "^2"})
# The vector of ones in 11' and 1', which is not a number.
ONES = re.compile(r"(11?)(?=')")
# Norms, accents, primes before indices, and an argument that is not part of an index.
REWRITTEN = [
    (re.compile(r"‖([^‖]+)‖"), r"\\norm(\1)"),
    (re.compile("(.)\u0303"), r"\\tilde(\1)"),
    (re.compile("(.)\u0304"), r"\\macron(\1)"),
    (re.compile(r"_(\w)'"), r"'_\1"),
    (re.compile(r"_(\w)\("), r"_\1 ("),
    (ONES, r"\\bold(\1)"),
]
# Tags of HTML that pages use; other tags and comments vanish.
TAGS = {"<sub>": "#sub[", "</sub>": "]", "<sup>": "#super[", "</sup>": "]"}
AROUND = {
    "paragraph": ("", "\n\n"),
    "block_text": ("", ""),
    "emphasis": ("#emph[", "]"),
    "strong": ("#strong[", "]"),
    "link": ("", ""),
    "list": ("", "\n"),
    "list_item": ("#list.item[", "]\n"),
    "table_head": ("table.header(", "),\n"),
    "table_body": ("", ""),
    "table_row": ("", "\n"),
    "table_cell": ("[", "], "),
}


def as_typst(markdown: str) -> str:
    """Markdown as Typst's markup: paragraphs, headings, lists, tables, formulas, emphasis, subscripts and links."""
    return "".join(map(_of_token, MARKDOWN(markdown)))


def _of_token(token: dict) -> str:
    """A token of Markdown, as mistune reads it, with what it contains; images and comments vanish."""
    kind = token["type"]
    if kind == "text":
        parts = enumerate(ONES.split(token["raw"]))
        return "".join(f"#strong[{part}]" if i % 2 else string(part) for i, part in parts)
    if kind == "codespan":
        return string(token["raw"])
    if kind == "inline_html":
        return TAGS.get(token["raw"], "")
    if kind in ("softbreak", "linebreak"):
        return " "
    if kind in ("blank_line", "block_html", "image"):
        return ""
    if kind == "block_code":
        return "".join(f"$ {formula(line)} $\n" for line in token["raw"].splitlines() if line.strip()) + "\n"
    inside = "".join(map(_of_token, token["children"]))
    if kind == "heading":
        return f"{'=' * token['attrs']['level']} {inside}\n\n"
    if kind == "table":
        return f"#table(columns: {len(token['children'][0]['children'])},\n{inside})\n\n"
    if kind not in AROUND:
        raise ValueError(f"{kind!r} is Markdown that the article cannot show; write it as a paragraph, list or table.")
    before, after = AROUND[kind]
    return f"{before}{inside}{after}"


def string(text: str) -> str:
    """A text of which Typst reads no character as markup."""
    return f"#{json.dumps(text, ensure_ascii=False)};"


def formula(line: str) -> str:
    """A formula of the documentation, such as ``h_{l+1} = h_l T``, in Typst's mathematics.

    Four spaces separate formulas in one line.
    """
    line = unicodedata.normalize("NFD", line.strip()).replace("    ", " \\quad ")
    for found, written in REWRITTEN:
        line = found.sub(written, line)
    return NAME.sub(_name, line.translate(SIGNS))


def _name(found: re.Match) -> str:
    """A name of Typst, a word, or letters with spaces between them, which Typst would read as one name."""
    name, word, letters = found.groups()
    return name or (f'"{word}"' if word else " ".join(letters))
