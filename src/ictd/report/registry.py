"""Registries of what a report shows: each figure and page is a function, whose docstring is its title and caption."""

import inspect
from collections.abc import Callable


def title_and_caption(function: Callable) -> tuple[str, str]:
    """Split a docstring into its first line, without the full stop, and the other lines, joined to one."""
    title, _, caption = inspect.cleandoc(function.__doc__).partition("\n\n")
    return title.removesuffix("."), " ".join(caption.split())
