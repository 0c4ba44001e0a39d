"""Draw an example of an environment (Figures 3 and 8)."""

from pathlib import Path

from ictd.environments import sample_tasks
from ictd.figures import diagrams
from ictd.figures.style import save
from ictd.steps import run
from ictd.streams import generator


def main(env: str, states: int, env_options: dict, layout: str, output: Path) -> None:
    """Write the figure as PNG and SVG; ``layout`` is "line" or "circle"."""
    tasks = sample_tasks(env, states, 1, generator(0, env, states, "diagram"), **env_options)
    draw = {"line": diagrams.line_diagram, "circle": diagrams.circle_diagram}[layout]
    save(draw(tasks.transition[0]), output)


if __name__ == "__main__":
    run(main)
