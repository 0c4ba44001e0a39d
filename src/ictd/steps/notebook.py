"""Execute a notebook."""

from pathlib import Path

import papermill

from ictd.steps import run
from ictd.storage import replacing


def main(notebook: Path, parameters: dict, output: Path) -> None:
    """Write the executed notebook.

    Raises
    ------
    ValueError
        If a cell fails.
    """
    with replacing(output) as temporary:
        try:
            papermill.execute_notebook(
                notebook, temporary, parameters, kernel_name="python3", progress_bar=False, log_output=True
            )
        except papermill.PapermillExecutionError as error:
            raise ValueError(f"{notebook}, cell {error.exec_count}: {error.ename}: {error.evalue}.") from error


if __name__ == "__main__":
    run(main)
