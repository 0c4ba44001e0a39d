"""Settings of Sphinx for the site that ``make docs`` builds: the pages, the API, the report and what belongs to it."""

import os
import re
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import ictd

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / os.environ["RESULTS"]
STUDIES = sorted(path.parent.name for path in ROOT.glob("studies/*/README.md"))

project = "ictd"
version = release = ictd.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/site/api.rst", "studies/README.md", "studies/*/README.md"]
html_theme = "furo"
html_title = "ictd"
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_rtype = False
napoleon_use_ivar = True
# Pages of results that this machine has.
PAGES = ["report.html", "explore.html", "article.pdf", *(f"{study}/{study}.html" for study in STUDIES)]
SHOWN = [page for page in PAGES if (RESULTS / page).exists()]
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


def mathml(node, as_block):
    """A formula as MathML, which browsers show without a script and without a network."""
    # Docutils would write an apostrophe.
    return tex2mathml(node.astext().replace("'", r"^{\prime}"), as_block=as_block)


def write_formula(page, node):
    """Write a formula in a line of text."""
    page.body.append(mathml(node, as_block=False))
    raise SkipNode


def write_block(page, node):
    """Write a formula on a line of its own."""
    page.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise SkipNode


def read_page(app, name, source):
    """Link pages of results, and add the navigation to the first page."""
    for page in SHOWN:
        place = f'<a href="{"../" * name.count("/")}{page}">'
        source[0] = re.sub(f"`(results/)?{re.escape(page)}`", f"{place}{page}</a>", source[0])
        source[0] = re.sub(rf"\[(\w+)\]\(https://[^)]*/ictd/{re.escape(page)}\)", rf"{place}\1</a>", source[0])
    if name == root_doc:
        source[0] += "".join(NAVIGATION % (title, "\n".join(pages)) for title, pages in LISTS.items())


def copy_results(app, error):
    """Copy pages of results; their links to README.md of a study lead to its page on the site."""
    for page in SHOWN if error is None else []:
        content = (RESULTS / page).read_bytes()
        content = re.sub(rb'href="(\.\./)+(studies/\w+/README)\.md"', rb'href="\2.html"', content)
        target = Path(app.outdir, page)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)


def setup(app):
    """Set formulas, complete pages, and add those of results."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_block, None))
    app.connect("source-read", read_page)
    app.connect("build-finished", copy_results)
