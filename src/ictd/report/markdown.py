"""Markdown of pages, with formulas in LaTeX between dollar signs, in other markup, by pandoc."""

import subprocess
from pathlib import Path

import pypandoc

# The program in the package, also where another pandoc is installed.
PANDOC = Path(pypandoc.__file__).parent / "files/pandoc"


def as_html(markdown: str, *options: str, extensions: str = "") -> str:
    """Markdown, read as the code host reads it, in HTML with formulas in MathML.

    ``options`` are those of pandoc, and ``extensions`` changes those of its format gfm.  ValueError if pandoc warns.
    """
    return _pandoc(markdown, f"--from=gfm{extensions}", "--to=html", "--mathml", *options)


def as_typst(markdown: str) -> str:
    """Markdown in the markup of Typst, in which the article is written.  ValueError if pandoc warns."""
    # Typst has another name for this sign now.
    return _pandoc(markdown, "--from=gfm", "--to=typst").replace("times.circle", "times.o")


def _pandoc(markdown: str, *options: str) -> str:
    """The output of pandoc, which leaves line breaks and code as they are."""
    command = [PANDOC, "--fail-if-warnings", "--wrap=preserve", "--syntax-highlighting=none", *options]
    done = subprocess.run(command, input=markdown, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise ValueError(f"pandoc cannot convert a page: {done.stderr.splitlines()[0].rstrip(':.')}.")
    return done.stdout
