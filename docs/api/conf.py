"""Settings of Sphinx for the API page, which ``make api`` builds from the docstrings of ``ictd``."""

import re
import sys
from pathlib import Path

import ictd

sys.path.append(str(Path(__file__).parent))

project = "ictd"
version = release = ictd.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
html_theme = "alabaster"
html_theme_options = {"description": "In-context temporal difference learning", "page_width": "1100px"}
html_sidebars = {"**": ["about.html", "localtoc.html", "searchbox.html"]}
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_rtype = False
napoleon_use_ivar = True

# Words in the formulas of docstrings that are symbols.
SYMBOLS = re.compile(r"\b(alpha|beta|gamma|delta|eta|lambda|mu|phi|theta|tau|sum)(?![a-z])")
ROMAN = {
    "TF_L": r"\mathrm{TF}_L",
    "MSVE": r"\mathrm{MSVE}",
    "grad": r"\nabla",
    "reward_square": r"\mathrm{reward\_square}",
}


def to_latex(formula: str) -> str:
    """Write a formula of a docstring, such as ``sum_t phi_t``, in LaTeX."""
    latex = SYMBOLS.sub(r"\\\1 ", formula.strip()).replace("...", r"\ldots ")
    for word, written in ROMAN.items():
        latex = latex.replace(word, written)
    return re.sub(r" {3,}", r" \\qquad ", latex)


def set_formulas(app, what, name, obj, options, lines):
    """Turn the indented blocks before the first section of a docstring, which are formulas, into equations."""
    sections = (i for i, line in enumerate(lines) if line.startswith("---"))
    first_section = next(sections, len(lines))
    written = []
    for i, line in enumerate(lines):
        if i < first_section and line.startswith("    ") and not line.strip().startswith((">>>", "@", "def ")):
            written += ["", ".. math::", "", f"   {to_latex(line)}", ""]
        else:
            written.append(line)
    lines[:] = written


def setup(app):
    """Set formulas before Napoleon reads the sections of docstrings."""
    app.connect("autodoc-process-docstring", set_formulas, priority=400)
