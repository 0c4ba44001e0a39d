"""Compare a finished run with the reference numbers (``make verify``)."""

from pathlib import Path

from ictd.pipeline.provenance import code_digest
from ictd.report.numbers import different, load_reference, reference_of
from ictd.report.reference import names_of_files, parts
from ictd.storage import file_digest, load_json

# Relative: processors round differently, and training propagates the differences.
TOLERANCE = 1e-6
# Absolute: for differences between two computations of the same number, which are rounding errors only.
ROUNDING = 1e-12
# Number of differences that are listed.
SHOWN = 20


def main(results: Path, reference: Path) -> None:
    """Print that the run agrees with the reference.

    ValueError says what differs: code, settings, files, or numbers.
    """
    manifest, wanted = load_json(results / "manifest.json"), load_json(reference / "run.json")
    check_code(results, manifest["code"])
    check_settings(results, manifest["settings"], wanted["settings"])
    check_files(results, manifest, wanted)
    sentences, compared = [], 0
    folders = parts(results)
    for part, folder in folders.items():
        wanted_numbers = load_reference(reference / f"pages/{part}.csv")
        compared += len(wanted_numbers)
        sentences += [
            f"{part}: {line}" for line in different(reference_of(folder), wanted_numbers, TOLERANCE, ROUNDING)
        ]
    if sentences:
        more = f"\n  and {len(sentences) - SHOWN} more" if len(sentences) > SHOWN else ""
        shown = "\n  ".join(sentences[:SHOWN])
        raise ValueError(f"{results} differs from the reference in {len(sentences)} places:\n  {shown}{more}")
    print(f"{results} agrees with the reference in all of its {compared} numbers, within {TOLERANCE:g}.")


def check_code(results: Path, code: dict[str, str]) -> None:
    """Refuse results that were made with other code than the project's."""
    edited = [part for part in code if code[part] != code_digest(part)]
    if edited:
        raise ValueError(f"{results} was made with other code than the project's ({', '.join(edited)}); run snakemake.")


def check_settings(results: Path, settings: dict, wanted: dict) -> None:
    """Refuse results of other settings than those of the reference."""
    other = [key for key in wanted | settings if settings.get(key) != wanted.get(key)]
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
