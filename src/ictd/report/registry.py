"""Docstrings that readers see: those of claims, figures, tables and pages."""

import inspect
from collections.abc import Callable


def paragraphs(function: Callable) -> list[str]:
    """The paragraphs of a function's docstring, each in one line."""
    return [" ".join(part.split()) for part in inspect.getdoc(function).split("\n\n")]


def title_and_caption(function: Callable) -> tuple[str, str]:
    """The first paragraph of a docstring, without the full stop, and the others, joined to one."""
    title, *others = paragraphs(function)
    return title.removesuffix("."), " ".join(others)
