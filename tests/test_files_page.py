"""docs/files.md names all files of a run, and all arrays, columns and keys in them, with their shapes."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
from projects import ROOT

TEXT = (ROOT / "docs/files.md").read_text(encoding="utf-8")
# Files with the same columns or keys as other files, and files without arrays.
ALIKE = {
    "theory/claims.json": "claims.json",
    "options/*/*.json": "options/*.json",
    **{f"theory/{table}/*.csv": f"theory/{table}.csv" for table in ("statements", "neu", "pretrained", "repeated")},
}
SHOWN = "report.html snakemake-report.html report.ipynb".split()
SHOWN += "figures/*.png figures/*.svg tables/*.html logs/ benchmarks/".split()


def sections() -> dict[str, dict[str, str]]:
    """Shapes of the arrays of each file by their names; empty ones for columns and keys."""
    found = {}
    for part in re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]:
        file = re.match(r"`([^`]+)`", part)[1]
        rows = [line.split("|") for line in part.split("\n## ")[0].splitlines() if line.startswith("| `")]
        found[file] = {
            name: cells[2].strip() if file.endswith(".npz") else ""
            for cells in rows for name in re.findall(r"`([^`]+)`", cells[1])
        }  # fmt: skip
    return found


def names_in(path: Path) -> set[str]:
    """Columns of a table, or keys of a mapping or of all mappings in a list."""
    if path.suffix == ".csv":
        return set(pd.read_csv(path).columns)
    found = json.loads(path.read_text())
    return set().union(*found) if isinstance(found, list) else set(found)


def check_shape(array: np.ndarray, text: str, sizes: dict[str, int]) -> None:
    """Compare a shape with its text, such as "S, 2n, 2n"; a letter is one size in all arrays of a file."""
    axes = text.split(", ") if text else []
    assert len(axes) == array.ndim
    for axis, length in zip(axes, array.shape, strict=True):
        factor, letter, added = re.fullmatch(r"(\d*)(\w)\+?(\d*)", axis).groups()
        size = (length - int(added or 0)) / int(factor or 1)
        assert sizes.setdefault(letter, size) == size


def test_every_file_and_array_is_on_the_page(smoke):
    results, told, met = smoke / "results-smoke", sections(), set()
    places = [*told, *ALIKE, *SHOWN]
    assert all(f"`{place}`" in TEXT for place in places)
    for path in results.rglob("*.*"):
        name = path.relative_to(results)
        if name.parts[0] in ("logs", "benchmarks") or path.is_dir():
            continue
        place = next((one for one in places if len(Path(one).parts) == len(name.parts) and name.match(one)), None)
        assert place, name
        if place in SHOWN:
            continue
        place = ALIKE.get(place, place)
        met.add(place)
        if path.suffix != ".npz":
            assert names_in(path) == told[place].keys(), name
            continue
        with np.load(path) as stored:
            arrays, sizes = dict(stored), {}
        assert arrays.keys() == told[place].keys(), name
        for array, shape in told[place].items():
            check_shape(arrays[array], shape, sizes)
    assert told.keys() - met == {"diverged/*.npz"}
