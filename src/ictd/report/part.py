"""The results of a part, which is the paper's part or a study: claims, figures, tables and numbers.

A part has a module ``results`` with a function ``load(folder, settings, *texts)``, which reads the results of the
part's steps from its folder, and functions with the decorators ``claim``, ``figure``, ``table`` and ``numbers``.  These
functions get what ``load`` returns.  The list ``MODULES`` of the module, if there is one, has further modules with such
functions.

``settings`` are those of the part; those of a study have the paper's under the key "paper".  ``texts`` are files of the
project, which the part's rule names.  A function ``files`` of what ``load`` returns may give more files, as JSON by
their names in the folder.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from ictd.pipeline.provenance import PROJECT
from ictd.report.claim import Claim, Statement, claim, paragraphs

__all__ = ["claim", "figure", "numbers", "table"]

# The name of the paper's part.
PAPER = "paper"


@dataclass(frozen=True)
class Output:
    """A function of a part that makes a figure, a table or numbers.

    Parameters
    ----------
    kind : str, "figure", "table" or "numbers"
    make : function of what ``load`` returns
    """

    kind: str
    make: Callable

    @property
    def name(self) -> str:
        """The function's name."""
        return self.make.__name__

    @property
    def caption(self) -> str:
        """The docstring in one line."""
        return " ".join(paragraphs(self.make))


def figure(make: Callable) -> Output:
    """Register a function that returns a Matplotlib figure, or None if a run has nothing to draw.

    Its docstring is the caption, whose first paragraph is a title.  Pages show its first sentences, and fold the others
    (``ictd.report.html.folded``).
    """
    return Output("figure", make)


def table(make: Callable) -> Output:
    """Register a function that returns a small DataFrame, which pages quote, or HTML, which only the part's page shows.

    Its docstring is the caption.
    """
    return Output("table", make)


def numbers(make: Callable) -> Output:
    """Register a function that returns a dict of numbers or short texts, which pages quote by their names."""
    return Output("numbers", make)


def imported(name: str) -> ModuleType:
    """A module of the package or of a study, by its name."""
    if str(PROJECT) not in sys.path:
        # Last, because names in the project's folder may be those of other packages.
        sys.path.append(str(PROJECT))
    return import_module(name)


def members(module: ModuleType, kind: type) -> list:
    """The values of a type in a module, and in lists in it, in their order; before them those of its ``MODULES``."""
    modules = [*getattr(module, "MODULES", []), module]
    values = [value for one in modules for value in vars(one).values()]
    nested = [value if isinstance(value, list) else [value] for value in values]
    return [value for several in nested for value in several if isinstance(value, kind)]


def statements_in(module: ModuleType) -> list[Statement]:
    """The statements of a module, and of its ``MODULES``."""
    return members(module, Statement)


def outputs_in(module: ModuleType, kind: str) -> list[Output]:
    """The figures, tables or numbers of a module, and of its ``MODULES``."""
    return [output for output in members(module, Output) if output.kind == kind]


def decide(module: ModuleType, results) -> list[Claim]:
    """Decide all claims of a module, and of its ``MODULES``."""
    return [made for statement in statements_in(module) for made in statement.decide(results)]
