"""In-context temporal difference learning: the experiments of "Towards Provable Emergence of In-Context RL".

Names are loaded on first use, so that importing one module does not import torch and numba.  ``__init__.pyi`` lists the
names, for this module as for type checkers and editors.
"""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

# The module that defines each name.
_HOME = {
    alias.name: statement.module
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}
# Names that need torch; without it, they are left out of __all__ and dir, so that ``help(ictd)`` works.
_OF_TORCH = {name for name, module in _HOME.items() if module in ("ictd.attention", "ictd.torch_twin")}

__all__ = sorted(_HOME if find_spec("torch") else _HOME.keys() - _OF_TORCH)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"ictd has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
