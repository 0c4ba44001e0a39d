"""Draw the figures of pretraining on sampled contexts."""

from pathlib import Path

from ictd.figures import agents
from ictd.figures.style import save
from ictd.frames import load_table
from ictd.steps import run


def main(
    tables: list[Path], env: str, states: int, depth: int, discount: float, tasks: int, lengths: list[int], output: Path
) -> None:
    """Write the figures as PNG and SVG into the folder ``output``; ``env`` to ``discount`` are the main setting."""
    of, setting = {path.stem: load_table(path) for path in tables}, (env, states, depth, discount)
    save(agents.beside_yardsticks(of, setting, tasks, lengths), output / "beside_yardsticks.png")
    save(agents.gaps(of, setting, tasks, max(lengths)), output / "gaps.png")
    save(agents.transfer(of, setting, tasks), output / "transfer.png")
    save(agents.teachers(of, setting, max(lengths)), output / "teachers.png")
    save(agents.weights(of, setting), output / "preconditioner.png")
    save(agents.attentions(of, setting), output / "attentions.png")


if __name__ == "__main__":
    run(main)
