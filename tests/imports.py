"""Which of the project's modules a module imports, anywhere in its code, directly or through other modules."""

import ast
import importlib.util
from functools import cache
from pathlib import Path

from ictd.pipeline.provenance import module_path


def imported_modules(name: str, without: str = "") -> set[str]:
    """Names of the project's modules that a module imports, but not through one, with the module and their packages."""
    found, waiting = set(), [name]
    while waiting:
        module = waiting.pop()
        path = module_path(module)
        if path and module not in found and module != without:
            found.add(module)
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            waiting += [module.rpartition(".")[0], *imports_in(path, package)]
    return found


@cache
def imports_in(path: Path, package: str) -> list[str]:
    """Modules that code of a package may import when it runs; ``from a import b`` gives both a and a.b."""
    names, tree = [], ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return names
