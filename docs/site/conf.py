"""Settings of Sphinx for the site that ``make docs`` builds: the pages, the API, the report and what belongs to it."""

import os
import re
import sys
from pathlib import Path

import ictd

sys.path.append(str(Path(__file__).parent))
from latex import to_latex

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / os.environ["RESULTS"]
STUDIES = sorted(path.parent.name for path in ROOT.glob("studies/*/README.md"))

project = "ictd"
version = release = ictd.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/site/api.rst", "studies/README.md", "studies/*/README.md"]
html_theme = "furo"
html_title = "ictd"
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_rtype = False
napoleon_use_ivar = True
# Pages of results that this machine has: files of the site's first folder.
PAGES = {
    "explore.html": "Pretrain it in the browser",
    "report.html": "Report: every claim, figure and table",
    "article.pdf": "Article",
} | {f"{study}/{study}.html": f"Results of the study {study}" for study in STUDIES}
SHOWN = {name: title for name, title in PAGES.items() if (RESULTS / name).exists()}
html_extra_path = [str(RESULTS / name) for name in SHOWN]
# A line of Markdown that is a formula: indented by four spaces, between empty lines.
FORMULA = re.compile(r"(?<=\n\n) {4}(\S.*)\n(?=\n)")
# The pages in the navigation, which README.md, read on other sites, does not list.
NAVIGATION = """

```{toctree}
:hidden:
:caption: %s

%s
```
"""
LISTS = {
    "Documentation": [f"docs/{name}" for name in "method results theory exercises python workflow speed".split()],
    "Studies": ["studies/README", *(f"studies/{study}/README" for study in STUDIES)],
    "More": ["docs/site/api", "docs/related-work", "docs/development", "CONTRIBUTING", "SECURITY", "CHANGELOG"],
}


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


def read_page(app, name, source):
    """Set the formulas of a page, link pages of results, and add these and the navigation to the first page."""
    if app.env.doc2path(name).suffix == ".md":
        source[0] = FORMULA.sub(lambda line: f"```{{math}}\n{to_latex(line[1])}\n```\n", source[0])
    for page in SHOWN:
        link = f'<a href="{"../" * name.count("/")}{Path(page).name}">{page}</a>'
        source[0] = re.sub(f"`(results/)?{re.escape(page)}`", link, source[0])
    if name == root_doc:
        links = "".join(f'- <a href="{Path(page).name}">{title}</a>\n' for page, title in SHOWN.items())
        source[0] = source[0].replace("\n![", f"\n{links}\n![", 1)
        source[0] += "".join(NAVIGATION % (title, "\n".join(pages)) for title, pages in LISTS.items())


def setup(app):
    """Set formulas before Napoleon reads the sections of docstrings."""
    app.connect("autodoc-process-docstring", set_formulas, priority=400)
    app.connect("source-read", read_page)
