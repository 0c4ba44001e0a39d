"""Steps: modules with a function ``main``, found by name and read without being imported.

A step is named by its module, without ``ictd.steps.``, ``ictd.`` or ``studies.`` in front: ``tasks`` is
``ictd.steps.tasks``, ``theory.values`` is ``ictd.theory.values``, and ``NAME.MODULE`` is a step of the study NAME.
"""

import ast
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from ictd.pipeline.grid import main_setting

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
        return next(node for node in syntax_tree(self.path).body if getattr(node, "name", "") == "main")

    def parameters(self) -> dict[str, str]:
        """Names and types of what ``main`` takes; ValueError for one that has none of TYPES, or a list of one."""
        found, arguments = {}, self.main.args
        for one in (*arguments.args, *arguments.kwonlyargs):
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
        own = "theory" if self.module.startswith("ictd.theory.") else None
        for node in syntax_tree(self.path).body:
            targets = [*getattr(node, "targets", []), getattr(node, "target", None)]
            if any(getattr(one, "id", "") == "SECTION" for one in targets):
                own = getattr(getattr(node, "value", None), "value", None)
                if not isinstance(own, str):
                    where = f"{os.path.relpath(self.path)}, line {node.lineno}"
                    raise ValueError(f"{where}: give SECTION as a text, the name of a section.")
        if self.study:
            return [*([f"{self.study}.{own}"] if own else []), self.study]
        return [own] if own else []

    def settings(self, config: dict, studies: Collection[str] = ()) -> dict:
        """What it may take from a configuration by name, of which ``studies`` are the studies' sections.

        Of the sections, other than its own and the readings, nothing is taken, nor what has the name of one of their
        keys.
        """
        paper = {key: value for key, value in config.items() if key not in studies}
        inner = [key for key, value in paper.items() if isinstance(value, dict) and key != "readings" for key in value]
        found = {key: value for key, value in (paper | paper["readings"]).items() if key not in inner}
        found |= main_setting(config)
        for name in reversed(self.sections()):
            section = config
            for part in name.split("."):
                section = section.get(part)
                if not isinstance(section, dict):
                    raise ValueError(f"{self.path}: SECTION names {name!r}, which is no section of the configuration.")
            found |= section
        return found


def syntax_tree(path: Path) -> ast.Module:
    """Syntax tree of a Python file; ValueError with file and line if it has none."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise ValueError(f"{os.path.relpath(path)}, line {error.lineno}: {error.msg}.") from None
    except ValueError as error:
        raise ValueError(f"{os.path.relpath(path)} is no Python: {error}.") from None


def all_steps() -> dict[str, Step]:
    """Every step by its name, those of the paper first; what is no Python file is passed over."""
    paths = [(top, path) for top in ROOTS for path in sorted((ROOTS[top] / top).rglob("[!.]*.py"))]
    modules = [".".join(path.relative_to(ROOTS[top]).with_suffix("").parts) for top, path in paths]
    return {step.name: step for step in map(_step, modules) if step}


def find_step(name: str) -> Step:
    """The step of a name; ValueError if there is none.  Only files of that name are looked at."""
    modules = [prefix + name for prefix in PREFIXES] if re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)*", name) else []
    found = [step for step in map(_step, modules) if step and step.name == name]
    if not found:
        raise ValueError(f"there is no step {name!r}; `python -m ictd.steps` lists all.")
    return found[0]


def _step(module: str) -> Step | None:
    """The step that a module is, if it is one."""
    top, *inner = module.split(".")
    path = ROOTS[top].joinpath(top, *inner).with_suffix(".py")
    if (top == "studies" and len(inner) < 2) or "tests" in inner or not path.is_file():
        return None
    if not re.search(rb"^def main\(", path.read_bytes(), re.MULTILINE):
        return None
    return Step(module.removeprefix(next(prefix for prefix in PREFIXES if module.startswith(prefix))), module, path)
