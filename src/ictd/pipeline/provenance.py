"""Digests of the code and texts that a step depends on.

A step depends on its module, and on all modules of the project that this imports, directly or not.  The digest of a
module covers its syntax tree without docstrings, and the scripts, styles and pages beside it.  Comments, docstrings,
formatting and times of files do not change it.
"""

import ast
import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

# The project's folder, and the parent folder of each of its packages.
PROJECT = Path(__file__).parents[3]
PACKAGES = {"ictd": PROJECT / "src", "studies": PROJECT}
# Endings of the files that belong to the module beside them.
ENDINGS = (".css", ".html", ".js")
# Environment variable of a job with what its log tells about it, as JSON (``ictd.pipeline.rules``).
JOB_VARIABLE = "ICTD_JOB"
# The beginning of the record of a job in its log.
RECORD = '{"options"'
# Decorators of functions whose docstring is shown to readers.
SHOWN = ("claim", "figure", "numbers", "page", "table")
# Nodes of a syntax tree that may have a docstring.
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def module_path(name: str) -> Path | None:
    """Find the file of one of the project's modules, such as "ictd.mrp"; None for modules of other packages."""
    root = PACKAGES.get(name.split(".")[0])
    if root is None:
        return None
    path = root.joinpath(*name.split("."))
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in candidates if file.is_file()), None)


def syntax_tree(path: Path) -> ast.Module:
    """Parse a Python file; a syntax error raises a ValueError that names the file and the line."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise ValueError(f"{os.path.relpath(path)}, line {error.lineno}: {error.msg}.") from None


def files_of(module: str) -> list[Path]:
    """The file of a module, and the scripts, styles and pages with its name, or in its folder if it is a package."""
    path = module_path(module)
    beside = path.parent.iterdir() if path.name == "__init__.py" else path.parent.glob(f"{path.stem}.*")
    return [path, *sorted(file for file in beside if file.suffix in ENDINGS)]


@cache
def code_digest(module: str) -> str:
    """Compute the digest of a module; a file that is no valid Python raises a ValueError."""
    return digest(*(f"{path.name} {without_docstrings(path)}" for path in files_of(module)))


def without_docstrings(path: Path) -> str:
    """The syntax tree of a Python file without docstrings, or the text of another file.

    Docstrings of functions with a decorator of ``SHOWN`` stay.
    """
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    tree = syntax_tree(path)
    for node in ast.walk(tree):
        decorators = [ast.unparse(decorator).partition("(")[0] for decorator in getattr(node, "decorator_list", [])]
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) and not set(decorators) & set(SHOWN):
            node.body = node.body[1:]
    return ast.dump(tree)


def text_digest(paths: list[Path]) -> str:
    """Compute the digest of text files.  A missing file raises a ValueError."""
    try:
        return digest(*(text for path in paths for text in (path.name, path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise ValueError(f"{error.filename} cannot be read: {error.strerror}.") from None


def listed(value) -> list:
    """A value as a list, unless it is one."""
    return value if isinstance(value, list) else [value]


def job_records(logs: Path) -> list[tuple[Path, dict]]:
    """Read the records of jobs, each the last line of a log that begins with RECORD, in the order of time.

    Other logs are left out: those of failed jobs, damaged ones, and those of Snakemake itself.
    """
    found = []
    for log in sorted(logs.rglob("*.log"), key=lambda path: path.stat().st_mtime):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        line = next((line for line in reversed(lines) if line.startswith(RECORD)), RECORD)
        with suppress(ValueError):
            found.append((log, json.loads(line)))
    return found


def digest(*texts: str) -> str:
    """Compute a digest of texts, 12 hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
