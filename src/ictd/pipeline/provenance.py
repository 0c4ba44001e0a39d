"""Digests of the code and texts that a step depends on.

A step depends on its module, and on all modules of the project that this imports, directly or not.  The digest of a
module covers its syntax tree without docstrings, and the style sheet beside it.  Comments, docstrings,
formatting and times of files do not change it.
"""

import ast
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# The project's folder, and the parent folder of each of its packages.
PROJECT = Path(__file__).parents[3]
PACKAGES = {"ictd": PROJECT / "src", "studies": PROJECT}
# Environment variable of a job with what its log tells about it, as JSON (``ictd.pipeline.rules``).
JOB_VARIABLE = "ICTD_JOB"
# Decorators of functions whose docstring is shown to readers.
WITH_CAPTIONS = ("claim", "figure", "numbers", "table")
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
    """The file of a module, and the style sheet with its name.

    The list is empty if the module does not exist.
    """
    path = module_path(module)
    if path is None:
        return []
    return [path, *path.parent.glob(f"{path.stem}.css")]


@cache
def code_digest(module: str) -> str:
    """Compute the digest of a module; a file that is no valid Python raises a ValueError."""
    return digest(*(f"{path.name} {without_docstrings(path)}" for path in files_of(module)))


def without_docstrings(path: Path) -> str:
    """The syntax tree of a Python file without docstrings, or the text of another file.

    Docstrings of functions with a decorator of ``WITH_CAPTIONS`` stay.
    """
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    tree = syntax_tree(path)
    for node in ast.walk(tree):
        decorators = [ast.unparse(decorator).partition("(")[0] for decorator in getattr(node, "decorator_list", [])]
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) and not set(decorators) & set(WITH_CAPTIONS):
            node.body = node.body[1:]
    return ast.dump(tree)


def text_digest(name: str) -> str:
    """Compute the digest of a text of the project, by its place in the project.  A missing file raises a ValueError."""
    try:
        return digest((PROJECT / name).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{error.filename} cannot be read: {error.strerror}.") from None


def source_digest(modules: Iterable[str], texts: Iterable[str]) -> str:
    """Compute a digest of the bytes of modules and texts, without parsing them."""
    paths = [path for module in modules for path in files_of(module)]
    paths += [PROJECT / name for name in texts]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths if path.exists())).hexdigest()


def edited(content: dict) -> list[str]:
    """List the modules and texts that an options file names and that have been edited since it was written."""
    modules = [name for name, digest in content["code"].items() if code_digest(name) != digest]
    return modules + [name for name, digest in content["texts"].items() if text_digest(name) != digest]


def listed(value) -> list:
    """A value as a list, unless it is one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def options_digest(content: dict) -> str:
    """Compute the digest of the content of an options file."""
    return digest(json.dumps(content, sort_keys=True))


def digest(*texts: str) -> str:
    """Compute a digest of texts, 12 hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
