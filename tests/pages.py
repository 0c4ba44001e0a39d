"""Examples in Markdown pages: Python blocks, each with its expected output in the text block below it."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = r"-?\d+(?:\.\d*)?"


def examples(page: Path) -> list[tuple[str, str | None]]:
    """Code of the blocks of a page that use the library, and their expected output, None if the page has none."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(code, printed or None) for code, printed in found if "ictd." in code]


def code_blocks(page: Path, language: str = "") -> list[str]:
    """Code blocks of a page in one language, or in none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def printed_by(codes: list[str]) -> list[str]:
    """Output of the blocks of a page, executed in order."""
    names, found = {"__name__": "__main__"}, []
    for code in codes:
        with redirect_stdout(io.StringIO()) as output:
            exec(compile(code, "example", "exec"), names)
        found.append(output.getvalue())
    return found


def without_numbers(text: str) -> str:
    """A text without spaces, with # in place of each number."""
    return "".join(re.sub(NUMBER, "#", text).split())


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(NUMBER, text)]
