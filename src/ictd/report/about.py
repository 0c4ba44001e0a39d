"""The text on the first page of Snakemake's report: the verdicts, settings and software of a run."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import yaml

from ictd.report.sentences import counted, in_one_sentence
from ictd.report.settings import difference_from_paper
from ictd.report.verdicts import count
from ictd.storage import load_json, save_text

KINDS_IN_WORDS = {"paper": "statements and steps of the theory", "ours": "claims of our own", "check": "checks"}
# The libraries that make figures and tables.  The manifest has the versions of the libraries that compute results.
DRAWING_LIBRARIES = ("matplotlib", "pandas")


def main(manifest: Path, claims: Path, theory: Path, sentences: Path, schema: Path, output: Path) -> None:
    """Write the text, in reStructuredText.

    ``claims`` is the file of all claims, ``theory`` the file of the claims on the theory, and ``sentences`` the file of
    the paper's sentences on its experiments.
    """
    run = load_json(manifest)
    schema_content = yaml.safe_load(schema.read_text(encoding="utf-8"))
    versions = run["made_with"][0]["versions"] | {name: version(name) for name in DRAWING_LIBRARIES}
    parts = {
        "Claims": verdicts(load_json(claims), load_json(theory), load_json(sentences)),
        "Settings": difference_from_paper(run["settings"], schema_content),
        "Software": ", ".join(f"{name} {version}" for name, version in versions.items()) + ".",
        "Environment": environment(Path(sys.prefix), "APPTAINER_CONTAINER" in os.environ),
        "Commit": f"``{run['commit']}``" if run["commit"] else "not known, as git does not track the code.",
    }
    save_text(output, "\n".join(f"**{name}.** {text}\n" for name, text in parts.items()))


def verdicts(claims: list[dict], theory: list[dict], sentences: list[dict]) -> str:
    """Say how many of the paper's sentences on its experiments hold, and how many of the other claims.

    The tests that decide the paper's sentences are not counted again.
    """
    theory_ids = {claim["id"] for claim in theory}
    others = [claim for claim in claims if claim["kind"] != "paper" or claim["id"] in theory_ids]
    counts = []
    for kind, words in KINDS_IN_WORDS.items():
        number, hold = count([claim for claim in others if claim["kind"] == kind])
        if number:
            counts.append(f"{hold} of {number} {words}")
    return f"{in_one_sentence(counted(sentences))} {', '.join(counts)} hold in all of their settings."


def environment(prefix: Path, contained: bool) -> str:
    """Say where jobs ran, given the folder of this Python and whether this Python runs in a container."""
    # The conda environments that Snakemake makes are in the folder .snakemake.
    if ".snakemake" in prefix.parts:
        return "Jobs ran in environments that Snakemake made with conda from the files in ``envs/``."
    if contained:
        return "Jobs ran in the container image."
    return (
        "Jobs ran in the Python environment of Snakemake itself; the conda environments and the container that this "
        "report names with rules were not used."
    )
