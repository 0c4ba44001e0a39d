"""Content of notebooks, and pages made from notebooks."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest
from PIL import Image

from ictd.report import html
from ictd.report.page import Page
from ictd.report.part import figure, table
from ictd.steps.report.results import save_page
from ictd.storage import save_table

PARAMETERS = "x = 1"
LOADING = "from IPython.display import HTML\nHTML(f'<img src=\"https://x.org/{x}.png\">')"


def page_of(folder: Path, *cells: str, other: str = "", x: int = 0) -> str:
    """The page of a notebook with these cells: a heading, the parameters, and code."""
    kinds = {"#": nbformat.v4.new_markdown_cell}
    made = [kinds.get(text[0], nbformat.v4.new_code_cell)(text) for text in cells]
    made[cells.index(PARAMETERS)].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "language": "python", "display_name": "Python"}
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernel}), folder / "notebook.ipynb")
    save_page(folder / "notebook.ipynb", {"x": x}, other, folder / "n.html")
    return (folder / "n.html").read_text()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("'no heading'", r"notebook\.ipynb has no heading of the first level; the title"),
        ("1 / x", r"notebook\.ipynb, cell 3: ZeroDivisionError: division by zero\.$"),
        ("import os; os._exit(1)", r"notebook\.ipynb: Kernel died; run snakemake again\.$"),
        (LOADING, r"notebook\.ipynb loads 'https://x\.org/0\.png'; the report must"),
    ],
)
def test_a_notebook_that_fails_or_loads_something_makes_no_page(tmp_path, cell, words):
    with pytest.raises(ValueError, match=words):
        page_of(tmp_path, PARAMETERS, cell)
    assert not (tmp_path / "n.html").exists()


def test_a_page_has_the_title_of_its_heading_and_a_banner_for_other_settings(tmp_path):
    for other in ("", "seeds, readings.x"):
        page = page_of(tmp_path, "# A & B", PARAMETERS, other=other)
        assert "<title>A &amp; B</title>" in page and page.count("<h1") == 1
        assert ('class="banner"' in page) == bool(other)
    assert "Other settings: seeds, readings.x." in page.split("</h1>")[1]


def surroundings(folder: Path) -> dict[str, str]:
    """Variables that lead to a kernel and to startup files of a user, each of which leaves a mark."""
    mark = f"import pathlib; pathlib.Path({str(folder / 'mark')!r}).touch()\n"
    files = {
        "home/.ipython/profile_default/startup/00.py": mark,
        "startup.py": mark,
        "jupyter/kernels/python3/kernel.json": json.dumps(
            {"argv": [sys.executable, "-c", mark], "display_name": "theirs", "language": "python"}
        ),
        "file": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {"JUPYTER_PATH": f"{folder}/jupyter", "PYTHONSTARTUP": f"{folder}/startup.py"}


@pytest.mark.parametrize("home", ["home", "file", "missing/home"])
def test_a_page_does_not_depend_on_surroundings(tmp_path, monkeypatch, home):
    """The kernel is this Python, without startup files; a home folder that cannot be made does not matter."""
    show = "import sys\nfrom IPython.display import Markdown\nMarkdown(f'{sys.executable} {x}')"
    here = page_of(tmp_path, "# A", PARAMETERS, show, x=2)
    for name, value in {**surroundings(tmp_path), "HOME": str(tmp_path / home)}.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    there = page_of(tmp_path, "# A", PARAMETERS, show, x=2)
    assert os.environ == before and not (tmp_path / "mark").exists() and not (tmp_path / "missing").exists()
    assert f"{sys.executable} 2" in here and there == here


def test_tables_have_words_marks_and_escaped_text():
    frame = pd.DataFrame(
        {"algo": ["td", html.Markup("<b>mc</b>")], "said": ["holds", "refuted <x>"], "theta^TD": [1, 0.5]},
    )
    text = html.table(frame)
    assert '<th>algorithm</th><th>said</th><th class="number">θ<sup>TD</sup></th>' in text
    assert '<td class="number" data-of="θᵀᴰ">0.5</td>' in text
    assert '<tr><td data-of="algorithm">TD</td><td class=\'holds\' data-of="said">holds</td>' in text
    assert (
        '<tr><td data-of="algorithm"><b>mc</b></td><td class=\'refuted\' data-of="said">refuted &lt;x&gt;</td>' in text
    )
    numbers = [1.23456, 12345.6, 3e53, float("nan"), 7]
    shown = html.table(pd.DataFrame({f"c{i}": [number] for i, number in enumerate(numbers)}))
    assert re.findall(r'<td class="number".*?>(.*?)</td>', shown) == ["1.235", "12,346", "3e+53", "", "7"]


def test_broken_links_become_text_and_sections_become_contents():
    body = """<p id="here"></p><a href="#here">1</a><a href="#gone">2</a><a class="x" href="docs/x.md">3</a>
    <a href="https://x.org">4</a><a class="file" href="a/a.html">5</a>"""
    text = html.without_dead_links(body)
    assert re.findall(r"<a .*?>(\d)</a>", text) == ["1", "4", "5"] and "2" in text and "3" in text
    text = html.page("T", "<h2>One & two's</h2><p>x</p><h2>Three</h2>")
    assert re.findall(r'href="#(.*?)"', text) == re.findall(r'<h2 id="(.*?)"', text) != []
    assert "<nav" in text and "<nav" not in html.page("T", "<p>x</p>")


def test_captions_fold_what_is_after_the_45th_word():
    long = "Words " * 22 + "end."
    assert html.folded(f"{long} {long} B.") == f"{long}\n{html.fold('More', f'{long} B.')}"


def test_formulas_become_mathml():
    text = html.with_formulas(html.table(pd.DataFrame({"claim": [r"$x < 1$ & $5 \le \gamma$, not"]})))
    assert re.findall("<mo>(.*?)</mo>", text) == ["&lt;", "≤"] and "</math> &amp; <math" in text and "γ" in text


@table
def rows(results):
    """Some rows."""
    return pd.DataFrame(results)


@table
def shown(results):
    """Only on the page."""
    return f"<p>{results['x']}\n\n</p>"


@figure
def x(results):
    """Figure x.

    What "it" shows.
    """


@figure
def y(results):
    """Figure y."""


TEXT = """# On A & B

<!--=table shown-->
<!---->

<details><summary>one</summary>

![a picture](images/x.png)

</details>

<details><summary>none</summary>

![another](images/gone.png)

</details>
"""


@pytest.fixture
def page(tmp_path):
    """A page about results with two tables and two figures."""
    module = SimpleNamespace(load=lambda folder, settings: settings, rows=rows, shown=shown, x=x, y=y)
    for name in "xy":
        (tmp_path / "figures").mkdir(exist_ok=True)
        Image.new("RGB", (300, 40)).save(tmp_path / f"figures/{name}.png")
    save_table(tmp_path / "tables/rows.csv", {"a": [7]})
    save_table(tmp_path / "numbers.csv", {"name": [], "value": []})
    (tmp_path / "claims.json").write_text("[]")
    (tmp_path / "text.md").write_text(TEXT)
    (tmp_path / "page.md").write_text(
        "# On A & B\n\n## The `part`\n\n```\n# a comment\n```\n\n![a](images/x.png) [b](../c.md)\n"
    )
    return Page("paper", module, str(tmp_path), {"x": [5]}, [], str(tmp_path / "text.md"), [str(tmp_path / "page.md")])


def test_the_text_of_a_part_has_its_figures_and_tables(page):
    text = page.text()._repr_html_()
    assert "<h1>On A &amp; B</h1>" in text and "Only on the page." in text and "<p>[5]\n</p>" in text
    assert 'alt="What &quot;it&quot; shows." src="data:image/png;base64,' in text
    assert "<summary>one</summary>" in text and "<summary>none</summary>" not in text


def test_what_the_text_does_not_name_is_shown_at_the_end(page):
    assert re.findall('<figure id="(.*?)">', page.other_figures()) == ["y"]
    tables = page.other_tables()
    assert re.findall("<summary>(.*?)</summary>", tables) == ["rows", "settings"] and ">7</td>" in tables
    document = page.documentation()
    assert "<summary>On A &amp; B</summary>" in document and "<pre><code># a comment</code></pre>" in document
    assert '<h3 id="the-part">The <code>part</code></h3>' in document
    assert '<a href="#x">a</a> <a href="../c.md">b</a>' in document
