"""Environments and algorithms of one's own in the workflow: files that the key ``extensions`` of the settings names.

Each file registers them with ``ictd.register_environment`` and ``ictd.register_algorithm``.  The configuration and
every job load the files, so the names are known like those of Boyan's chains and TD.  An edit of a file, of a file that
it reads, or of a module that it imports from the project's folder reruns the jobs that use one of its names, and those
that depend on them.
"""

import importlib.util
import os
from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path

from ictd.algorithms import ALGORITHMS
from ictd.mrp import ENVIRONMENTS, FILES_READ
from ictd.pipeline.provenance import PROJECT, digest, syntax_tree, without_docstrings

# Names the files to the processes of jobs.
EXTENSIONS_VARIABLE = "ICTD_EXTENSIONS"
# What files can register, by the module that a step imports if it uses one of the names.
REGISTRIES = {"ictd.mrp": ENVIRONMENTS, "ictd.algorithms": ALGORITHMS}
# The file that registered each name of one's own, by module and name.
FILES: dict[tuple[str, str], Path] = {}


def load_extensions(files: list[str]) -> None:
    """Load Python files that register environments or algorithms.

    Raises
    ------
    ValueError
        If a file is missing, has a path that cannot be used, is not valid Python, raises an error, or registers
        nothing.
    """
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise ValueError(f"Config: extensions names {file}, which is no file.")
        if path.suffix != ".py" or os.pathsep in file:
            raise ValueError(f"Config: extensions names {file}; give a path that ends in .py, without {os.pathsep!r}.")
        syntax_tree(path)
        before = {module: dict(registry) for module, registry in REGISTRIES.items()}
        spec = importlib.util.spec_from_file_location(f"extensions_{path.stem}", path)
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception as error:
            raise ValueError(f"{file} cannot be loaded: {type(error).__name__}: {error}.") from error
        registered = {
            (module, name): path
            for module, registry in REGISTRIES.items()
            for name in registry
            if registry[name] is not before[module].get(name)
        }
        if not registered:
            raise ValueError(
                f"{file} registers nothing; decorate a function with @ictd.register_environment or"
                " @ictd.register_algorithm."
            )
        FILES.update(registered)


def load_from_variable() -> None:
    """Load the files that the environment variable of a job names."""
    files = os.environ.get(EXTENSIONS_VARIABLE, "")
    load_extensions(files.split(os.pathsep) if files else [])


@cache
def extension_digest(name: str) -> str:
    """Digest of the files that register a name of one's own, of their modules, and of the files that they read.

    It is empty for other names.  ValueError if a file that an environment reads cannot be read.
    """
    files = [path for (_, registered), path in FILES.items() if registered == name]
    if not files:
        return ""
    contents = [without_docstrings(path) for file in files for path in own_modules(file)]
    for path in map(files[0].parent.joinpath, FILES_READ.get(name, ())):
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
