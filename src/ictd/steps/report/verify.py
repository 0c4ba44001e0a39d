"""Compare a finished run with the reference numbers (``make verify``)."""

from pathlib import Path

from ictd.pipeline.provenance import edited
from ictd.pipeline.records import checked_records, finished_files, without_record
from ictd.report.numbers import different, load_reference, reference_of
from ictd.steps.report.reference import names_of_files, parts, settings_of
from ictd.storage import file_digest, load_json

# Relative: processors round differently, and training propagates the differences.
TOLERANCE = 1e-6
# Absolute: for differences between two computations of the same number, which are rounding errors only.
ROUNDING = 1e-12
# Number of differences that are listed.
LISTED = 20


def main(results: Path, reference: Path) -> None:
    """Print that the run, its studies and its article agree with the project and with the reference.

    ValueError says what differs: files, code, texts, settings, or numbers.
    """
    wanted = load_json(reference / "run.json")
    records = checked_records(results, finished_files(results))
    check_files(results, load_json(results / "manifest.json"), wanted)
    check_code(results, records)
    check_settings(results, settings_of(results), wanted["settings"])
    sentences, compared = [], 0
    folders = parts(results)
    for part, folder in folders.items():
        wanted_numbers = load_reference(reference / f"pages/{part}.csv")
        compared += len(wanted_numbers)
        sentences += [
            f"{part}: {line}" for line in different(reference_of(folder), wanted_numbers, TOLERANCE, ROUNDING)
        ]
    if sentences:
        more = f"\n  and {len(sentences) - LISTED} more" if len(sentences) > LISTED else ""
        shown = "\n  ".join(sentences[:LISTED])
        raise ValueError(f"{results} differs from the reference in {len(sentences)} places:\n  {shown}{more}")
    named = ", ".join(folders)
    print(f"{results} agrees with the reference in all of its {compared} numbers, within {TOLERANCE:g}: {named}.")
    print(without_record(records), end="")


def check_code(results: Path, records: dict[str, dict | None]) -> None:
    """Refuse results that were made with other modules or texts than the project's."""
    options = {path for record in records.values() if record for path in record["options"]}
    changed = {name for path in options for name in edited(load_json(results / path))}
    if changed:
        names = ", ".join(sorted(changed))
        raise ValueError(f"{results} was made with other code or texts than the project's ({names}); run snakemake.")


def check_settings(results: Path, settings: dict, wanted: dict) -> None:
    """Refuse results of other settings than those of the reference."""
    other = [
        f"{part}.{key}"
        for part, values in settings.items()
        for key in values
        if values[key] != wanted.get(part, {}).get(key)
    ]
    if other:
        raise ValueError(f"{results} was made with other settings than the reference ({', '.join(other)}).")


def check_files(results: Path, manifest: dict, wanted: dict) -> None:
    """Refuse files that are not those of the manifest, or not the files that the reference names."""
    for kind, names in names_of_files(manifest).items():
        for name in sorted({*names} ^ {*wanted[kind]}):
            words = "does not list" if name in wanted[kind] else "lists, unlike the reference,"
            raise ValueError(f"{results}/manifest.json {words} {name}; run snakemake to the end.")
        for name, digest in manifest[kind].items():
            if file_digest(results / name) != digest:
                raise ValueError(f"{results / name} is not the file that the manifest lists; run snakemake to the end.")
