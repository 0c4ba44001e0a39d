"""The article: the numbers, tables and sections of a run."""

import json
import re

import pytest
from projects import ROOT, STUDIES
from pypdf import PdfReader

from ictd.report.numbers import ABSENT, OF_CLAIMS, load_references
from ictd.steps.report import article
from ictd.storage import file_digest, save_json, save_table, save_text

TEXT = """
#let made = json("made.json")
#let n(name) = made.numbers.at(name)
#let rows(name) = eval(made.tables.at(name), mode: "markup")
#let section(page, heading) = eval(made.sections.at(page + " " + heading), mode: "markup")
The error is #n("error:.2f"), in the study #n("control.error:.1f"), from #n("pattern/td:.1f").
It took #n("minutes:.1f"), #n("control.minutes:.1f").
#rows("errors")
#section("page", "Proof")
Other settings: #made.other_settings
"""
# As tall as the figures of the article are in the mean.
FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 12"><path d="M0 0L9 9"/></svg>'
PAGE = r"""# A page

## Proof

For *all* $\theta^{\mathrm{TD}}$ and `#n("x:d")` [there](page.md#x), <!--=x:d-->7<!----> times:

$$
B\otimes X=\sum_{l < L}r
$$

![no picture](images/none.png)

| a | b |
|---|---|
| one | $x_l$ |

- one

*Checked:* by a test that
readers of the article do not know.

## Rest

Not this: $\wrong{x}$.
"""


@pytest.fixture
def results(tmp_path):
    """A folder of results of the paper's part and of one study."""
    folder = tmp_path / "results"
    claim = dict.fromkeys(OF_CLAIMS, 0.5) | {"id": "pattern/td", "verdict": "holds"}
    for name, error in (("", 1.5), ("control", 2.5)):
        save_json(folder / name / "claims.json", [claim])
        save_table(folder / name / "numbers.csv", {"name": ["error"], "value": [error]})
        save_table(folder / name / "tables/errors.csv", {"cell": ["td-loop-5-30"], "alpha_error": [error]})
        (folder / name / "figures").mkdir()
    for name, seconds in (("claims", 60.0), ("control_pretrain/td", 600.0)):
        save_table(folder / f"benchmarks/{name}.tsv", {"cpu_time": [seconds]})
    return folder


def written(results, text=TEXT, studies=("control",), other_settings=""):
    """The text of the article that the step makes."""
    source, page, bibliography = (results.parent / name for name in ("article.typ", "page.md", "references.bib"))
    save_text(source, text)
    save_text(page, PAGE)
    save_text(bibliography, "")
    made = results / "article.pdf"
    article.main(source, bibliography, [page], results, [results / "figures"], [*studies], other_settings, made)
    return " ".join(" ".join(sheet.extract_text() for sheet in PdfReader(made).pages).split())


def test_the_article_shows_the_numbers_tables_and_sections_of_the_run(results):
    text = written(results)
    assert "The error is 1.50, in the study 2.5, from 0.5. It took 1.0, 10.0." in text
    assert "algorithm environment states layers α error TD Loop 5 30 1.5" in text
    assert 'For all 𝜃TD and #n("x:d") there, 7 times: 𝐵 ⊗ 𝑋 = ∑ 𝑙<𝐿 𝑟' in text
    assert "a b one 𝑥𝑙 • one" in text
    assert "Not this" not in text and "do not know" not in text
    save_table(results / "numbers.csv", {"name": ["error"], "value": [7]})
    assert "The error is 7.00" in written(results)


def test_what_other_settings_do_not_give_is_said(results):
    text = written(results, TEXT.replace('"error:', '"other:'), other_settings="seeds")
    assert f"The error is {ABSENT}" in text
    assert "Other settings: seeds" in text


def test_a_result_that_is_not_what_its_record_says_is_refused(results):
    save_text(results / "figures/bars.svg", FIGURE)
    record = {"options": {}, "inputs": [], "outputs": {"figures/bars.svg": file_digest(results / "figures/bars.svg")}}
    save_text(results / "logs/figures.log", json.dumps(record) + "\n")
    written(results)
    save_text(results / "figures/bars.svg", "another")
    with pytest.raises(ValueError, match=r"bars\.svg is not the file that its job wrote"):
        written(results)


@pytest.mark.parametrize(
    ("found", "replaced", "said"),
    [
        ('"error:', '"other:', "asks for 'other', which the results do not have"),
        ('rows("errors")', 'rows("none")', "asks for 'none'"),
        ('"Proof"', '"Prof"', "asks for the section 'Prof'"),
        ("Other settings:", '#set text(font: "Nowhere");', "unknown font family"),
        ('"Proof"', '"Rest"', r"pandoc cannot convert a page: .* TeX math \\wrong"),
    ],
)
def test_what_the_results_do_not_have_is_an_error(results, found, replaced, said):
    with pytest.raises(ValueError, match=said):
        written(results, TEXT.replace(found, replaced))


@pytest.mark.parametrize("anonymous", ["false", "true"])
def test_the_article_has_the_length_of_a_submission(tmp_path, monkeypatch, anonymous):
    """The real article, from the reference, which has every number and table of it."""
    text = (ROOT / "report/article.typ").read_text()
    for figure in re.findall(r'#picture\("([^"]+)"', text):
        save_text(tmp_path / f"results/figures/{figure}.svg", FIGURE)
    numbers, tables = load_references(ROOT / "reference")
    minutes = {"minutes": 2.0} | {f"{name}.minutes": 5.0 for name in STUDIES}
    monkeypatch.setattr(article, "_numbers_and_tables", lambda *_: (numbers | minutes, tables))
    source, made = tmp_path / "article.typ", tmp_path / "article.pdf"
    save_text(source, text.replace("#let anonymous = false", f"#let anonymous = {anonymous}"))
    documents = [ROOT / "docs/theory.md", ROOT / "docs/results.md"]
    article.main(source, ROOT / "report/references.bib", documents, tmp_path / "results", [], [], "", made)
    pages = [" ".join(sheet.extract_text().split()) for sheet in PdfReader(made).pages]
    appendix = next(i for i, page in enumerate(pages) if "A Proofs and checks" in page)
    assert appendix <= 7
    assert len(pages) <= 12
    written_by = "Anonymous authors" if anonymous == "true" else "The ictd authors"
    assert ABSENT not in " ".join(pages) and written_by in pages[0]
