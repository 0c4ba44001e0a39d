"""Draw a figure of the theory's checks."""

from pathlib import Path

from ictd.figures import theory
from ictd.figures.style import save
from ictd.frames import load_table
from ictd.steps import run


def main(kind: str, tables: list[Path], env: str, states: int, output: Path) -> None:
    """Write a figure as PNG and SVG; ``kind`` is theorem_1, lemmas, theorem_2, corollary_1 or pretrained."""
    loaded = {path.stem: load_table(path) for path in tables}
    if kind == "theorem_1":
        figure = theory.theorem_1(loaded["statements"], loaded["precision"])
    elif kind == "lemmas":
        figure = theory.lemmas(loaded["statements"], env, states)
    elif kind == "pretrained":
        figure = theory.pretrained(loaded["pretrained"], loaded["repeated"])
    else:
        algo = "td" if kind == "theorem_2" else "mc"
        figure = theory.expected_update(loaded["neu"], loaded["statements"], algo, env, states)
    save(figure, output)


if __name__ == "__main__":
    run(main)
