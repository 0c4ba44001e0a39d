"""The RO-Crate of a finished run: its references and digests, and the files that it excludes.

``make test-crate`` validates a crate with the validator of RO-Crates.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from projects import ROOT, SMOKE

from ictd.report import crate
from ictd.storage import load_json


def write_crate(project: Path, output: Path, *arguments: str) -> zipfile.ZipFile:
    """The crate of a finished smoke run, as ``make crate`` writes it."""
    command = [sys.executable, "-m", "snakemake", "--nolock", "--configfile", SMOKE, *arguments, "--detailed-summary"]
    summary = output.with_suffix(".tsv")
    with summary.open("w") as file:
        subprocess.run(command, cwd=project, stdout=file, stderr=subprocess.DEVNULL, check=True)
    before = Path.cwd()
    try:
        os.chdir(project)
        crate.main(summary, output)
    finally:
        os.chdir(before)
    return zipfile.ZipFile(output)


@pytest.fixture(scope="module")
def archive(smoke, tmp_path_factory) -> zipfile.ZipFile:
    return write_crate(smoke, tmp_path_factory.mktemp("crate") / "crate.zip")


@pytest.fixture(scope="module")
def entities(archive) -> dict[str, dict]:
    graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    assert len({entity["@id"] for entity in graph}) == len(graph)
    return {entity["@id"]: entity for entity in graph}


def of_type(entities: dict[str, dict], name: str) -> dict[str, dict]:
    return {key: entity for key, entity in entities.items() if name in [entity["@type"], *entity["@type"]]}


def ids(value) -> list[str]:
    """The entities that a property refers to."""
    values = value if isinstance(value, list) else [value]
    return [one["@id"] for one in values if isinstance(one, dict)]


def test_every_reference_leads_to_an_entity(entities):
    for entity in entities.values():
        for name, value in entity.items():
            outside = [target for target in ids(value) if target not in entities]
            assert all(target.startswith("https://") for target in outside), (entity["@id"], outside)
            assert not outside or name in ("conformsTo", "url"), name


def test_every_file_is_in_the_archive_with_its_digest(archive, entities):
    names = {*archive.namelist()} - {"ro-crate-metadata.json"}
    files = of_type(entities, "File")
    assert names == {*files} == {*ids(entities["./"]["hasPart"])}
    for name in names:
        assert hashlib.sha256(archive.read(name)).hexdigest() == files[name]["sha256"], name
    assert {"Snakefile", "config.yaml", "envs/requirements.txt", "LICENSE", "src/ictd/mrp.py"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("/", "."))]


def test_large_inputs_are_listed_by_digest_only(smoke, entities):
    left_out = {key for key in entities if re.match("#results-smoke/(tasks|unrolls)/", key)}
    assert {key[1:] for key in left_out} == {
        str(path.relative_to(smoke)) for kind in ("tasks", "unrolls") for path in smoke.rglob(f"{kind}/*/*.npz")
    }
    assert not [key for key in left_out if "File" in entities[key]["@type"]]


def test_the_crate_has_the_digests_of_the_manifest(smoke, entities):
    manifest = load_json(smoke / "results-smoke/manifest.json")
    for name, digest in (manifest["files"] | manifest["pages"]).items():
        assert entities[f"results-smoke/{name}"]["sha256"] == digest
    assert {*ids(entities["#run"]["result"])} > {f"results-smoke/{name}" for name in manifest["files"]}


def test_each_job_made_its_outputs_by_its_module(smoke, entities):
    jobs = {key: entity for key, entity in entities.items() if key.startswith("#job/")}
    assert len(jobs) == len(list(smoke.glob("results-smoke/benchmarks/**/*.tsv")))
    job = jobs["#job/results-smoke/logs/evaluate/loop-4-6"]
    assert job["instrument"] == {"@id": "src/ictd/steps/evaluate.py"}
    assert job["description"].startswith("python -m ictd.pipeline.runner ictd.steps.evaluate ")
    assert "results-smoke/evaluation/td-loop-4-6.npz" in ids(job["result"])
    assert "results-smoke/weights/td-loop-4-6.npz" in ids(job["object"]) + ids(job["result"])
    assert all(job["startTime"] <= job["endTime"] for job in jobs.values())


def test_author_licence_and_settings_are_the_projects(entities):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    root = entities["./"]
    assert root["license"] == {"@id": "https://spdx.org/licenses/MIT"}
    assert [entities[name]["name"] for name in ids(root["author"])] == [one["name"] for one in citation["authors"]]
    settings = {value["name"]: json.loads(value["value"]) for value in of_type(entities, "PropertyValue").values()}
    assert settings["depths"] == [6, 3] and settings["tasks"] == 300


def test_no_path_of_the_machine_is_in_the_metadata(archive, smoke):
    text = archive.read("ro-crate-metadata.json").decode()
    assert str(smoke) not in text and str(ROOT) not in text


def test_an_author_may_be_a_person():
    author = {"given-names": "Ada", "family-names": "Lovelace", "orcid": "https://orcid.org/0000-0000-0000-0001"}
    described = crate.described_author(author)
    assert described == {"@id": author["orcid"], "@type": "Person", "name": "Ada Lovelace"}


def test_an_unfinished_run_is_refused(tmp_path):
    header = "output_file\tdate\trule\tlog-file(s)\tinput-file(s)\tshellcmd\tstatus\tplan\n"
    (tmp_path / "summary.tsv").write_text(header + "results/claims.json\t-\tclaims\t-\t-\t-\tmissing\tupdate pending\n")
    with pytest.raises(ValueError, match=r"results/claims.json is missing or out of date; run snakemake to the end"):
        crate.main(tmp_path / "summary.tsv", tmp_path / "crate.zip")
    assert not (tmp_path / "crate.zip").exists()
