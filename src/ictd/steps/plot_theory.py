"""Draw the figures of the theory's checks."""

from pathlib import Path

from ictd.figures import theory
from ictd.figures.style import save
from ictd.frames import load_table
from ictd.steps import run


def main(tables: list[Path], env: str, states: int, discount: float, output: Path) -> None:
    """Write the figures as PNG and SVG into the folder ``output``; some show the one setting."""
    of = {path.stem: load_table(path) for path in tables}
    save(theory.theorem_1(of["statements"], of["precision"], discount), output / "theorem_1.png")
    save(theory.lemmas(of["statements"], env, states), output / "lemmas.png")
    for algo, name in (("td", "theorem_2"), ("mc", "corollary_1")):
        save(theory.expected_update(of["neu"], of["statements"], algo, env, states), output / f"{name}.png")
    save(theory.pretrained(of["pretrained"], of["repeated"]), output / "pretrained.png")


if __name__ == "__main__":
    run(main)
