"""Make the results of a part (``ictd.report.part``): its claims, numbers, tables, figures and page."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pandas as pd

from ictd.checks import first_line
from ictd.report import html
from ictd.report.claim import as_records
from ictd.report.figures import style
from ictd.report.part import Output, decide, imported, outputs_in
from ictd.storage import save_json, save_table, save_text

# Seconds that a busy machine may take to answer.
PATIENCE = 600


def main(
    part: str,
    results: str,
    settings: dict,
    other_settings: str,
    texts: list[Path],
    notebook: Path,
    text: Path,
    documents: list[Path],
    files: list[Path],
    folder: Path,
    page: Path,
) -> None:
    """Decide the claims of a part, write its numbers, tables and figures, and run the notebook, which makes its page.

    Parameters
    ----------
    part : str, name of the study, or ``ictd.report.part.PAPER``
    results : str, name of the part's module with this name
    settings : dict, those of the part
    other_settings : str, the settings that are not the project's own
    texts : list of Path, files of the project that ``load`` reads
    notebook : Path
    text, documents : Paths of the part's text and of pages of the documentation, for ``ictd.report.page.Page``
    files : list of Path, the results of the part's steps
    folder : Path of the part's results, also of those that are made
    page : Path
    """
    save_results(imported(results), folder, settings, texts)
    parameters = {"part": part, "results": results, "folder": f"{folder}", "settings": settings, "text": f"{text}"}
    parameters |= {"texts": [*map(str, texts)], "documents": [*map(str, documents)]}
    save_page(notebook, parameters, other_settings, page)


def save_results(module: ModuleType, folder: Path, settings: dict, texts: list[Path]) -> None:
    """Decide claims, and write numbers, tables, figures as PNG and SVG, and their captions for Snakemake's report."""
    results = module.load(folder, settings, *texts)
    # The other functions may read the claims.
    save_json(folder / "claims.json", as_records(decide(module, results)))
    others = module.files(results) if hasattr(module, "files") else {}
    for name, content in others.items():
        save_json(folder / name, content)
    found = {name: value for one in outputs_in(module, "numbers") for name, value in one.make(results).items()}
    save_table(folder / "numbers.csv", {"name": [*found], "value": [*found.values()]})
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for table in outputs_in(module, "table"):
        made = table.make(results)
        if isinstance(made, pd.DataFrame):
            save_table(folder / f"tables/{table.name}.csv", made)
    drawn = outputs_in(module, "figure")
    # Two processes, because by now the other jobs of the part have ended.
    other = get_context("fork").Process(target=draw, args=(results, drawn[::2], folder))
    other.start()
    draw(results, drawn[1::2], folder)
    other.join()
    if other.exitcode:
        raise ValueError("A figure was not drawn; the error is above.")
    said = json.dumps({figure.name: figure.caption for figure in drawn})
    template = f"{{% set captions = {said} %}}{{{{ captions[snakemake.wildcards.figure] }}}}\n"
    save_text(folder / "captions.rst", template)


def draw(results, drawn: list[Output], folder: Path) -> None:
    """Write figures as PNG and SVG."""
    for figure in drawn:
        made = figure.make(results)
        if made is not None:
            style.save(made, folder / f"figures/{figure.name}.png")


def save_page(notebook: Path, parameters: dict, other_settings: str, page: Path) -> None:
    """Write a page in one file with text and outputs of a notebook, without its code, and beside it the run notebook.

    The heading of the notebook is the title of the page.  Below the heading, ``banner`` names ``other_settings``.
    ValueError if there is no heading, if a cell fails, or if the page would load something.
    """
    import nbformat

    with private_jupyter():
        finished = execute(notebook, parameters)
        body = body_of(finished)
    save_text(page.with_suffix(".ipynb"), nbformat.writes(finished))
    loaded = re.findall(r"""\ssrc\s*=\s*["'](?!data:)([^"']+)""", body)
    if loaded:
        raise ValueError(f"{notebook} loads {loaded[0]!r}; the report must carry all that it shows.")
    heading = re.search("<h1.*?>(.*?)</h1>", body)
    if heading is None:
        raise ValueError(f"{notebook} has no heading of the first level; the title of the page is this heading.")
    body = body.replace(heading[0], heading[0] + html.banner(other_settings), 1)
    title = unescape(re.sub("<.*?>", "", heading[1]))
    save_text(page, html.page(title, html.with_formulas(html.without_dead_links(body))))


@contextmanager
def private_jupyter() -> Iterator[None]:
    """Let Jupyter and IPython use this Python's files only, not those of the user.

    The kernel ``python3`` is this Python.  Kernels, templates, settings and startup files of the user are not found.
    Jupyter and IPython write to a temporary folder, so the home folder need not be writable.
    """
    from ipykernel.kernelspec import write_kernel_spec

    before = dict(os.environ)
    with TemporaryDirectory() as folder:
        write_kernel_spec(Path(folder, "kernels/python3"))
        os.environ.update(JUPYTER_PATH=folder, JUPYTER_DATA_DIR=folder, IPYTHONDIR=folder, PYTHONSTARTUP="")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def execute(notebook: Path, parameters: dict):
    """Run a notebook, and return it with its outputs.  ValueError if a cell fails, or the kernel ends or is silent."""
    import papermill

    # By default the kernel has 60 s to start, and outputs that come 4 s after the end of their cell are lost.
    waits = dict.fromkeys(("start_timeout", "execution_timeout", "iopub_timeout"), PATIENCE)
    try:
        finished = papermill.execute_notebook(
            notebook,
            None,
            parameters,
            kernel_name="python3",
            progress_bar=False,
            log_output=True,
            raise_on_iopub_timeout=True,
            **waits,
        )
    except (RuntimeError, TimeoutError) as error:
        raise ValueError(f"{notebook}: {first_line(error)}; run snakemake again.") from error
    except papermill.PapermillExecutionError as error:
        raise ValueError(f"{notebook}, cell {error.exec_count}: {error.ename}: {error.evalue}.") from error
    # The id of the cell with the parameters is random, and the page shows ids.
    for number, cell in enumerate(finished.cells):
        cell.id = f"cell-{number}"
    return finished


def body_of(finished) -> str:
    """The text and the outputs of a notebook as HTML, without its code."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="basic", exclude_input=True, exclude_output_prompt=True, exclude_anchor_links=True
    )
    body, _ = exporter.from_notebook_node(finished)
    return body
