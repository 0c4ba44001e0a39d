"""A replacement for conda without access to channels: makes an environment with exactly the packages that a file pins.

It answers only the calls of ``snakemake --sdm conda``.  Packages are linked from the environment that runs it.
"""

import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import yaml
from packaging.requirements import Requirement


def create(pins: list[str], prefix: Path) -> None:
    """Make a virtual environment that has the pinned packages and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    target = prefix / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for pin in pins:
        name, version = pin.split("==")
        package = importlib.metadata.distribution(name)
        if version not in (package.version, package.version.split("+")[0]):
            sys.exit(f"{pin} is wanted, {package.version} is installed.")
        # Link whole folders of modules, with their bytecode.  Do not link scripts: they name the Python of their
        # installation, and rules call modules.
        linked = {Path(*file.parts[:1]) if file.parts[0] != ".." else Path(file) for file in package.files}
        for file in linked - {Path("__pycache__")}:
            link = Path(os.path.normpath(target / file))
            if link.parent != prefix / "bin":
                link.parent.mkdir(parents=True, exist_ok=True)
                os.symlink(package.locate_file(file), link)


def main() -> None:
    """Answer one call."""
    match sys.argv[1:]:
        case ["info", "--json"]:
            print(json.dumps({"conda_prefix": os.environ["STAND_IN_PREFIX"], "platform": "linux-64"}))
        case ["clean", *_]:
            pass
        case ["--version"]:
            print("conda 25.0.0")
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["env", "create", *options]:
            values = dict(itertools.pairwise(options))
            environment = yaml.safe_load(Path(values["--file"]).read_text())
            lines = environment["dependencies"][-1]["pip"]
            wanted = [Requirement(line.partition(" --hash")[0]) for line in lines if not line.startswith("--")]
            here = [one for one in wanted if one.marker is None or one.marker.evaluate()]
            create([f"{one.name}{one.specifier}" for one in here], Path(values["--prefix"]))
        case _:
            sys.exit(f"This stand-in does not know: conda {' '.join(sys.argv[1:])}")


if __name__ == "__main__":
    main()
