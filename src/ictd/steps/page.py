"""Turn an executed notebook into one HTML page that needs no network."""

import re
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter

from ictd.pipeline.storage import load_text, naming
from ictd.report.html import save, without_dead_links


def main(title: str, notebook: Path, output: Path) -> None:
    """Write the page: the notebook's text and outputs, without its code.

    ValueError if the page would load something from elsewhere.
    """
    exporter = HTMLExporter(
        template_name="basic", exclude_input=True, exclude_output_prompt=True, exclude_anchor_links=True
    )
    with naming(notebook):
        body, _ = exporter.from_notebook_node(nbformat.reads(load_text(notebook), as_version=4))
    outside = re.findall(r"""\ssrc\s*=\s*["'](?!data:)([^"']+)""", body)
    if outside:
        raise ValueError(f"{notebook} loads {outside[0]!r}; the report must carry all that it shows.")
    save(output, title, without_dead_links(body))
