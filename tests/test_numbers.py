"""Numbers in pages come from the reference of a finished run."""

import json

import pandas as pd
import pytest
from projects import ROOT

from ictd.report.numbers import different, fill, load_references, reference_of
from ictd.steps.report import pages
from ictd.storage import save_table

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("studies/*/README.md"))]
PAGE = """# A page

It is <!--=two:.2f-->9<!----> and <!--=word-->x<!---->, of <!--=a.share:.0%--><!---->.

<!--=table a.rows-->
old
<!---->
"""
FRAMES = {"a.rows": pd.DataFrame({"name": ["x", "y"], "value": [0.12345, float("nan")]})}


def test_numbers_and_tables_are_written_between_their_marks():
    filled = fill(PAGE, {"two": 2, "word": "so", "a.share": 0.256}, FRAMES)
    assert "It is <!--=two:.2f-->2.00<!----> and <!--=word-->so<!---->, of <!--=a.share:.0%-->26%<!---->." in filled
    assert "\n<!--=table a.rows-->\n| name | value |\n|---|---|\n| x | 0.123 |\n| y |  |\n<!---->\n" in filled
    assert fill(filled, {"two": 2, "word": "so", "a.share": 0.256}, FRAMES) == filled


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("It is <!--=three-->3<!---->.", "there is no number 'three'"),
        ("It is <!--=word:.2f-->3<!---->.", "number 'word' is 'so', which has no format '.2f'"),
        ("<!--=table rows-->\n<!---->", "there is no table 'rows'"),
        ("Numbers:\n<!--=two-->2<!---->", "begins a line"),
    ],
)
def test_what_cannot_be_written_is_an_error(page, said):
    with pytest.raises(ValueError, match=said):
        fill(page, {"two": 2, "word": "so"}, FRAMES)


def test_a_run_with_other_settings_lacks_numbers():
    filled = fill("It is <!--=three:.2f-->3<!---->, <!--=empty:.1f--><!---->.\n", {"empty": ""}, {}, "(no)")
    assert filled == "It is (no), (no).\n"
    assert fill("<!--=table rows-->\nold\n<!---->\n", {}, {}, "(no)") == "(no)\n\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of results of a part."""
    save_table(tmp_path / "numbers.csv", {"name": ["share", "word"], "value": [1 / 3, "so"]})
    save_table(tmp_path / "tables/rows.csv", {"n": [3, 5], "value": [0.1, float("nan")]})
    claim = {"id": "more/a", "value": 0.5, "low": None, "high": 1, "relation": "<", "threshold": 1, "verdict": "holds"}
    (tmp_path / "claims.json").write_text(json.dumps([claim]))
    return tmp_path


def test_a_reference_has_what_pages_quote(folder, tmp_path):
    rows = reference_of(folder)
    save_table(tmp_path / "reference/pages/part.csv", rows)
    found, tables = load_references(tmp_path / "reference")
    of_claim = {"more/a": 0.5, "more/a/low": "", "more/a/high": 1, "more/lowest": 0.5, "more/highest": 0.5}
    of_claim |= {"more/settings": 1, "more/holds": 1, "more/refuted": 0}
    assert found == {"part.share": 1 / 3, "part.word": "so"} | {f"part.{name}": of_claim[name] for name in of_claim}
    assert tables["part.rows"].values.tolist() == [[3, 0.1], [5, ""]]
    assert different(rows, rows, 0, 0) == []


@pytest.mark.parametrize(
    ("row", "value", "said"),
    [
        (0, "0.33333", "number share is 0.33333, in the reference 0.3333333333333333"),
        (1, "no", "number word is no, in the reference so"),
        (5, "0.2", "table rows 1 value is 0.2, in the reference "),
        (-1, "refuted", "claim more/a verdict is refuted, in the reference holds"),
    ],
)
def test_differences_are_named(folder, row, value, said):
    reference = reference_of(folder)
    changed = reference.copy()
    changed.iloc[row, -1] = value
    assert different(changed, reference, 1e-6, 0) == [said]
    missing = reference.drop(reference.index[row])
    assert different(missing, reference, 1e-6, 0) == [f"{said.partition(' is ')[0]} is missing"]
    assert different(reference, missing, 1e-6, 0) == [f"{said.partition(' is ')[0]} is not in the reference"]


@pytest.mark.parametrize(
    ("verdict", "said"), [("holds", []), ("refuted", ["claim more/a value is 0.7, in the reference 0.5"])]
)
def test_rounding_agrees_with_rounding(folder, verdict, said):
    """The claim has the threshold 1."""
    reference = reference_of(folder).replace("holds", verdict)
    assert different(reference.replace("0.5", "0.7"), reference, 1e-6, 0) == said


def test_close_numbers_agree(folder):
    reference = reference_of(folder)
    changed = reference.copy()
    changed.iloc[0, -1] = str(1 / 3 + 1e-9)
    assert different(changed, reference, 1e-6, 0) == different(changed, reference, 0, 2e-9) == []
    assert different(changed, reference, 1e-9, 5e-10)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_the_numbers_of_the_reference(page):
    found, tables = load_references(ROOT / "reference")
    text = page.read_text(encoding="utf-8")
    assert fill(text, found, tables) == text, "run make pages"


def test_a_number_edited_by_hand_is_mended(folder, tmp_path, capsys):
    save_table(tmp_path / "reference/pages/paper.csv", reference_of(folder))
    page = tmp_path / "page.md"
    for written, said in (("0.34", f"{page}: numbers written\n"), ("0.33", "")):
        page.write_text(f"A third is <!--=share:.2f-->{written}<!---->.\n")
        pages.main(tmp_path / "reference", [page])
        assert ">0.33<" in page.read_text() and capsys.readouterr().out == said
