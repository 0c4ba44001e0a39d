"""Studies beside the paper: folders of ``studies/`` that nothing else names.

What is wrong with one stops only what needs it.
"""

import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from ictd.pipeline.config import checked_values
from ictd.pipeline.yaml_files import load_yaml

# What holds for the whole workflow, by its names in rules files and in Snakemake.
GLOBAL = {"pathvars": "register_pathvars", "wildcard_constraints": "global_wildcard_constraints"}
GLOBAL |= {"container": "global_container", "containerized": "global_containerized"}
GLOBAL |= {name: name for name in ("onerror", "onstart", "onsuccess", "report", "workdir")}
# What a study has to have; `studies/README.md` says what each is.
PARTS = ("README.md", "rules.smk", "config.yaml", "schema.yaml")


def study_names(folder: Path) -> list[str]:
    """Names of the studies in a folder; a folder that holds no file but what Python compiled is none."""
    inner = sorted(folder.glob("[!._]*/")) if folder.is_dir() else []
    return [path.name for path in inner if any(part.is_file() and part.suffix != ".pyc" for part in path.rglob("*"))]


def check_name(name: str, taken: Collection[str]) -> None:
    """Refuse a study's name that the paper has for something else, or that is no word."""
    if name in taken:
        raise ValueError(f"the paper has a rule, setting, module or results of that name; rename studies/{name}.")
    if not (name.isidentifier() and name.islower()):
        raise ValueError(f"studies/{name} is no name of small letters, digits and _; rename it.")


def study_settings(folder: Path, given: dict, definitions: dict) -> dict:
    """Settings of a study: its own ``config.yaml`` with what is given in place of single values.

    ``folder`` is the study's, ``given`` is what the configuration has under the study's name, and ``definitions`` are
    the paper's ``$defs``, which the study's schema may refer to.  A folder that is incomplete, a file that is not valid
    YAML, or settings that do not fit raise a ValueError of one sentence.
    """
    missing = [part for part in PARTS if not (folder / part).is_file()]
    if missing:
        raise ValueError(f"{folder} lacks {', '.join(missing)}.")
    settings, schema = (load_yaml(folder / name) for name in ("config.yaml", "schema.yaml"))
    schema |= {"$defs": definitions | schema.get("$defs", {})}
    return checked_values(_merged(settings, given) if isinstance(given, dict) else given, schema, folder.name)


def _merged(settings: dict, given: dict) -> dict:
    """Settings with what is given in their place; mappings are merged, lists replaced."""
    both = {key: _merged(settings[key], given[key]) for key in settings.keys() & given.keys()
            if isinstance(settings[key], dict) and isinstance(given[key], dict)}  # fmt: skip
    return settings | given | both


@contextmanager
def left_out_if_it_fails(workflow, name: str, failed: dict[str, str]) -> Iterator[None]:
    """Include a study's rules; where that fails, say why and go on without them.

    ``workflow`` is a snakemake.workflow.Workflow, and ``failed`` gets the sentence that says what is wrong, under the
    study's name.
    """
    stack, target, known = len(workflow.included_stack), workflow.default_target, set(workflow._rules)
    refused = {method: _stands_in_rules(directive) for directive, method in GLOBAL.items()}
    of_shell = {method: _stands_in_rules(f"shell.{method}") for method in ("executable", "prefix", "suffix")}
    try:
        with patch.multiple(workflow, **refused), patch.multiple(workflow.globals["shell"], **of_shell):
            yield
    except (Exception, SystemExit) as error:
        failed[name] = f"Study {name} is left out: {_explained(error, workflow.linemaps)}"
        print(failed[name], file=sys.stderr)
        del workflow.included_stack[stack:]
        workflow.default_target = target
        for rule in set(workflow._rules) - known:
            workflow.modifier.rules.discard(workflow._rules.pop(rule))
        workflow._localrules.intersection_update(workflow._rules)


def _stands_in_rules(directive: str) -> Callable:
    """What stands in a directive's place while a study is read."""

    def refuse(*_, **__):
        raise ValueError(f"its rules.smk sets {directive} for the whole workflow; say it in the study's rules.")

    return refuse


def refusing(sentence: str) -> Callable:
    """An input function that ends Snakemake with a sentence, whatever it is asked for."""

    def refuse(wildcards):
        sys.exit(sentence)

    return refuse


def _explained(error: BaseException, linemaps: dict) -> str:
    """What is wrong, with file and line where they are known, as the rest of a sentence."""
    what = str(getattr(error, "msg", None) or error).partition("\n")[0].rstrip(".") or type(error).__name__
    if isinstance(error, ValueError):
        return f"{what}."
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    # Python that Snakemake makes of a rules file has other lines; what its parser refuses has the file's.
    own = any(Path(file).parts[-2:] == ("snakemake", "parser.py") for file, _ in frames)
    if isinstance(error, SyntaxError):
        frames.append((error.filename, error.lineno))
    for file, line in reversed(frames):
        if str(file).endswith("rules.smk"):
            line = line if own else linemaps.get(file, {}).get(line, line)
            return f"{os.path.relpath(file)}, line {line}: {what}."
    return f"{what}."
