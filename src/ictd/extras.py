"""The error of an optional dependency that is not installed.

Some modules need packages that ``pip install`` leaves out unless one of the extras "torch", "report" and "workflow" is
given (``pyproject.toml``).
"""


def missing_extra(extra: str, package: str) -> ModuleNotFoundError:
    """Make the error that says which extra installs a missing package."""
    return ModuleNotFoundError(f"{package} is not installed; run: pip install 'ictd[{extra}]'", name=package)
