"""What ``python -m ictd.steps`` says of steps and their options.

The sentences on settings are the schema's.  Those on files and on what names a run stand beside them, under
``$defs: options``: ``NAME`` for any step, ``STEP.NAME`` for one.
"""

import ast

from ictd.pipeline.steps import PROJECT, Step, all_steps, syntax_tree
from ictd.pipeline.yaml_files import load_yaml

SCHEMA = PROJECT / "workflow/schemas/config.schema.yaml"


def listing() -> str:
    """Every step with the first line of its module."""
    steps = all_steps().values()
    width = max(len(step.name) for step in steps)
    lines = [f"{step.name:{width}}  {_first_line(step)}" for step in steps]
    return "\n".join(["python -m ictd.steps NAME --help explains one of these:", "", *lines])


def _first_line(step: Step) -> str:
    try:
        return (ast.get_docstring(syntax_tree(step.path)) or "").partition("\n\n")[0].replace("\n", " ")
    except ValueError as error:
        return f"{error}"


def sentences(step: Step) -> dict[str, str]:
    """What help says of each parameter of a step, and of the step under the empty name."""
    schema = load_yaml(SCHEMA)
    of_study = load_yaml(PROJECT / "studies" / step.study / "schema.yaml") if step.study else {}
    options = {**schema["$defs"]["options"], **of_study.get("$defs", {}).get("options", {})}
    whole = {**schema["properties"], **({step.study: of_study} if step.study else {})}
    own = step.name.removeprefix(f"{step.study}.")
    says = {"": "\n\n".join([_first_line(step), ast.get_docstring(step.main) or ""])}
    for name, kind in step.parameters().items():
        described = None if "Path" in kind else _described(whole, step.sections(), name)
        sentence = options.get(f"{own}.{name}") or described or options.get(name)
        if sentence is None and "Path" not in kind:
            sentence = _described(whole, ["readings", ""], name)
        says[name] = (sentence or "").replace("%", "%%")
    return says


def _described(properties: dict, sections: list[str], name: str) -> str | None:
    """The schema's sentence on a key of the first section that has it, with the values that it may have."""
    for section in sections:
        inner = properties
        for part in section.split(".") if section else []:
            inner = inner[part]["properties"]
        if name in inner and "description" in inner[name]:
            choices = inner[name].get("enum")
            return inner[name]["description"] + (f" One of {', '.join(map(str, choices))}." if choices else "")
    return None
