"""Digests of the code and texts that a result depends on.

Snakemake reruns a job when one of its params has changed, so each rule has among its params the digest of every module
that its step imports.  The digest of a module is that of its syntax tree without docstrings: comments, formatting and
times of files do not change it.  Files of the same name in other languages belong to a module: slider.js to slider.py.
"""

import ast
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# The project's folder, and the parent folder of each of its packages.
PROJECT = Path(__file__).parents[3]
PACKAGES = {"ictd": PROJECT / "src", "studies": PROJECT}
# Endings of the files that belong to a module of the same name.
ASSETS = (".css", ".js")
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


def code_digests(name: str) -> dict[str, str]:
    """Compute the digest of each of the project's modules that a module imports, directly or through other modules.

    Imports anywhere in the code count, also those in functions.  Imports with ``importlib`` are not followed, and those
    under ``if TYPE_CHECKING:`` do not count, as they are not carried out.

    Parameters
    ----------
    name : str, a module such as "ictd.steps.tasks"

    Returns
    -------
    dict of digests by the names of modules, including the module itself and its packages

    Raises
    ------
    ValueError
        If a module does not exist or is not valid Python, or if it imports from ``ictd`` a name that the package loads
        on first use, because such an import cannot be followed.
    """
    if module_path(name) is None:
        raise ValueError(f"There is no module {name}.")
    digests, waiting = {}, [name]
    while waiting:
        module = waiting.pop()
        if module not in digests:
            digests[module], imports = _digest_and_imports(module)
            waiting += imports
    return dict(sorted(digests.items()))


def notebook_digests(path: Path) -> dict[str, str]:
    """Compute the digest of each of the project's modules that the cells of a notebook import, as ``code_digests``."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    digests = {}
    for name in _imports(ast.parse(source), package=""):
        if module_path(name):
            digests |= code_digests(name)
    return digests


def text_digest(path: Path) -> str:
    """Compute the digest of a text file, or of all captions in a folder."""
    files = sorted(path.glob("*.rst")) if path.is_dir() else [path]
    return digest(*(text for file in files for text in (file.name, file.read_text(encoding="utf-8"))))


def digest(*texts: str) -> str:
    """Compute a digest of texts, 12 hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


@cache
def _digest_and_imports(module: str) -> tuple[str, list[str]]:
    """Digest of one of the project's modules, and the project's modules that it may import."""
    path = module_path(module)
    tree = syntax_tree(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for line, name in _looked_up(tree):
        raise ValueError(f"{os.path.relpath(path)}, line {line}: import {name} from the module that defines it.")
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names = [*_imports(tree, package), module.rpartition(".")[0]]
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            node.body = node.body[1:]
    assets = [path.with_suffix(ending) for ending in ASSETS if path.with_suffix(ending).is_file()]
    texts = [file.read_text(encoding="utf-8") for file in assets]
    return digest(ast.dump(tree), *texts), [name for name in names if module_path(name)]


def _looked_up(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find imports of names that the package ``ictd`` loads on first use, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, "what is used of ictd") for alias in node.names if alias.name == "ictd")
        elif isinstance(node, ast.ImportFrom) and node.module == "ictd" and node.level == 0:
            names = (alias.name for alias in node.names if not alias.name.startswith("__"))
            yield from ((node.lineno, name) for name in names if module_path(f"ictd.{name}") is None)


def _imports(tree: ast.Module, package: str) -> list[str]:
    """List the modules that a module of a package may import; ``from a import b`` gives both a and a.b."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return names
