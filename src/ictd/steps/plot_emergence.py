"""Draw the figures of what emerges, and A in the course of pretraining as an animation."""

from pathlib import Path

from ictd.figures import emergence
from ictd.figures.style import save
from ictd.frames import load_table
from ictd.steps import run
from ictd.storage import load_arrays


def main(tables: list[Path], run_shown: Path, env: str, states: int, depth: int, output: Path) -> None:
    """Write the figures as PNG and SVG into the folder ``output``, and the animation of one run as GIF."""
    of = {path.stem: load_table(path) for path in tables}
    save(emergence.decompositions(of["measures"]), output / "decompositions.png")
    save(emergence.ablations(of["ablations"], of["yardsticks"], (env, states, depth)), output / "ablations.png")
    save(emergence.course(of["course"]), output / "course.png")
    save(emergence.phase(of["phase"]), output / "phase.png")
    seen, A = load_arrays(run_shown, "tasks_seen", "A")
    emergence.save_animation(seen, A, output / "emergence_animation.gif")


if __name__ == "__main__":
    run(main)
