"""Markdown of pages, with formulas in LaTeX between dollar signs, in other markup, by pandoc."""

from pypandoc import convert_text


def as_html(markdown: str, *options: str, extensions: str = "") -> str:
    """Markdown, read as GitHub reads it, in HTML with formulas in MathML.

    ``options`` are those of pandoc, and ``extensions`` changes those of pandoc's format gfm.
    """
    return convert_text(markdown, "html", f"gfm{extensions}", ["--mathml", "--wrap=preserve", *options])


def as_typst(markdown: str) -> str:
    """Markdown in the markup of Typst, in which the article is written; comments vanish."""
    # pandoc writes the name that Typst had for this sign earlier.
    return convert_text(markdown, "typst", "gfm").replace("times.circle", "times.o")
