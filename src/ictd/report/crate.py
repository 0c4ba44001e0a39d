"""Write a finished run as a Workflow Run RO-Crate, one zip file (``make crate``).

The crate follows the profile Provenance Run Crate 0.5 (https://w3id.org/ro/wfrun/provenance/0.5), which extends
RO-Crate 1.1 and corresponds to W3C PROV: an action for each job, with its command, inputs, outputs and times.
"""

import csv
import json
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import yaml

from ictd.pipeline.provenance import PROJECT, module_path
from ictd.storage import file_digest, load_json, load_text, replacing

METADATA_FILE = "ro-crate-metadata.json"
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
SNAKEMAKE = "https://pypi.org/project/snakemake/"
BIOSCHEMAS = "https://bioschemas.org/profiles"
# Files and folders of the workflow.
WORKFLOW = (
    "Snakefile config.yaml workflow profiles envs src studies report docs reference pyproject.toml"
    " README.md CHANGELOG.md LICENSE CITATION.cff Makefile"
).split()
# Results that take 0.4 GB.  The crate has their digests; any machine computes them again in seconds.
WITHOUT_FILES = ("tasks", "unrolls")
FORMATS = {
    ".csv": "text/csv", ".html": "text/html", ".ipynb": "application/x-ipynb+json", ".json": "application/json",
    ".md": "text/markdown", ".npz": "application/zip", ".png": "image/png", ".py": "text/x-python",
    ".svg": "image/svg+xml", ".yaml": "application/yaml",
}  # fmt: skip


@dataclass
class Job:
    """A job of the run, with paths of files as Snakemake prints them."""

    rule: str
    module: str
    command: str
    inputs: list[str]
    outputs: list[str]
    log: str


def main(summary: Path, output: Path) -> None:
    """Write the crate of the run that Snakemake summarised.

    ``summary`` is what ``snakemake --detailed-summary`` printed.  ValueError if the run is not finished.
    """
    jobs = read_jobs(summary)
    results = next(Path(job.outputs[0]).parent for job in jobs if job.rule == "manifest")
    manifest = load_json(results / "manifest.json")
    files = workflow_files() | result_files(jobs, results, manifest)
    entities = entities_of_run(jobs, results, manifest, files)
    with replacing(output) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(METADATA_FILE, datetime.now().timetuple()[:6])
        info.external_attr = 0o644 << 16
        archive.writestr(info, json.dumps({"@context": CONTEXT, "@graph": entities}, indent=1), zipfile.ZIP_DEFLATED)
        for name, path in files.items():
            if not without_file(name, results):
                archive.write(path, name)
    megabytes = output.stat().st_size / 1e6
    print(f"{output} has {len(jobs)} jobs and {len(files)} files; {megabytes:.0f} MB.")


def read_jobs(summary: Path) -> list[Job]:
    """Read the jobs of a finished run from Snakemake's summary, which has a row for each output."""
    # The commands are longer than the default limit of a field.
    csv.field_size_limit(10**8)
    rows = list(csv.DictReader(load_text(summary).splitlines(), delimiter="\t"))
    if unfinished := [row["output_file"] for row in rows if row["plan"] != "no update"]:
        raise ValueError(f"{unfinished[0]} is missing or out of date; run snakemake to the end, then make crate.")
    jobs = {}
    for row in rows:
        if Path(row["output_file"]).is_absolute():
            raise ValueError(f"{row['output_file']} is outside the working folder; use a relative path for results.")
        # Without the environment variables, which have paths of the machine.
        (command,) = re.findall(r"python -m ictd\.pipeline\.runner .*", row["shellcmd"])
        module = command.split()[3]
        inputs = row["input-file(s)"].split(",") if row["input-file(s)"] else []
        job = Job(row["rule"], module, command, inputs, [], row["log-file(s)"])
        jobs.setdefault(job.log, job).outputs.append(row["output_file"])
    if not any(job.rule == "manifest" for job in jobs.values()):
        raise ValueError(f"{summary} has no manifest of a run; run snakemake to the end, then make crate.")
    return list(jobs.values())


def workflow_files() -> dict[str, Path]:
    """List the files of the workflow by their names in the crate."""
    found = {}
    for part in WORKFLOW:
        path = PROJECT / part
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts and "egg-info" not in str(file):
                found[str(file.relative_to(PROJECT))] = file
    return found


def result_files(jobs: list[Job], results: Path, manifest: dict) -> dict[str, Path]:
    """List all inputs, outputs and logs of jobs, and the files of the manifest, by their names in the crate."""
    names = {name for job in jobs for name in (*job.inputs, *job.outputs, job.log)}
    names |= {str(results / name) for kind in ("files", "pages") for name in manifest[kind]}
    names |= {str(results / "run.json")}
    return {name: Path(name) for name in sorted(names)}


def without_file(name: str, results: Path) -> bool:
    """Whether the crate has only the digest of a file."""
    return any(Path(name).is_relative_to(results / folder) for folder in WITHOUT_FILES)


def entities_of_run(jobs: list[Job], results: Path, manifest: dict, files: dict[str, Path]) -> list[dict]:
    """Describe the run as a flat list of entities that refer to each other by ``@id``."""
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    license_url = f"https://spdx.org/licenses/{citation['license']}"
    ids = {name: f"#{name}" if without_file(name, results) else name for name in files}
    tools = {job.module: str(module_path(job.module).relative_to(PROJECT)) for job in jobs}

    authors = [described_author(author) for author in citation["authors"]]
    software = described_software(manifest["versions"])
    parameters, values = described_settings(manifest["settings"])
    steps = described_steps(jobs, tools)
    actions = [described_job(job, tools[job.module], ids, results) for job in jobs]
    controls = described_controls(jobs)
    run = described_run(jobs, actions, values, results, manifest) | {"name": f"A run of {citation['title']}"}
    plan = {
        "@id": "#plan",
        "@type": "OrganizeAction",
        "name": "The plan of Snakemake",
        "instrument": {"@id": SNAKEMAKE},
        "startTime": run["startTime"],
        "endTime": run["endTime"],
        "object": references(control["@id"] for control in controls),
        "result": {"@id": run["@id"]},
    }
    owned = {"author": references(author["@id"] for author in authors), "license": {"@id": license_url}}
    tool = {"@type": ["File", "SoftwareSourceCode"], "version": str(citation["version"])}
    workflow = {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        "name": citation["title"],
        "version": str(citation["version"]),
        "identifier": f"git commit {manifest['commit'] or 'unknown'}",
        "conformsTo": {"@id": f"{BIOSCHEMAS}/ComputationalWorkflow/1.0-RELEASE"},
        "programmingLanguage": {"@id": "#language"},
        "softwareRequirements": references([*(entity["@id"] for entity in software), "envs/requirements.txt"]),
        "input": references(parameter["@id"] for parameter in parameters),
        "hasPart": references(sorted(set(tools.values()))),
        "step": references(step["@id"] for step in steps),
    }
    special = {"Snakefile": workflow | owned, "README.md": {"about": {"@id": "./"}}}
    special |= dict.fromkeys(tools.values(), tool)
    descriptor = {
        "@id": METADATA_FILE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": references([SPECIFICATION, WORKFLOW_CRATE]),
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": run["name"],
        "description": f"The workflow, its configuration and environments, and a finished run. {citation['message']}",
        "datePublished": run["endTime"],
        "conformsTo": references(PROFILES),
        "mainEntity": {"@id": "Snakefile"},
        "mentions": references(action["@id"] for action in (run, plan, *controls, *actions)),
        "hasPart": references(name for name in ids.values() if not name.startswith("#")),
    } | owned
    context = [
        {"@id": url, "@type": "CreativeWork", "name": name, "version": version}
        for url, (name, version) in PROFILES.items()
    ]
    context += [
        {"@id": "#language", "@type": "ComputerLanguage", "name": "Snakemake", "url": {"@id": SNAKEMAKE}},
        {"@id": license_url, "@type": "CreativeWork", "name": citation["license"]},
    ]
    described_files = [described_file(ids[name], path) | special.get(name, {}) for name, path in files.items()]
    entities = [descriptor, root, *context, *authors, *software, *parameters, *values, *steps]
    return [*entities, run, plan, *controls, *actions, *described_files]


def described_steps(jobs: list[Job], tools: dict[str, str]) -> list[dict]:
    """Describe each rule as a step of the workflow; the module that the rule calls is its tool."""
    modules = {job.rule: job.module for job in jobs}
    return [
        {
            "@id": f"#step/{rule}",
            "@type": "HowToStep",
            "name": rule,
            "position": str(position),
            "workExample": {"@id": tools[module]},
        }
        for position, (rule, module) in enumerate(modules.items(), 1)
    ]


def described_controls(jobs: list[Job]) -> list[dict]:
    """Describe which jobs each rule has."""
    return [
        {
            "@id": f"#rule/{rule}",
            "@type": "ControlAction",
            "name": f"rule {rule}",
            "instrument": {"@id": f"#step/{rule}"},
            "object": references(job_id(job) for job in jobs if job.rule == rule),
        }
        for rule in dict.fromkeys(job.rule for job in jobs)
    ]


def described_run(jobs: list[Job], actions: list[dict], values: list[dict], results: Path, manifest: dict) -> dict:
    """Describe the run as a whole: settings and files that no job made give the files that the manifest lists."""
    made = {name for job in jobs for name in job.outputs}
    given = {name for job in jobs for name in job.inputs} - made
    listed = [str(results / name) for kind in ("files", "pages") for name in manifest[kind]]
    return {
        "@id": "#run",
        "@type": "CreateAction",
        "description": "Each job of the run is an action of its own.",
        "instrument": {"@id": "Snakefile"},
        "startTime": min(action["startTime"] for action in actions),
        "endTime": max(action["endTime"] for action in actions),
        "object": references([*(value["@id"] for value in values), "config.yaml", *sorted(given)]),
        "result": references([*listed, str(results / "manifest.json")]),
    }


def references(ids: Iterable[str]) -> list[dict[str, str]] | dict[str, str]:
    """Refer to entities; RO-Crate recommends a single value, not a list, for one entity."""
    found = [{"@id": name} for name in ids]
    return found[0] if len(found) == 1 else found


def job_id(job: Job) -> str:
    """Identify a job by its log."""
    return f"#job/{Path(job.log).with_suffix('')}"


def described_job(job: Job, tool: str, ids: dict[str, str], results: Path) -> dict:
    """Describe a job: it ended when its last output was written, and took the time of its benchmark."""
    ended = max(Path(name).stat().st_mtime for name in job.outputs)
    benchmark = results / "benchmarks" / Path(job.log).relative_to(results / "logs").with_suffix(".tsv")
    seconds = float(next(csv.DictReader(load_text(benchmark).splitlines(), delimiter="\t"))["s"])
    return {
        "@id": job_id(job),
        "@type": "CreateAction",
        "name": f"a job of rule {job.rule}",
        "description": job.command,
        "instrument": {"@id": tool},
        "startTime": as_time(ended - seconds),
        "endTime": as_time(ended),
        "object": references(ids[name] for name in job.inputs),
        "result": references(ids[name] for name in (*job.outputs, job.log)),
    }


def as_time(seconds: float) -> str:
    """Write a time in ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def described_file(identifier: str, path: Path) -> dict:
    """Describe a file by its digest and size; an id that begins with "#" means a file outside the crate."""
    kind = "CreativeWork" if identifier.startswith("#") else "File"
    return {
        "@id": identifier,
        "@type": kind,
        "name": path.name,
        "encodingFormat": FORMATS.get(path.suffix, "text/plain"),
        "contentSize": str(path.stat().st_size),
        "sha256": file_digest(path),
    }


def described_settings(settings: dict) -> tuple[list[dict], list[dict]]:
    """Describe the settings of a run as parameters of the workflow, and as their values."""
    parameters, values = [], []
    for name, value in settings.items():
        parameters.append(
            {
                "@id": f"#parameter/{name}",
                "@type": "FormalParameter",
                "name": name,
                "additionalType": "PropertyValue",
                "conformsTo": {"@id": f"{BIOSCHEMAS}/FormalParameter/1.0-RELEASE"},
                "workExample": {"@id": f"#setting/{name}"},
            }
        )
        values.append(
            {
                "@id": f"#setting/{name}",
                "@type": "PropertyValue",
                "name": name,
                "value": json.dumps(value),
                "exampleOfWork": {"@id": f"#parameter/{name}"},
            }
        )
    return parameters, values


def described_software(versions: dict[str, str]) -> list[dict]:
    """Describe Python and the packages that results depend on, and Snakemake."""
    packages = {name: version for name, version in versions.items() if name not in ("python", "ictd")}
    packages["snakemake"] = metadata.version("snakemake")
    found = {f"https://pypi.org/project/{name}/": (name, version) for name, version in packages.items()}
    found["https://www.python.org/"] = ("Python", versions["python"])
    return [
        {"@id": url, "@type": "SoftwareApplication", "name": name, "softwareVersion": version, "url": {"@id": url}}
        for url, (name, version) in found.items()
    ]


def described_author(author: dict) -> dict:
    """Describe an author of ``CITATION.cff``, a person or a group."""
    if "name" in author:
        return {"@id": f"#author/{author['name'].replace(' ', '-')}", "@type": "Organization", "name": author["name"]}
    name = f"{author['given-names']} {author['family-names']}"
    return {"@id": author.get("orcid", f"#author/{name.replace(' ', '-')}"), "@type": "Person", "name": name}
