"""Write requirements.txt, torch.txt, installer.txt and the conda environments from requirements.in and groups.yaml
(``make lock``).

All environments get the versions that one resolution of requirements.in gave, for all platforms and for every Python
from 3.11 on, so a rule's result does not depend on whether it ran in the virtual environment, under conda or in the
container.  Versions stay as they are where requirements.in does not ask for others; without requirements.txt, the
newest are taken.
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
# What CUDA's builds of torch ask for.
LEFT_OUT = "nvidia-* cuda-* triton"
# The CPU builds of torch are published on an index of their own; their hashes go into torch.txt.
TORCH_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_14_0_arm64")
# uv's names of platforms, and the Pythons, on which all that the lock has must be there.
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
PYTHONS = ("3.11", "3.12", "3.13")
# Comes as source only.
SOURCE = "connection-pool"
# What installs the rest, and builds what comes as source.
INSTALLER = ("setuptools", "uv")


class Pin(NamedTuple):
    """A version of a package with its hashes, the platforms and Pythons that it is for, and what asked for it."""

    name: str
    version: str
    marker: str
    hashes: list[str]
    needed_by: set[str]

    def line(self, between: str = " ") -> str:
        """As a requirement."""
        return between.join([f"{self.name}=={self.version}{f' ; {self.marker}' if self.marker else ''}", *self.hashes])


def resolve(folder: Path) -> str:
    """Pinned and hashed requirements, annotated with what asked for each."""
    found = folder / "requirements.txt"
    if (HERE / "requirements.txt").exists():
        shutil.copy(HERE / "requirements.txt", found)
    command = ["uv", "pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header"]
    command += ["--quiet", "--no-config", "--index-strategy", "unsafe-best-match", "--output-file", found]
    subprocess.run([*command, HERE / "requirements.in"], check=True)
    return found.read_text(encoding="utf-8")


def parse(text: str) -> list[Pin]:
    """The pins of a text; a package that depends on the platform or on Python may have several."""
    blocks = re.findall(
        r"^([\w.-]+)==([^ \\\n]+)(?: ; ([^\\\n]*?))?(?: \\)?\n(.*?)(?=^[\w.-]+==|\Z)", text, re.DOTALL | re.MULTILINE
    )
    pins = []
    for name, version, marker, rest in blocks:
        via = re.findall(r"#\s+(?:via\s+)?([\w.-]+)$", rest, re.MULTILINE)
        pins.append(Pin(name, version, marker, re.findall(r"--hash=\S+", rest), {one for one in via if one != "via"}))
    return [pin for pin in pins if not any(fnmatch(pin.name, part) for part in LEFT_OUT.split())]


def closure(direct: list[str], pins: list[Pin]) -> set[str]:
    """Names of packages that some direct dependencies need, themselves among them."""
    needed = set(direct)
    while more := {pin.name for pin in pins if pin.needed_by & needed} - needed:
        needed |= more
    return needed


def torch_hashes(version: str, folder: Path) -> dict[str, str]:
    """Hash of torch's CPU build for each platform; where no index at hand has one, the hash known before."""
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
                    f"error: no index at hand has {wanted} for {platform}; add the CPU index to pip's configuration."
                )
            hashes[platform] = before[1]
    return hashes


def torch_pins(version: str, hashes: dict[str, str]) -> list[str]:
    """A requirement for Linux, whose CPU build says so in its version and can be taken for no other, and for macOS."""

    def pin(local: str, system: str, tag: str) -> str:
        of = [f"--hash=sha256:{value}" for platform, value in hashes.items() if tag in platform]
        return " ".join([f'torch=={version}{local} ; sys_platform == "{system}"', *of])

    return [pin("+cpu", "linux", "linux"), pin("", "darwin", "macos")]


def check(folder: Path) -> None:
    """End with uv's words where a platform lacks a package of the lock; torch, of its own index, is left out."""
    install = ["uv", "pip", "install", "--dry-run", "--quiet", "--no-config", "--target", folder, "--require-hashes"]
    install += ["--only-binary", ":all:", "--no-binary", SOURCE, "--no-build-isolation"]
    for platform, python in itertools.product(PLATFORMS, PYTHONS):
        of = ["--python-platform", platform, "--python-version", python, "--no-deps"]
        subprocess.run([*install, *of, "--requirement", HERE / "requirements.txt"], check=True)
        print(f"requirements.txt: every package is there for {platform}, Python {python}")


def conda_environment(direct: list[str], pins: list[Pin], settings: dict) -> str:
    """A conda environment: Python and pip from conda-forge, the packages by pip, as in the virtual environment.

    Hashes stand beside the versions, so that pip wants one for every package.
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
