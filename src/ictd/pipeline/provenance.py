"""What a result depends on besides its inputs and options: the code that its step imports, and versions.

Snakemake reruns a job when one of its params has changed, so every rule has the digests of its step's modules there.
"""

import ast
import hashlib
import importlib.util
import json
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

from ictd.pipeline.steps import syntax_tree

# What imports by name, or reads files beside the code; and modules that may: the runner, which imports steps and their
# help, the package, of which `_check_taken` knows, and what finds the code.
DYNAMIC = {"importlib", "importlib.import_module", "__import__", "__file__"}
FOLLOWED = (
    "ictd", "ictd.pipeline.runner", "ictd.pipeline.provenance", "ictd.pipeline.steps", "ictd.steps.manifest",
)  # fmt: skip
# What may have a docstring.
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_digests(module: str, roots: dict[str, Path]) -> list[str]:
    """Name and digest of each module of ours that a module imports, itself included, anywhere in its code.

    Ours are those of the top-level packages that ``roots`` names, each below the folder that it gives.  Packages that
    hold a module count as imported, and so does what these modules import in turn.  Comments, docstrings, formatting
    and times of files do not change a digest.  A module that is not there, or is not valid Python, or imports what
    cannot be followed, raises a ValueError.
    """
    folders = tuple(roots.items())
    if _module(module, folders) is None:
        raise ValueError(f"There is no module {module}.")
    found, waiting = {}, [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name], imports = _module(name, folders)
            waiting += imports
    return [f"{name} {digest}" for name, digest in sorted(found.items())]


def notebook_digests(path: Path, roots: dict[str, Path]) -> list[str]:
    """Name and digest of each module of ours that the cells of a notebook import, as of a module's; ValueError if it is
    no notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{os.path.relpath(path)} is no notebook: {error!r}.") from None
    nodes = [node for source in sources for node in ast.walk(_cell_tree(source))]
    # A notebook is in no package, so that dots before a name lead nowhere.
    imports = [node for node in nodes if isinstance(node, ast.Import) or getattr(node, "level", None) == 0]
    names = {name for node in imports for name in _imported(node, "") if _file(name, roots)}
    return sorted({line for name in names for line in code_digests(name, roots)})


def _cell_tree(source: str) -> ast.Module:
    """Syntax tree of a cell, if need be without IPython's own lines; an empty one if it is no Python even so."""
    for code in (source, re.sub(r"(?m)^([ \t]*)[%!].*", r"\1pass", source)):
        with suppress(SyntaxError, ValueError):
            return ast.parse(code)
    return ast.Module([], [])


def text_digest(path: Path) -> str:
    """Name and digest of a file that a step reads, or of the captions in a folder, whatever their times."""
    files = sorted(path.glob("*.rst")) if path.is_dir() else [path]
    return f"{path.name} {digest(*(text for file in files for text in (file.name, file.read_text(encoding='utf-8'))))}"


def digest(*texts: str) -> str:
    """Short digest of texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


@cache
def _module(name: str, folders: tuple[tuple[str, Path], ...]) -> tuple[str, list[str]] | None:
    """Digest of a module of ours, and those of ours that it may import; None for another's."""
    roots = dict(folders)
    path = _file(name, roots)
    if path is None:
        return None
    code, imports, taken = _read(path, name)
    for package, attribute, line in taken:
        _check_taken(package, attribute, f"{os.path.relpath(path)}, line {line}", roots)
    return code, [one for one in dict.fromkeys([*imports, name.rpartition(".")[0]]) if _file(one, roots)]


def _file(module: str, roots: dict[str, Path]) -> Path | None:
    root = roots.get(module.split(".")[0])
    path = root and root.joinpath(*module.split("."))
    candidates = (path / "__init__.py", path.with_suffix(".py")) if path else ()
    return next((file for file in candidates if file.is_file()), None)


def _check_taken(package: str, name: str, where: str, roots: dict[str, Path]) -> None:
    """Refuse to take from a package of ours what is neither a module of it nor in its own code."""
    path = _file(package, roots)
    if path is None or path.name != "__init__.py" or _file(f"{package}.{name}", roots):
        return
    own = {getattr(node, "name", getattr(node, "id", None)) for node in ast.walk(syntax_tree(path))}
    if name not in own:
        raise ValueError(f"{where}: take {name!r} from the module that has it; what {package} finds is not followed.")


def _read(path: Path, module: str) -> tuple[str, list[str], list[tuple[str, str, int]]]:
    """Digest of a module, the names that it may import, and what it takes from modules that it imports by name, with
    the lines."""
    tree = syntax_tree(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names, taken, attributes, packages = [], [], [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += _imported(node, package)
            for alias in node.names:
                top = alias.name.partition(".")[0]
                packages[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            origin, *inside = _imported(node, package)
            names += [origin, *inside]
            taken += [(origin, alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes.append((node.value.id, node.attr, node.lineno))
        elif isinstance(node, ast.Name):
            names += [node.id] if node.id in DYNAMIC else []
    unseen = sorted(DYNAMIC & {*names}) if module not in FOLLOWED else []
    if unseen:
        raise ValueError(f"{os.path.relpath(path)}: what {unseen[0]} finds is not followed; use an import statement.")
    taken += [(packages[name], attribute, line) for name, attribute, line in attributes if name in packages]
    return digest(repr(_outline(tree))), names, taken


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """What a statement may import: of ``from a import b``, both a and a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    return [origin, *(f"{origin}.{alias.name}" for alias in node.names)]


def _outline(node):
    """A syntax tree as nested lists, without docstrings and empty fields, which vary with Python's version."""
    if isinstance(node, list):
        return [*map(_outline, node)]
    if not isinstance(node, ast.AST):
        return repr(node)
    found = [type(node).__name__]
    for name in node._fields:
        value = getattr(node, name, None)
        if name == "body" and isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            value = value[1:]
        if value is not None and value != []:
            found.append((name, _outline(value)))
    return found
