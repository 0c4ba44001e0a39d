"""Pack the pretrained weights of a finished run for publication (``make weights``)."""

from pathlib import Path

from ictd.storage import file_digest, load_json, load_named, save_arrays, save_json

# What ``ictd.load_model`` reads.
ARRAYS = ("seeds", "u", "A", "diverged_at", "depth", "discount", "scaled")
FORMAT = {
    "seeds": "random seeds of the S runs of the cell",
    "u": "(S, 2n): row u of P after pretraining",
    "A": "(S, 2n, 2n): block A of Q after pretraining",
    "diverged_at": "(S): number of the task at which a run diverged, or 0",
    "depth": "number of layers",
    "discount": "discount factor of pretraining",
    "scaled": "whether attention is divided by the context length",
}


def main(results: Path, output: Path) -> None:
    """Write the final weights of all runs into a folder, one file for each cell, and ``manifest.json`` beside them.

    The manifest has the settings, the versions and the commit of the run, the meaning of each array, and the SHA-256 of
    each file.  ValueError if a file of the results is not the one that the manifest of the run lists.
    """
    run = load_json(results / "manifest.json")
    sources = {Path(name).name: name for name in run["files"] if name.startswith("weights/")}
    digests = {}
    for name, source in sources.items():
        if file_digest(results / source) != run["files"][source]:
            raise ValueError(f"{results / source} is not the file that the manifest lists; run snakemake to the end.")
        save_arrays(output / name, **load_named(results / source, *ARRAYS))
        digests[name] = file_digest(output / name)
    unlisted = {path.name for path in output.glob("*.npz")} - {*digests}
    if unlisted:
        raise ValueError(f"{output} also has files of another run, such as {min(unlisted)}; remove them.")
    described = {key: run[key] for key in ("commit", "settings", "made_with")}
    save_json(output / "manifest.json", described | {"license": "MIT", "arrays": FORMAT, "files": digests})
    size = sum(path.stat().st_size for path in output.iterdir()) / 1e6
    print(f"{output} has the weights of {len(digests)} cells; {size:.1f} MB.")
