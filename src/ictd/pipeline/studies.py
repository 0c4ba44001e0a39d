"""Studies beside the paper: folders of ``studies/`` that nothing else names.

What is wrong with one stops only what needs it.
"""

import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from ictd.pipeline.config import MOST_BYTES, check_size, checked_values

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


class _Loader(yaml.SafeLoader):
    """One that refuses a key that a mapping has twice, of which YAML's own would take the last."""

    def compose_mapping_node(self, anchor):
        node, seen = super().compose_mapping_node(anchor), set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is there twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return node


def load_yaml(path: Path) -> dict:
    """What a YAML file holds; ValueError with the file, and the line where it is known, if that is no mapping, or one
    with a key that is there twice, or one that ``check_size`` refuses."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES} bytes")
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error}.") from None
    except yaml.YAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if getattr(error, "problem_mark", None) else ""
        raise ValueError(f"{path}{line}: {getattr(error, 'problem', None) or 'it is not valid YAML'}.") from None
    except (ValueError, RecursionError) as error:
        what = str(error).partition(";")[0].partition("\n")[0]
        raise ValueError(f"{path} cannot be read: {what}.") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no keys with values.")
    check_size(found, str(path))
    return found


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
        with _replaced(workflow, refused), _replaced(workflow.globals["shell"], of_shell):
            yield
    except (Exception, SystemExit) as error:
        failed[name] = f"Study {name} is left out: {_explained(error, workflow.linemaps)}"
        print(failed[name], file=sys.stderr)
        del workflow.included_stack[stack:]
        workflow.default_target = target
        for rule in set(workflow._rules) - known:
            workflow.modifier.rules.discard(workflow._rules.pop(rule))
        workflow._localrules.intersection_update(workflow._rules)


@contextmanager
def _replaced(owner, methods: dict[str, Callable]) -> Iterator[None]:
    """Put other methods in the place of an object's or a class's own."""
    own = {name: vars(owner)[name] for name in methods if name in vars(owner)}
    for name, method in methods.items():
        setattr(owner, name, method)
    try:
        yield
    finally:
        for name in methods:
            delattr(owner, name)
        for name, method in own.items():
            setattr(owner, name, method)


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
