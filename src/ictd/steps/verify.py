"""Compare a finished run with the reference numbers (``make verify``)."""

from pathlib import Path

from ictd.pipeline.storage import check_archive, file_digest, load_json
from ictd.pipeline.table_files import load_table
from ictd.report.reference import KEYS, TOLERANCE, differences, load_manifest, names_of_files, summaries

SHOWN = 20


def main(results: Path, reference: Path) -> None:
    """Say that the run agrees with the reference.

    ValueError with what differs, the first of it if that is much, or with the settings or files that are not the
    reference's.
    """
    if not (reference / "run.json").exists():
        raise ValueError(f"{reference} holds no reference; `make reference` writes one from a finished run.")
    manifest, wanted = load_manifest(results), load_json(reference / "run.json")
    settings = manifest["settings"]
    other = [key for key in wanted["settings"] | settings if settings.get(key) != wanted["settings"].get(key)]
    if other:
        raise ValueError(f"{results} is of other settings than the reference: {', '.join(other)}.")
    for kind, names in names_of_files(manifest).items():
        for name in sorted({*names} ^ {*wanted[kind]}):
            words = "does not list" if name in wanted[kind] else "lists, unlike the reference,"
            raise ValueError(f"{results}/manifest.json {words} {name}; run snakemake to the end.")
        for name, digest in manifest[kind].items():
            if file_digest(results / name) != digest:
                raise ValueError(f"{results / name} is not the file that the manifest lists; run snakemake to the end.")
            if name.endswith(".npz"):
                check_archive(results / name, settings)
    found, tables = summaries(results), {name: load_table(reference / f"{name}.csv") for name in KEYS}
    sentences = [line for name in KEYS for line in differences(found[name], tables[name], KEYS[name])]
    if sentences:
        more = f"\n  and {len(sentences) - SHOWN} more" if len(sentences) > SHOWN else ""
        raise ValueError(
            f"{results} differs from the reference in {len(sentences)} places:\n  "
            + "\n  ".join(sentences[:SHOWN]) + more
        )  # fmt: skip
    rows = sum(len(table) for table in tables.values())
    print(f"{results} agrees with the reference in all of its {rows} rows, within {TOLERANCE:g}.")
