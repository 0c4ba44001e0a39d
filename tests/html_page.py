"""Visible content of an HTML page, for the tests."""

from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """Images, table rows, text, and anything that the page would load from elsewhere."""

    def __init__(self, page: Path | str):
        super().__init__()
        self.images, self.outside, self.text = [], [], ""
        self._rows, self._open = [], []
        self.feed(page.read_text(encoding="utf-8") if isinstance(page, Path) else page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "img":
            self.images.append(values.get("src", ""))
        else:
            # Links to the web and to other files are not loaded by the page itself.
            kept = ("#", "http") if tag == "a" else "#"
            if values.get("class") != "file":
                self.outside += [values[key] for key in ("src", "href") if not values.get(key, "#").startswith(kept)]
        if tag == "tr":
            self._rows.append([])
        if tag == "td":
            self._rows[-1].append("")
        if tag not in ("img", "meta", "br", "link"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        # Numbers have spaces that do not break.
        self.text += data.replace("\xa0", " ")
        if self._open[-1:] == ["td"]:
            self._rows[-1][-1] += data

    def rows(self) -> list[list[str]]:
        """Cells of all table rows."""
        return [row for row in self._rows if row]
