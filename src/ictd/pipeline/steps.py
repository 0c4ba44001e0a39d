"""Steps: modules with a function ``main``, found by name and read without being imported.

A step is named by its module, without ``ictd.steps.``, ``ictd.`` or ``studies.`` in front: ``tasks`` is
``ictd.steps.tasks``, ``theory.values`` is ``ictd.theory.values``, and ``NAME.MODULE`` is a step of the study NAME.
"""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# The project's folder, and where its packages are.
PROJECT = Path(__file__).parents[3]
ROOTS = {"ictd": PROJECT / "src", "studies": PROJECT}
PREFIXES = ("ictd.steps.", "ictd.", "studies.")


@dataclass(frozen=True)
class Step:
    """A module with a ``main``.

    Parameters
    ----------
    name : str, as in commands and rules
    path : Path of the module
    """

    name: str
    path: Path

    @property
    def module(self) -> str:
        """Full name of the module."""
        root = ROOTS[self.top]
        return ".".join(self.path.relative_to(root).with_suffix("").parts)

    @property
    def top(self) -> str:
        """Package that the module is in, a key of ROOTS."""
        return "ictd" if self.path.is_relative_to(ROOTS["ictd"]) else "studies"

    @property
    def study(self) -> str | None:
        """Name of the study that the step belongs to, if it does."""
        return self.module.split(".")[1] if self.top == "studies" else None

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree; ValueError with file and line if it has none."""
        try:
            return ast.parse(self.path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise ValueError(f"{self.path}, line {error.lineno}: {error.msg}.") from None

    @property
    def main(self) -> ast.FunctionDef | None:
        """Its function ``main``."""
        functions = (node for node in self.tree.body if isinstance(node, ast.FunctionDef))
        return next((node for node in functions if node.name == "main"), None)

    @property
    def parameters(self) -> dict[str, str]:
        """Names and annotations of what ``main`` takes."""
        return {one.arg: ast.unparse(one.annotation) for one in self.main.args.args}

    @property
    def sections(self) -> list[str]:
        """Sections of the configuration that its values are looked for in first, with dots where they are nested.

        That is the one that the module's SECTION names, or the theory's for a module of it.  A study has the section of
        its own name, and SECTION is a part of that.
        """
        assigned = {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        own = [ast.literal_eval(assigned["SECTION"])] if "SECTION" in assigned else []
        if self.study:
            return [*(f"{self.study}.{section}" for section in own), self.study]
        return own or (["theory"] if self.module.startswith("ictd.theory.") else [])


def find_step(name: str) -> Step:
    """The step of a name.

    Raises
    ------
    ValueError
        If there is none, or its module is not valid Python.
    """
    for prefix in PREFIXES:
        top, *parts = f"{prefix}{name}".split(".")
        path = ROOTS[top].joinpath(top, *parts).with_suffix(".py")
        if all(part.isidentifier() for part in parts) and path.is_file():
            step = Step(name, path)
            if step.main:
                return step
    raise ValueError(f"there is no step {name!r}; `python -m ictd.steps` lists all.")


def all_steps() -> list[Step]:
    """Every step, those of the paper first; a study whose modules are not valid Python keeps its own to itself."""
    found = []
    for prefix in PREFIXES:
        top, *parts = prefix.rstrip(".").split(".")
        folder = ROOTS[top].joinpath(top, *parts)
        for path in sorted(folder.rglob("*.py")):
            step = Step(".".join(path.relative_to(folder).with_suffix("").parts), path)
            known = path.name.startswith("__") or "tests" in path.parts or any(path == other.path for other in found)
            if not known and _has_main(step):
                found.append(step)
    return found


def _has_main(step: Step) -> bool:
    try:
        return step.main is not None
    except ValueError:
        return False
