"""Steps: modules with a function ``main``, found by name and read without being imported.

A step is named by its module, without ``ictd.steps.``, ``ictd.`` or ``studies.`` in front: ``tasks`` is
``ictd.steps.tasks``, ``theory.values`` is ``ictd.theory.values``, and ``NAME.MODULE`` is a step of the study NAME.
"""

import ast
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

# The project's folder, and where its packages are.
PROJECT = Path(__file__).parents[3]
ROOTS = {"ictd": PROJECT / "src", "studies": PROJECT}
PREFIXES = ("ictd.steps.", "ictd.", "studies.")
# Of the options of steps; a dict is given as JSON.
TYPES = ("int", "float", "str", "dict", "Path")


class Step(NamedTuple):
    """A module with a ``main``: its name in commands and rules, its full name, and its file."""

    name: str
    module: str
    path: Path

    @property
    def study(self) -> str | None:
        """Name of the study that it belongs to, if it does."""
        top, inner, *_ = self.module.split(".")
        return inner if top == "studies" else None

    @property
    def main(self) -> ast.FunctionDef:
        """Syntax tree of its ``main``."""
        return next(node for node in self.tree().body if getattr(node, "name", "") == "main")

    def parameters(self) -> dict[str, str]:
        """Names and types of what ``main`` takes; ValueError for one that has none of TYPES, or a list of one."""
        found = {}
        for one in (*self.main.args.args, *self.main.args.kwonlyargs):
            found[one.arg] = ast.unparse(one.annotation) if one.annotation else "none"
            if found[one.arg].removeprefix("list[").removesuffix("]") not in TYPES:
                where = f"{os.path.relpath(self.path)}, line {one.lineno}"
                raise ValueError(f"{where}: give main's {one.arg} a type, {', '.join(TYPES)} or a list of one.")
        return found

    def sections(self) -> list[str]:
        """Sections of the configuration that its values are looked for in first, with dots where they are nested.

        That is the one that the module's SECTION names, or the theory's for a module of it.  A study has the section of
        its own name, and SECTION is a part of that.
        """
        found = re.search(r'^SECTION = "(.+)"$', self.path.read_text(encoding="utf-8"), re.MULTILINE)
        own = found[1] if found else "theory" if self.module.startswith("ictd.theory.") else None
        if self.study:
            return [*([f"{self.study}.{own}"] if own else []), self.study]
        return [own] if own else []

    def tree(self) -> ast.Module:
        """Its syntax tree; ValueError with file and line if it has none."""
        try:
            return ast.parse(self.path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise ValueError(f"{os.path.relpath(self.path)}, line {error.lineno}: {error.msg}.") from None


@cache
def all_steps() -> dict[str, Step]:
    """Every step by its name, those of the paper first."""
    found = {}
    for top in ROOTS:
        for path in sorted((ROOTS[top] / top).rglob("*.py")):
            module = ".".join(path.relative_to(ROOTS[top]).with_suffix("").parts)
            if ".tests." not in module and re.search(rb"^def main\(", path.read_bytes(), re.MULTILINE):
                name = module.removeprefix(next(prefix for prefix in PREFIXES if module.startswith(prefix)))
                found[name] = Step(name, module, path)
    return found


def find_step(name: str) -> Step:
    """The step of a name; ValueError if there is none."""
    steps = all_steps()
    if name not in steps:
        raise ValueError(f"there is no step {name!r}; `python -m ictd.steps` lists all.")
    return steps[name]
