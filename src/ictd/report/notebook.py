"""Execute a notebook and make it a page; and what its cells call."""

import re
from base64 import b64encode
from functools import cached_property
from pathlib import Path

from ictd.report.html import Markup, anchor, save, text, without_dead_links
from ictd.report.verdicts import by_name, holding, holds_everywhere, verdict
from ictd.storage import load_json, load_text, save_text


def main(title: str, notebook: Path, captions: Path, parameters: dict, executed: Path, page: Path) -> None:
    """Write the executed notebook, and the page: its text and outputs, without its code, in one file.

    ``captions`` is one of the notebook's parameters too.  ValueError if a cell fails, or the page would load something
    from elsewhere.
    """
    # Cells import this module too, and have no use for these.
    import nbformat
    import papermill
    from nbconvert import HTMLExporter

    given = parameters | {"captions": str(captions)}
    try:
        made = papermill.execute_notebook(
            notebook, None, given, kernel_name="python3", progress_bar=False, log_output=True
        )
    except papermill.PapermillExecutionError as error:
        raise ValueError(f"{notebook}, cell {error.exec_count}: {error.ename}: {error.evalue}.") from error
    save_text(executed, nbformat.writes(made))
    without = {"exclude_input": True, "exclude_output_prompt": True, "exclude_anchor_links": True}
    body, _ = HTMLExporter(template_name="basic", **without).from_notebook_node(made)
    outside = re.findall(r"""\ssrc\s*=\s*["'](?!data:)([^"']+)""", body)
    if outside:
        raise ValueError(f"{notebook} loads {outside[0]!r}; the report must carry all that it shows.")
    save(page, title, without_dead_links(body))


class Shown:
    """Parts of a page about a results folder, each as HTML that a notebook's cell shows.

    The folder ``results`` has ``claims.json``, ``tables`` (HTML) and ``figures`` (PNG), and ``captions`` a text
    NAME.rst for each.
    """

    def __init__(self, results: str, captions: str):
        self.results, self.captions = Path(results), Path(captions)

    def __call__(self, *parts: str) -> Markup:
        """Several parts, one below the other."""
        return Markup("\n".join(parts))

    def fold(self, title: str, *parts: str) -> Markup:
        """Parts that a click on their title shows."""
        return Markup(f"<details><summary>{text(title)}</summary>\n{self(*parts)}\n</details>\n")

    @cached_property
    def _claims(self) -> dict[str, list[dict]]:
        return by_name(load_json(self.results / "claims.json"))

    def _caption(self, name: str) -> str:
        return (self.captions / f"{name}.rst").read_text(encoding="utf-8").strip()

    def part(self, name: str) -> Markup:
        """What a page of the folder ``tables`` has."""
        found = re.search(r"<main>(.*)</main>", load_text(self.results / f"tables/{name}.html"), re.DOTALL)[1]
        return Markup(f'<div id="{anchor("table", name)}">{found}</div>\n')

    def table(self, name: str) -> Markup:
        """The same below its caption."""
        return Markup(f'<p class="caption">{text(self._caption(name))}</p>\n{self.part(name)}')

    def figure(self, name: str) -> Markup:
        """A figure with its caption, at half its width in pixels."""
        data, caption = (self.results / f"figures/{name}.png").read_bytes(), self._caption(name)
        width = int.from_bytes(data[16:20]) // 2  # Of a PNG's header.
        alt = text(caption.partition(". ")[2] or caption).replace('"', "'")
        picture = f'<img width="{width}" alt="{alt}" src="data:image/png;base64,{b64encode(data).decode()}">'
        return Markup(f'<figure id="{name}">{picture}<figcaption>{text(caption)}</figcaption></figure>\n')

    def say(self, words: str) -> Markup:
        """A paragraph; each {claim} in it becomes the verdict on that claim of ours, with a link to its row.

        Where the configuration has no such claim it says so.
        """

        def badge(found: re.Match) -> str:
            if not (group := self._claims.get(found[1])):
                return "(not compared here)"
            kind = "holds" if holds_everywhere(group) else "fails"
            number, kept = holding(group), holding(group, "corrected")
            corrected = f" ({kept} corrected)" if kept != number else ""
            link = f'<a href="#{anchor("rows", found[1])}">{number} of {len(group)}{corrected}</a>'
            return f'<b class="{kind}" title="{verdict(group)}">{link}</b>'

        return Markup(f"<p>{re.sub(r'{(.*?)}', badge, text(words))}</p>\n")

    def document(self, path: str) -> "Markdown":
        """A page of the documentation, folded under its title; in place of an image it has a link to the figure."""
        found = re.sub(r"!\[(.*?)\]\([^)]*?(\w+)\.png\)", r"[\1](#\2)", Path(path).read_text(encoding="utf-8"))
        title = re.search("^# (.*)\n", found, re.MULTILINE)
        # Not in code, where a line may begin so too.
        parts = re.split("(^```.*?^```)", found.replace(title[0], "", 1), flags=re.DOTALL | re.MULTILINE)
        parts[::2] = [re.sub("^#{2,4} (.*)", _heading, part, flags=re.MULTILINE) for part in parts[::2]]
        return Markdown(f"<details><summary>{text(title[1])}</summary>\n\n{''.join(parts)}\n\n</details>\n\n")


def _heading(found: re.Match) -> str:
    """A heading of the documentation, with the name that links have for it."""
    name = re.sub(r"<.*?>|[^\w -]", "", found[1].lower()).replace(" ", "-")
    return f'#### <a id="{name}"></a>{found[1]}'


class Markdown(str):
    """Text that is Markdown, as what a notebook's cell shows."""

    def _repr_markdown_(self) -> str:
        return self
