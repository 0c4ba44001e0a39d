"""Compile a module's kernels into the cache (``ictd.kernels``), so that no other job has to.

A hundred processes that start at once on an empty cache would each compile for themselves.
"""

from importlib import import_module


def main(module: str) -> None:
    """Call each kernel of the module on a small task set; writes the cache only."""
    import_module(module).compile_kernels()
