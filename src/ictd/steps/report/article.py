"""The article: ``report/article.typ`` with the numbers, tables, figures and proofs of a run.

The article asks for a number by ``#n("NAME:FORMAT")``, for a table by ``#rows("NAME")`` and for a section of the
documentation by ``#section("PAGE", "HEADING")``.  The names of numbers and tables are those of pages
(``ictd.report.numbers``).
"""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pandas as pd
import typst

from ictd.pipeline.grid import Cell
from ictd.pipeline.records import checked_records
from ictd.report.markdown import as_typst
from ictd.report.names import WORDS
from ictd.report.numbers import ABSENT, as_markdown, quoted, reference_of
from ictd.report.part import PAPER
from ictd.storage import load_text, replacing

NUMBER = re.compile(r'\bn\("([^":]+):([^"]+)"\)')
TABLE = re.compile(r'\brows\("([^"]+)"')
SECTION = re.compile(r'\bsection\("([^"]+)", "([^"]+)"\)')
# Words for parts of the names of columns.
HEADS = {"algo": "algorithm", "env": "environment", "depth": "layers", "alpha": "α", "beta": "β"}


def main(
    source: Path,
    bibliography: Path,
    documents: list[Path],
    folder: Path,
    results: list[Path],
    studies: list[str],
    other_settings: str,
    article: Path,
) -> None:
    """Write the article.

    Parameters
    ----------
    source, bibliography : Paths of the article's text and of its bibliography in BibTeX
    documents : list of Path, the pages of the documentation from which the article takes sections
    folder : Path of the results, with a folder for each study
    results : list of Path, the files and folders in it that the article shows
    studies : list of str, the names of the studies
    other_settings : str, the names of the settings that are not the project's
    article : Path of the PDF

    Raises a ValueError if one of the results is not what its record says, if the article asks for something that does
    not exist, or if Typst warns.  In the place of numbers that other settings do not give, the article says so.
    """
    files = [file for path in results for file in (path.iterdir() if path.is_dir() else [path])]
    checked_records(folder, [str(file.relative_to(folder)) for file in files])
    numbers, tables = _numbers_and_tables(folder, studies)
    pages = {page.stem: load_text(page) for page in documents}
    text = load_text(source)

    def found(values: dict, name: str) -> object:
        if name not in values and not other_settings:
            raise ValueError(f"{source} asks for {name!r}, which the results do not have.")
        return values.get(name)

    def number(name: str, form: str) -> str:
        value = found(numbers, name)
        return ABSENT if value in (None, "") else format(value, form)

    def table(name: str) -> str:
        frame = found(tables, name)
        return ABSENT if frame is None else as_typst(as_markdown(_readable(frame)))

    made = {
        "numbers": {f"{name}:{form}": number(name, form) for name, form in NUMBER.findall(text)},
        "tables": {name: table(name) for name in TABLE.findall(text)},
        "sections": {
            f"{page} {heading}": as_typst(_section(pages[page], heading)) for page, heading in SECTION.findall(text)
        },
        "other_settings": other_settings,
    }
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        shutil.copy(source, root)
        shutil.copy(bibliography, root)
        (root / "made.json").write_text(json.dumps(made), encoding="utf-8")
        for name in ["", *studies]:
            shutil.copytree(folder / name / "figures", root / "figures" / name, dirs_exist_ok=True)
        with replacing(article) as output:
            _, warnings = typst.compile_with_warnings(
                root / source.name, output, format="pdf", ignore_system_fonts=True
            )
    if warnings:
        raise ValueError(f"{source}: {warnings[0].message}.")


def _numbers_and_tables(results: Path, studies: list[str]) -> tuple[dict, dict]:
    """Numbers and tables of the paper's part and of studies, by their names in pages."""
    numbers = _minutes(results / "benchmarks", studies)
    tables = {}
    for part in (PAPER, *studies):
        values, frames = quoted(reference_of(results if part == PAPER else results / part), part)
        numbers |= values
        tables |= frames
    return numbers, tables


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """A table with a column for each part of a cell's name, and with words for names of the code."""
    if "cell" in frame:
        frame = pd.DataFrame(map(Cell.parse, frame["cell"])).join(frame.drop(columns="cell"))
    for column in frame.columns.intersection(["algo", "env"]):
        frame = frame.assign(**{column: [_words(name, WORDS) for name in frame[column]]})
    return frame.rename(columns=lambda name: _words(name, HEADS))


def _words(name: str, words: dict[str, str]) -> str:
    """A name of the code in words."""
    return " ".join(words.get(part, part) for part in name.replace("_", " ").split())


def _minutes(benchmarks: Path, studies: list[str]) -> dict[str, float]:
    """Processor time of the jobs of the paper's part, ``minutes``, and of each study, ``STUDY.minutes``."""
    minutes = dict.fromkeys(["minutes", *(f"{name}.minutes" for name in studies)], 0.0)
    for path in benchmarks.rglob("*.tsv"):
        job = path.relative_to(benchmarks).parts[0]
        part = next((f"{name}.minutes" for name in studies if job.startswith(f"{name}_")), "minutes")
        minutes[part] += pd.read_csv(path, sep="\t")["cpu_time"].sum() / 60
    return minutes


def _section(page: str, heading: str) -> str:
    """The text of a section of a page, without its heading, its images and what checks its statements."""
    level = re.search(rf"^(#+) {re.escape(heading)}$", page, re.MULTILINE)
    if not level:
        raise ValueError(f"the article asks for the section {heading!r}, which the page does not have.")
    rest = re.sub(r"!\[.*?\]\(.*?\)", "", page[level.end() :])
    rest = re.sub(r"^\*Checked:\*.*?(?=^$)", "", rest, flags=re.DOTALL | re.MULTILINE)
    end = re.search(rf"^#{{1,{len(level[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest
