"""The page of a notebook: its execution, and the functions that its cells call."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from ictd.report import html
from ictd.report.html import Markup, anchor, banner, fold, save, text, without_dead_links
from ictd.report.markdown import as_html
from ictd.storage import load_text, save_text

# Seconds that a busy machine may take to answer.
PATIENCE = 600


def main(
    notebook: Path,
    documents: list[Path],
    parameters: dict,
    other_settings: str,
    executed: Path,
    page: Path,
) -> None:
    """Write the executed notebook, and a page in one file with its text and outputs, without its code.

    The notebook gets ``parameters``, the folder ``captions`` and the ``documents``.  Its heading is the title of the
    page.  Below the heading, ``banner`` names ``other_settings``.  ValueError if there is no heading, if a cell fails,
    or if the page would load something.
    """
    # The cells of notebooks import this module, and do not need this package.
    import nbformat

    parameters = parameters | {"documents": [*map(str, documents)]}
    with private_jupyter():
        finished = execute(notebook, parameters)
        body = body_of(finished)
    save_text(executed, nbformat.writes(finished))
    loaded = re.findall(r"""\ssrc\s*=\s*["'](?!data:)([^"']+)""", body)
    if loaded:
        raise ValueError(f"{notebook} loads {loaded[0]!r}; the report must carry all that it shows.")
    heading = re.search("<h1.*?>(.*?)</h1>", body)
    if heading is None:
        raise ValueError(f"{notebook} has no heading of the first level; the title of the page is this heading.")
    body = body.replace(heading[0], heading[0] + banner(other_settings), 1)
    save(page, unescape(re.sub("<.*?>", "", heading[1])), without_dead_links(body))


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
        raise ValueError(f"{notebook}: {str(error).splitlines()[0].rstrip('.')}; run snakemake again.") from error
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


class Shown:
    """Parts of a page about a folder of results, as HTML for the output of a notebook's cell.

    Parameters
    ----------
    results : str
        Folder with HTML pages in ``tables``, and figures as PNG, with their captions, in ``figures``.
    figures : list of str
        Names of the figures of the run.
    """

    def __init__(self, results: str, figures: list[str]):
        self.results = Path(results)
        # Those that are not shown so far, in their order.
        self.other_figures = list(figures)

    def __call__(self, *parts: str) -> Markup:
        """Put parts below each other."""
        return Markup("\n".join(parts))

    def fold(self, title: str, *parts: str) -> Markup:
        """Put parts into a fold that a click on its title opens; without parts there is no fold."""
        return Markup(fold(title, *parts) if parts else "")

    def table(self, name: str) -> Markup:
        """The content of a page in the folder ``tables``."""
        page = load_text(self.results / f"tables/{name}.html")
        content = re.search(r"<main>(.*)</main>", page, re.DOTALL)[1]
        return Markup(f'<div id="{anchor("table", name)}">{content}</div>\n')

    def figures(self, *names: str) -> list[Markup]:
        """Figures, without those that the run does not have."""
        return [self.figure(name) for name in names if name in self.other_figures]

    def rest(self) -> Markup:
        """The figures that are not shown so far, in a fold."""
        return self.fold("Other figures", *self.figures(*self.other_figures))

    def figure(self, name: str) -> Markup:
        """A figure with its caption."""
        if name in self.other_figures:
            self.other_figures.remove(name)
        caption = load_text(self.results / f"figures/{name}.rst").strip()
        return Markup(html.figure(self.results / f"figures/{name}.png", caption))

    def study(self, readme: Path) -> Markup:
        """Links to a study's page, which exists after a run of the study, and to its README, as an item of a list."""
        title = re.search("^# (.*)\n", load_text(readme), re.MULTILINE)[1]
        name = readme.parent.name
        beside = os.path.relpath(readme, self.results)
        return Markup(
            f'<li>{text(title)}: <a class="file" href="{name}/{name}.html">page</a> of <code>make {name}</code>,'
            f' <a class="file" href="{beside}">README</a></li>'
        )

    def document(self, path: str) -> Markup:
        """A page of the documentation in a fold with its title; links to figures replace its images."""
        page = re.sub(r"!\[(.*?)\]\([^)]*?(\w+)\.png\)", r"[\1](#\2)", load_text(Path(path)))
        title = re.search("^# (.*)\n", page, re.MULTILINE)
        return self.fold(title[1], as_html(page.replace(title[0], "", 1), "--shift-heading-level-by=1"))
