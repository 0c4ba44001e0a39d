"""Diagrams of the environments (Figures 3 and 8) and of the workflow."""

from pathlib import Path

from ictd.report.figures.environment_diagrams import environment_diagram
from ictd.report.figures.style import save
from ictd.report.figures.workflow import workflow


def main(environments: dict, states: int, jobs: dict, folder: Path) -> None:
    """Write figures as PNG and SVG.

    ``environments`` has for each figure its environment, the options of the environment, and the layout.  ``jobs`` has
    the number of jobs of each rule that has more than one.
    """
    for name, (env, options, layout) in environments.items():
        save(environment_diagram(env, options, layout, states), folder / f"{name}.png")
    save(workflow(jobs), folder / "workflow.png")
