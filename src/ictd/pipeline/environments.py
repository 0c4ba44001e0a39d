"""Environments of one's own in the workflow: files that the key ``environments`` of the configuration names.

Each file registers its environments with ``ictd.register_environment``.  The configuration and every job load the
files, so the names are known like those of Boyan's chains and Loop.  An edit of a file, of a file that it reads, or of
a module that it imports from the project's folder reruns the jobs that can draw tasks from its environments, and those
that depend on them.
"""

import importlib.util
import os
from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path

from ictd.mrp import ENVIRONMENTS, FILES_READ
from ictd.pipeline.provenance import PROJECT, digest, syntax_tree, without_docstrings

# Names the files to the processes of jobs.
ENVIRONMENTS_VARIABLE = "ICTD_ENVIRONMENTS"
# The file that registered each environment of one's own.
FILES: dict[str, Path] = {}


def load_environments(files: list[str]) -> None:
    """Load Python files that register environments.

    Raises
    ------
    ValueError
        If a file is missing, has a path that cannot be used, is not valid Python, raises an error, or registers no
        environment.
    """
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise ValueError(f"Config: environments names {file}, which is no file.")
        if path.suffix != ".py" or os.pathsep in file:
            raise ValueError(
                f"Config: environments names {file}; give a path that ends in .py, without {os.pathsep!r}."
            )
        syntax_tree(path)
        before = dict(ENVIRONMENTS)
        spec = importlib.util.spec_from_file_location(f"environments_{path.stem}", path)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception as error:
            raise ValueError(f"{file} cannot be loaded: {type(error).__name__}: {error}.") from error
        registered = {name: path for name in ENVIRONMENTS if ENVIRONMENTS[name] is not before.get(name)}
        if not registered:
            raise ValueError(f"{file} registers no environment; decorate a function with @ictd.register_environment.")
        FILES.update(registered)


def load_from_variable() -> None:
    """Load the files that the environment variable of a job names."""
    files = os.environ.get(ENVIRONMENTS_VARIABLE, "")
    load_environments(files.split(os.pathsep) if files else [])


@cache
def environment_digest(name: str) -> str:
    """Digest of the file that registers an environment of one's own, of its modules, and of the files that it reads.

    It is empty for other names.  ValueError if a file that the environment reads cannot be read.
    """
    if name not in FILES:
        return ""
    file = FILES[name]
    contents = [without_docstrings(path) for path in own_modules(file)]
    for path in map(file.parent.joinpath, FILES_READ[name]):
        try:
            contents.append(path.read_bytes().hex())
        except OSError as error:
            raise ValueError(f"Environment {name!r} reads {path}: {error.strerror}.") from None
    return digest(*contents)


def own_modules(file: Path) -> list[Path]:
    """A Python file, and the modules in the project's folder that it imports, directly or not."""
    finder = ModuleFinder([str(PROJECT)])
    finder.run_script(str(file))
    return [file, *sorted(Path(module.__file__) for name, module in finder.modules.items() if name != "__main__")]
