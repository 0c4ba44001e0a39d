"""Compile a module's kernels into the cache (``ictd.kernels``), so that no other job has to.

A hundred processes that start at once on an empty cache would each compile for themselves.
"""

from importlib import import_module

from ictd.pipeline.provenance import code_digests
from ictd.pipeline.steps import ROOTS


def main(module: str) -> None:
    """Call each kernel of the module on a small task set; writes the cache only.

    ValueError if there is no such module of ours, or if it has none.
    """
    code_digests(module, ROOTS)
    compiled = import_module(module)
    if not hasattr(compiled, "compile_kernels"):
        raise ValueError(f"Module {module} has no kernels; name one with a function compile_kernels.")
    compiled.compile_kernels()
