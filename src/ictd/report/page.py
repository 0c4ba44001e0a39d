"""What the notebook ``report/report.ipynb`` shows of a part."""

import re
from pathlib import Path
from types import ModuleType

import pandas as pd

from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.html import Markup, fold
from ictd.report.markdown import as_html
from ictd.report.numbers import ABSENT, fill, quoted, reference_of
from ictd.report.part import PAPER, outputs_in
from ictd.report.tables import load_tables
from ictd.storage import load_json, load_text

# A fold without content.
EMPTY = re.compile(r"<details>\s*<summary>[^<]*</summary>\s*</details>\n*")


class Page:
    """A page about the results of a part.

    Parameters
    ----------
    part : str, name of the study, or ``ictd.report.part.PAPER``
    module : the part's module ``results``
    folder : str, the results of the part
    settings, texts : settings and texts of the part, which ``load`` reads
    text : str, a file in Markdown whose numbers, tables and figures become those of the results
    documents : list of str, pages of the documentation, which are shown at the end
    """

    def __init__(
        self,
        part: str,
        module: ModuleType,
        folder: str,
        settings: dict,
        texts: list[str],
        text: str,
        documents: list[str],
    ):
        self.folder, self.documents = Path(folder), documents
        self.results = module.load(self.folder, settings, *map(Path, texts))
        self.claims = load_json(self.folder / "claims.json")
        prefix = "" if part == PAPER else f"{part}."
        numbers, tables = quoted(reference_of(self.folder), part)
        # The tables as written to files.
        frames, self.tables = load_tables(sorted(self.folder.glob("tables/*.csv"))), {}
        for table in outputs_in(module, "table"):
            made = html.table(frames[table.name]) if table.name in frames else table.make(self.results)
            caption = f'<div class="caption">{html.folded(table.caption)}</div>'
            self.tables[table.name] = f'<div id="{html.anchor("table", table.name)}">{caption}\n{made}</div>'
            # In Markdown, an empty line ends HTML.
            tables.setdefault(f"{prefix}{table.name}", re.sub(r"\n\s*\n", "\n", f"{self.tables[table.name]}\n"))
        rows = [{"setting": key, "value": str(value)} for key, value in settings.items() if key != "paper"]
        self.tables.setdefault("settings", html.table(pd.DataFrame(rows)))
        paths = {figure: self.folder / f"figures/{figure.name}.png" for figure in outputs_in(module, "figure")}
        self.figures = {
            figure.name: html.figure(path, figure.caption) for figure, path in paths.items() if path.exists()
        }
        written = load_text(Path(text))
        self.named = {*re.findall(r"(\w+)\.png\)", written), *re.findall(rf"<!--=table {prefix}(\w+)-->", written)}
        self.written = fill(written, numbers, tables, ABSENT)

    def text(self) -> Markup:
        """The text with the numbers, tables and figures of the results; figures that there are not are left out."""
        # Ids would keep headings out of the table of contents.
        body = as_html(self.written, extensions="-gfm_auto_identifiers")
        image = r'<p><img [^>]*?(\w+)\.png"[^>]*></p>'
        shown = re.sub(image, lambda found: self.figures.get(found[1], ""), body)
        return Markup(EMPTY.sub("", shown))

    def verdicts(self) -> Markup:
        """The verdicts on all claims."""
        overview = html.table(claims_overview(self.claims))
        return Markup(fold("All claims", overview) + fold("Every verdict", claims_rows(self.claims)))

    def other_figures(self) -> Markup:
        """The figures that the text does not show."""
        others = [figure for name, figure in self.figures.items() if name not in self.named]
        return Markup("\n".join(["<h2>More figures</h2>", *others]) if others else "")

    def other_tables(self) -> Markup:
        """The tables that the text does not show, and the settings, each in a fold."""
        others = {name: table for name, table in self.tables.items() if name not in self.named}
        return Markup("\n".join(fold(name.replace("_", " "), table) for name, table in others.items()))

    def documentation(self) -> Markup:
        """The documents, each in a fold with its title; links to figures replace their images."""
        shown = []
        for path in self.documents:
            page = re.sub(r"!\[(.*?)\]\([^)]*?(\w+)\.png\)", r"[\1](#\2)", load_text(Path(path)))
            title = re.search("^# (.*)\n", page, re.MULTILINE)
            shown.append(fold(title[1], as_html(page.replace(title[0], "", 1), "--shift-heading-level-by=1")))
        return Markup("\n".join(["<h2>Documentation</h2>", *shown]) if shown else "")
