"""Digests of the code and texts that a step depends on.

The code has parts with one digest each: the package ``ictd`` without its report, the report (``ictd.report``), and each
study.  A digest covers the syntax trees of all modules of its part without docstrings, and the scripts, styles
and pages beside them.  Comments, docstrings, formatting and times of files do not change it.
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
# Endings of the files of a part.
ENDINGS = (".css", ".html", ".js", ".py")
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


def parts_of(module: str, texts: list[Path]) -> list[str]:
    """List the parts of the code that a step depends on.

    Every step depends on ``ictd``, and a step of the report on ``ictd.report``, too.  A step of a study depends on this
    study, and so does a step that gets a text of the study.  Only the step ``ictd.report.study`` depends on the files
    ``*results.py`` of the study.

    Parameters
    ----------
    module : str, the step
    texts : list of Path, files or folders of the project that the step gets
    """
    parts = ["ictd", "ictd.report"] if module.startswith("ictd.report.") else ["ictd"]
    studies = PROJECT / "studies"
    paths = [path.resolve() for path in (module_path(module), *texts)]
    names = {path.relative_to(studies).parts[0] for path in paths if path.is_relative_to(studies)}
    for name in sorted(names):
        parts.append(f"studies.{name}")
        if module == "ictd.report.study":
            parts.append(f"studies.{name}.results")
    return parts


def files_of(part: str) -> list[Path]:
    """List the files of a part of the code; tests do not belong to it."""
    root = PACKAGES[part.split(".")[0]]
    folder = root.joinpath(*part.split("."))
    if part.endswith(".results"):
        return sorted(folder.parent.glob("*results.py"))
    files = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS)
    files = [path for path in files if "tests" not in path.relative_to(folder).parts]
    if part == "ictd":
        files = [path for path in files if not path.is_relative_to(folder / "report")]
    if part.startswith("studies."):
        files = [path for path in files if not path.name.endswith("results.py")]
    return files


@cache
def code_digest(part: str) -> str:
    """Compute the digest of a part of the code; a file that is no valid Python raises a ValueError."""
    return digest(*(f"{path.name} {without_docstrings(path)}" for path in files_of(part)))


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
