"""The reference of a finished run in the repository, with which ``make verify`` compares another run.

It has the run's settings, the names of its files, and the claims and numbers of each part (``ictd.report.numbers``).
"""

from pathlib import Path

from ictd.report.numbers import reference_of
from ictd.report.part import PAPER
from ictd.storage import load_json, save_json, save_table


def main(results: Path, output: Path) -> None:
    """Write the settings and names of files of a finished run as JSON, and the reference of each part as CSV.

    The parts are the paper's part, and each study that has run (``make reference``).  Without the paper's part, the
    entries of the others in the JSON file stay as they are.
    """
    found = parts(results)
    if PAPER in found:
        run = {"settings": {}, **names_of_files(load_json(results / "manifest.json"))}
    else:
        run = load_json(output / "run.json")
    run["settings"] |= settings_of(results)
    save_json(output / "run.json", run)
    for part, folder in found.items():
        save_table(output / f"pages/{part}.csv", reference_of(folder))


def settings_of(results: Path) -> dict[str, dict]:
    """Settings of the paper's part, and of each study that has run."""
    settings = {
        part: load_json(results / f"options/results/{part}.json")["options"]["settings"]
        for part in parts(results)
        if part != PAPER
    }
    of_paper = {PAPER: load_json(results / "manifest.json")["settings"]} if PAPER in parts(results) else {}
    return of_paper | settings


def parts(results: Path) -> dict[str, Path]:
    """Folders of results of the paper's part if it has run, and of each study that has run, by their names."""
    studies = {path.parent.name: path.parent for path in sorted(results.glob("*/numbers.csv"))}
    return ({PAPER: results} if (results / "manifest.json").exists() else {}) | studies


def names_of_files(manifest: dict) -> dict[str, list[str]]:
    """Names of the results, "files", and of the pages that a manifest lists."""
    return {kind: sorted(manifest[kind]) for kind in ("files", "pages")}
