"""What Snakemake's report says first: what came out of a run, with which settings, and on which software."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import yaml

from ictd.report.settings import difference_from_paper
from ictd.report.verdicts import count
from ictd.storage import load_json, save_text

WHOSE = {"paper": "claims and statements of the paper", "ours": "claims of our own", "check": "checks"}
# The libraries of figures and tables; the manifest has those of computing jobs.
DRAWING_LIBRARIES = ("matplotlib", "pandas")


def main(manifest: Path, claims: Path, schema: Path, output: Path) -> None:
    """Write the text, in reStructuredText."""
    made, described = load_json(manifest), yaml.safe_load(schema.read_text(encoding="utf-8"))
    versions = made["versions"] | {name: version(name) for name in DRAWING_LIBRARIES}
    parts = {
        "Claims": verdicts(load_json(claims)),
        "Settings": difference_from_paper(made["settings"], described),
        "Software": ", ".join(f"{name} {version}" for name, version in versions.items()) + ".",
        "Environment": environment(Path(sys.prefix), "APPTAINER_CONTAINER" in os.environ),
        "Commit": f"``{made['commit']}``" if made["commit"] else "not known, as git does not track the code.",
    }
    save_text(output, "\n".join(f"**{name}.** {text}\n" for name, text in parts.items()))


def verdicts(claims: list[dict]) -> str:
    """A sentence on how many claims hold in every place that they speak of."""
    counts = [(whose, *count([claim for claim in claims if claim["kind"] == kind])) for kind, whose in WHOSE.items()]
    said = [f"{hold} of {number} {whose}" for whose, number, hold in counts if number]
    return f"{', '.join(said)} hold in every place that they speak of."


def environment(prefix: Path, contained: bool) -> str:
    """A sentence on where jobs ran, from the folder of this job's Python, and whether it runs in a container."""
    # Snakemake makes conda's environments in its own folder.
    if ".snakemake" in prefix.parts:
        return "Jobs ran in environments that Snakemake made with conda from the files in ``envs/``."
    if contained:
        return "Jobs ran in the container image."
    return (
        "Jobs ran in the Python environment of Snakemake itself; the conda environments and the container that this "
        "report names with rules were not used."
    )
