"""Pin all packages (``make lock``): write requirements.txt, torch.txt, installer.txt and the conda environments.

The inputs are requirements.in and groups.yaml.  uv resolves requirements.in once, for all platforms and every Python
from 3.11 on.  All environments get these versions, so the result of a rule does not depend on whether it ran in the
virtual environment, under conda or in the container.  A version in requirements.txt stays as it is unless
requirements.in asks for another one.  To get the newest versions, delete requirements.txt first.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import yaml

HERE = Path(__file__).parent
# Packages that only the CUDA builds of torch need.
LEFT_OUT = "nvidia-* cuda-* triton"
# The CPU builds of torch are published on an index of their own; their hashes go into torch.txt.
TORCH_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_14_0_arm64")
# The platforms, by uv's names, and the Python versions for which every package of the lock must be available.
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
PYTHONS = ("3.11", "3.12", "3.13")
# The package that is published as source only.
SOURCE = "connection-pool"
# The packages that install the others; setuptools builds the package that is published as source.
INSTALLER = ("setuptools", "uv")


class Pin(NamedTuple):
    """A version of a package, with its hashes.

    ``marker`` restricts the pin to some platforms or Python versions; ``needed_by`` names the packages that need it.
    """

    name: str
    version: str
    marker: str
    hashes: list[str]
    needed_by: set[str]

    def line(self, between: str = " ") -> str:
        """The pin as a line of a requirements file."""
        return between.join([f"{self.name}=={self.version}{f' ; {self.marker}' if self.marker else ''}", *self.hashes])


def resolve(folder: Path) -> str:
    """Resolve requirements.in: pins with hashes, each with a comment that names the packages that need it."""
    found = folder / "requirements.txt"
    if (HERE / "requirements.txt").exists():
        shutil.copy(HERE / "requirements.txt", found)
    command = ["uv", "pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header"]
    command += ["--quiet", "--no-config", "--index-strategy", "unsafe-best-match", "--output-file", found]
    subprocess.run([*command, HERE / "requirements.in"], check=True)
    return found.read_text(encoding="utf-8")


def parse(text: str) -> list[Pin]:
    """Parse the pins of requirements; a package may have several pins, for different platforms or Python versions."""
    blocks = re.findall(
        r"^([\w.-]+)==([^ \\\n]+)(?: ; ([^\\\n]*?))?(?: \\)?\n(.*?)(?=^[\w.-]+==|\Z)", text, re.DOTALL | re.MULTILINE
    )
    pins = []
    for name, version, marker, rest in blocks:
        via = re.findall(r"#\s+(?:via\s+)?([\w.-]+)$", rest, re.MULTILINE)
        pins.append(Pin(name, version, marker, re.findall(r"--hash=\S+", rest), {one for one in via if one != "via"}))
    return [pin for pin in pins if not any(fnmatch(pin.name, part) for part in LEFT_OUT.split())]


def closure(direct: list[str], pins: list[Pin]) -> set[str]:
    """Names of the packages that some direct dependencies need, including these dependencies."""
    needed = set(direct)
    while more := {pin.name for pin in pins if pin.needed_by & needed} - needed:
        needed |= more
    return needed


def torch_hashes(version: str, folder: Path) -> dict[str, str]:
    """Find the hash of torch's CPU build for each platform.

    If pip's indexes do not have the build of a platform, the hash in torch.txt is kept.
    """
    known = (HERE / "torch.txt").read_text() if (HERE / "torch.txt").exists() else ""
    hashes = {}
    for platform in TORCH_PLATFORMS:
        report = folder / f"{platform}.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed"]
        command += ["--report", report, "--platform", platform, "--python-version", "3.11", "--only-binary=:all:"]
        wanted = f"torch=={version}" + ("+cpu" if "linux" in platform else "")
        done = subprocess.run([*command, "--target", folder / "torch", wanted], capture_output=True)
        if done.returncode == 0:
            archive = json.loads(report.read_text())["install"][0]["download_info"]["archive_info"]
            hashes[platform] = archive["hashes"]["sha256"]
        else:
            before = re.search(rf"sha256:(\w+) *\\?\n? *# {platform}", known)
            if not before:
                sys.exit(
                    f"error: no index of pip has {wanted} for {platform}; add the CPU index to pip's configuration."
                )
            hashes[platform] = before[1]
    return hashes


def torch_pins(version: str, hashes: dict[str, str]) -> list[str]:
    """Requirements for Linux, where the version ends in "+cpu" and so names the CPU build, and for macOS."""

    def pin(local: str, system: str, tag: str) -> str:
        of = [f"--hash=sha256:{value}" for platform, value in hashes.items() if tag in platform]
        return " ".join([f'torch=={version}{local} ; sys_platform == "{system}"', *of])

    return [pin("+cpu", "linux", "linux"), pin("", "darwin", "macos")]


def check(folder: Path) -> None:
    """Check that each platform and Python has every package of requirements.txt; uv's error ends the program otherwise.

    torch is not checked, because it has an index of its own.
    """
    install = ["uv", "pip", "install", "--dry-run", "--quiet", "--no-config", "--target", folder, "--require-hashes"]
    install += ["--only-binary", ":all:", "--no-binary", SOURCE, "--no-build-isolation"]
    for platform, python in itertools.product(PLATFORMS, PYTHONS):
        of = ["--python-platform", platform, "--python-version", python, "--no-deps"]
        subprocess.run([*install, *of, "--requirement", HERE / "requirements.txt"], check=True)
        print(f"requirements.txt: every package is available for {platform}, Python {python}")


def conda_environment(direct: list[str], pins: list[Pin], settings: dict) -> str:
    """Make a conda environment: Python and pip from conda-forge, the packages by pip as in the virtual environment.

    Every version has its hashes, so pip refuses packages without a hash.
    """
    names = closure(direct, pins)
    lines = [
        "# Made by `make lock`. The packages come by pip, so that they are the same builds as elsewhere.",
        "channels: [conda-forge, nodefaults]",
        "dependencies:",
        f"  - python={settings['python']}",
        f"  - pip={settings['pip']}",
        "  - pip:",
    ]
    if "torch" in names:
        lines.append("      - --extra-index-url https://download.pytorch.org/whl/cpu")
    for pin in pins:
        if pin.name in names:
            lines += [f"      - {line}" for line in (settings["torch"] if pin.name == "torch" else [pin.line()])]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write all files."""
    settings = yaml.safe_load((HERE / "groups.yaml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        pins = parse(resolve(Path(name)))
        version = next(pin.version for pin in pins if pin.name == "torch")
        hashes = torch_hashes(version, Path(name))
    settings["torch"] = torch_pins(version, hashes)
    known = "".join(f"# --hash=sha256:{value}  # {platform}\n" for platform, value in hashes.items())
    texts = {
        "requirements": "".join(pin.line(" \\\n    ") + "\n" for pin in pins if pin.name not in ("torch", "uv")),
        "torch": known + "".join(pin.replace(" --hash", " \\\n    --hash") + "\n" for pin in settings["torch"]),
        "installer": "".join(pin.line(" \\\n    ") + "\n" for pin in pins if pin.name in INSTALLER),
    }
    head = "# Made by `make lock` from requirements.in; installed with --require-hashes.\n"
    for name, text in texts.items():
        (HERE / f"{name}.txt").write_text(head + text, encoding="utf-8")
    for group, direct in settings["groups"].items():
        (HERE / f"{group}.yaml").write_text(conda_environment(direct, pins, settings), encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        check(Path(name))


if __name__ == "__main__":
    main()
