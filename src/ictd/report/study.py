"""The page of a study: its README, figures, tables and verdicts.

The module ``studies.NAME.results`` has a function ``load(folder, settings)``, which reads the results of the study's
steps from its folder, and functions with the decorators ``claim``, ``table``, ``figure`` and ``numbers``.  These
functions get what ``load`` returns.  ``settings`` are those of the study, and its key "paper" has the paper's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pandas as pd

from ictd.report import html
from ictd.report.claim import as_records, claim, statements_in
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.figures import style
from ictd.report.markdown import as_html
from ictd.report.numbers import ABSENT, fill, quoted
from ictd.report.registry import title_and_caption
from ictd.storage import load_text, save_json, save_table

__all__ = ["claim", "figure", "numbers", "table"]


@dataclass(frozen=True)
class Shown:
    """A function of ``studies.NAME.results`` that makes a figure, a table or numbers.

    Parameters
    ----------
    kind : str, "figure", "table" or "numbers"
    make : function of what ``load`` returns
    """

    kind: str
    make: Callable

    @property
    def name(self) -> str:
        """The function's name."""
        return self.make.__name__

    @property
    def caption(self) -> str:
        """The docstring after the first paragraph; all of it if there is one paragraph only."""
        title, caption = title_and_caption(self.make)
        return caption or f"{title}."


def figure(make: Callable) -> Shown:
    """Register a function that returns a Matplotlib figure.  Its docstring has a title and a caption."""
    return Shown("figure", make)


def table(make: Callable) -> Shown:
    """Register a function that returns a small DataFrame for readers.  Its docstring is the caption."""
    return Shown("table", make)


def numbers(make: Callable) -> Shown:
    """Register a function that returns a dict of numbers or short texts, which pages quote by their names."""
    return Shown("numbers", make)


def main(
    study: str,
    files: list[Path],
    readme: Path,
    settings: dict,
    other_settings: str,
    folder: Path,
    claims: Path,
    tables: Path,
    figures: Path,
    quoted: Path,
    page: Path,
) -> None:
    """Decide the claims of a study, and write its tables, figures and page.

    ``files`` are the results of the study's steps in ``folder``.  ``quoted`` has the numbers that pages quote.
    ``other_settings`` names the settings that are not the study's own.
    """
    module = import_module(f"studies.{study}.results")
    results = module.load(folder, settings)
    records = as_records([made for statement in statements_in(module) for made in statement.decide(results)])
    save_json(claims, records)
    shown = [value for value in vars(module).values() if isinstance(value, Shown)]
    for item in shown:
        made = item.make(results)
        if item.kind == "figure":
            style.save(made, figures / item.name)
        elif item.kind == "table":
            save_table(tables / f"{item.name}.csv", made)
    found = {name: value for item in shown if item.kind == "numbers" for name, value in item.make(results).items()}
    save_table(quoted, pd.DataFrame({"name": found.keys(), "value": found.values()}))
    html.save(page, study, body(study, load_text(readme), shown, records, settings, other_settings, folder))


def body(
    study: str, readme: str, shown: list[Shown], records: list[dict], settings: dict, other_settings: str, folder: Path
) -> str:
    """The page as HTML; its parameters are those of ``main``, and the records of the claims."""
    # The numbers as written to files.
    found, frames = quoted(folder, f"{study}.")
    # Ids would keep headings out of the table of contents.
    text = as_html(fill(readme, found, frames, ABSENT), extensions="-gfm_auto_identifiers")
    pictures = {}
    for item in shown:
        if item.kind == "figure":
            caption = f"{title_and_caption(item.make)[0]}. {item.caption}"
            pictures[item.name] = html.figure(folder / f"figures/{item.name}.png", caption)
    in_readme = {name for name in pictures if re.search(rf'<img [^>]*\b{name}\.png"[^>]*>', text)}
    for name in in_readme:
        text = re.sub(rf'<p><img [^>]*\b{name}\.png"[^>]*></p>', lambda _, name=name: pictures[name], text)
    heading = re.search("<h1.*?</h1>", text)[0]
    parts = [text.replace(heading, heading + html.banner(other_settings), 1)]
    parts += ["<h2>Verdicts</h2>", html.table(claims_overview(records))]
    parts.append(html.fold("Every verdict", claims_rows(records)))
    others = [pictures[name] for name in pictures if name not in in_readme]
    parts += ["<h2>More figures</h2>", *others] if others else []
    parts.append("<h2>Tables</h2>")
    for item in shown:
        if item.kind == "table":
            caption = f'<p class="caption">{html.text(item.caption)}</p>'
            parts.append(html.fold(item.name.replace("_", " "), caption + html.table(frames[f"{study}.{item.name}"])))
    rows = [{"setting": key, "value": str(value)} for key, value in settings.items() if key != "paper"]
    parts += ["<h2>Settings</h2>", html.fold("Settings", html.table(pd.DataFrame(rows)))]
    return html.without_dead_links("\n".join(parts))
