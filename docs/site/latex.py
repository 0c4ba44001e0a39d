"""Formulas of pages and docstrings, which are written to be read as they are, in LaTeX."""

import re
import unicodedata

SYMBOLS = {
    "Σ": r"\sum ", "⊗": r"\otimes ", "≤": r"\le ", "≥": r"\ge ", "≈": r"\approx ", "∞": r"\infty ", "∇": r"\nabla ",
    "−": "-", "…": r"\ldots ", "...": r"\ldots ", "‖": r"\|", "²": "^2", "*": r"\ast ", "    ": r" \qquad ",
}  # fmt: skip
ACCENTS = {"\u0303": "tilde", "\u0304": "bar"}
KNOWN = "alpha beta gamma delta eta lambda mu phi theta tau sum".split()
# Words of formulas; other letters are symbols.
WORD = re.compile(r"TF|TD|MC|MSVE|[a-z]{2,}(?:_[a-z]{2,})*")


def to_latex(formula: str) -> str:
    """Write a formula of a page or of a docstring, such as ``sum_t phi_t``, in LaTeX."""
    letters = unicodedata.normalize("NFD", formula.strip())
    latex = WORD.sub(_name, letters)
    for mark, name in ACCENTS.items():
        latex = re.sub(f"(.){mark}", rf"\\{name}{{\1}}", latex)
    for symbol, written in SYMBOLS.items():
        latex = latex.replace(symbol, written)
    return latex


def _name(word: re.Match) -> str:
    """A word of a formula: a symbol or an operator that LaTeX knows, a name, or a word of a sentence."""
    name = word[0]
    if name in KNOWN:
        return rf"\{name} "
    if name.isupper() or "_" in name:
        return rf"\mathrm{{{name}}}".replace("_", r"\_")
    return rf"\text{{ {name} }}"
