"""Write the tables of the report, as HTML."""

from pathlib import Path

import yaml

from ictd import html, summaries
from ictd.frames import load_table
from ictd.steps import run
from ictd.storage import load_json
from ictd.theory.claims import SECTIONS


def main(claims: Path, tables: list[Path], statements: Path, settings: dict, schema: Path, output: Path) -> None:
    """Write the pages, claims to readings, into the folder ``output``."""
    described = yaml.safe_load(schema.read_text(encoding="utf-8"))
    readings = settings.pop("readings")
    decided = load_json(claims)
    loaded = {path.stem: load_table(path) for path in tables}
    of_theory = [claim for claim in decided if claim["section"] in SECTIONS]
    of_experiments = [claim for claim in decided if claim["section"] not in SECTIONS]
    frames = {
        "claims": summaries.claims_overview(of_experiments),
        "theory": summaries.theory_overview(of_theory, load_table(statements)),
        "claims_all": summaries.claims_listing(decided),
        "msve": summaries.msve_summary(loaded["msve"], loaded["baselines"], loaded["weights"]),
        "mean_weights": summaries.weights_summary(loaded["mean_weights"]),
        "agreement": loaded["agreement"],
        "audit": loaded["audit"],
        "settings": summaries.settings_table(settings, described),
        "readings": summaries.settings_table(readings, described["properties"]["readings"]).drop(columns="paper"),
    }
    for name, frame in frames.items():
        note = f"<p>{summaries.difference_from_paper(settings, described)}</p>\n" if name == "settings" else ""
        html.save(output / f"{name}.html", name, note + html.table(frame))


if __name__ == "__main__":
    run(main)
