"""Examples in Markdown pages: Python blocks, each with its expected output in the text block below it; formulas."""

import html
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from ictd.report.markdown import as_html

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
# A formula with the characters before and after it.
FORMULA = re.compile(r"(?<=(.))(\$\$.+?\$\$|\$[^$]+\$)(?=(.))", re.DOTALL)
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


def broken_formulas(page: str) -> list[str]:
    """Formulas that the code host does not show: it reads the page as Markdown first, and then the formulas."""
    page = CODE.sub("", page)
    shown = html.unescape(as_html(page, extensions="-tex_math_dollars-tex_math_gfm"))
    return [
        formula
        for before, formula, after in FORMULA.findall(f" {page} ")
        if formula not in shown
        or not re.fullmatch(r"[\s(|][\s),.:;?|]", before + after)
        or re.search(r"\S<|<\S|[^$]\n+[^$]", formula)
    ]
