"""Execute a notebook, and what its cells call."""

import re
import tempfile
from base64 import b64encode
from pathlib import Path

from ictd.pipeline.storage import load_text, save_text


def main(notebook: Path, captions: Path, parameters: dict, output: Path) -> None:
    """Write the executed notebook; ``captions`` is one of its parameters too.  ValueError if a cell fails."""
    import papermill  # Cells import this module too, and have no use for it.

    with tempfile.TemporaryDirectory() as folder:
        executed = Path(folder) / "executed.ipynb"
        try:
            papermill.execute_notebook(
                notebook,
                executed,
                parameters | {"captions": str(captions)},
                kernel_name="python3",
                progress_bar=False,
                log_output=True,
            )
        except papermill.PapermillExecutionError as error:
            raise ValueError(f"{notebook}, cell {error.exec_count}: {error.ename}: {error.evalue}.") from error
        save_text(output, executed.read_text(encoding="utf-8"))


class Shown:
    """Shows tables and figures of a results folder in a notebook, each with the caption of its name.

    The folder ``results`` has ``tables`` (HTML) and ``figures`` (PNG, GIF), and ``captions`` a text NAME.rst for each.
    """

    def __init__(self, results: str, captions: str):
        self.results, self.captions = Path(results), Path(captions)

    def _html(self, text: str) -> None:
        from IPython.display import HTML, display

        display(HTML(text))

    def _caption(self, name: str) -> None:
        text = (self.captions / f"{name}.rst").read_text(encoding="utf-8")
        self._html(f'<p class="caption">{text}</p>')

    def _body(self, name: str) -> str:
        page = load_text(self.results / f"tables/{name}.html")
        return re.search(r"<body>(.*)</body>", page, re.DOTALL)[1]

    def note(self, name: str) -> None:
        """The first paragraph above a table."""
        self._html(re.search(r"<p>.*?</p>", self._body(name))[0])

    def table(self, name: str) -> None:
        """A table."""
        self._html(self._body(name))
        self._caption(name)

    def figure(self, name: str) -> None:
        """A figure."""
        from IPython.display import Image, display

        display(Image(filename=self.results / f"figures/{name}.png", retina=True))
        self._caption(name)

    def animation(self, name: str) -> None:
        """A GIF."""
        data = b64encode((self.results / f"figures/{name}.gif").read_bytes()).decode()
        self._html(f'<img alt="{name}" src="data:image/gif;base64,{data}">')
        self._caption(name)
