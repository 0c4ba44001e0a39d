"""Heat maps of weights (Figures 2, 4, 6 and 9), and diagrams of the environments (3 and 8) and of the workflow."""

from pathlib import Path

from ictd.report.figures.environment_diagrams import environment_diagram
from ictd.report.figures.style import panels_of, save
from ictd.report.figures.weight_maps import weight_maps
from ictd.report.figures.workflow import workflow
from ictd.report.tables import load_tables


def main(
    weight_figures: dict, environment_figures: dict, states: int, jobs: dict, tables: list[Path], folder: Path
) -> None:
    """Write figures as PNG and SVG; the heat maps show the tables mean_entries and weights.

    ``weight_figures`` has for each figure what varies and the cells to show.  ``environment_figures`` has for each
    figure its environment, the options of the environment, and the layout.  ``jobs`` has the number of jobs of each
    rule that has more than one.
    """
    loaded = load_tables(tables)
    for name, (vary, *cells) in weight_figures.items():
        save(weight_maps(panels_of(cells, vary), **loaded), folder / f"{name}.png")
    for name, (env, options, layout) in environment_figures.items():
        save(environment_diagram(env, options, layout, states), folder / f"{name}.png")
    save(workflow(jobs), folder / "workflow.png")
