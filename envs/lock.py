"""Write requirements.txt, torch.txt, installer.txt and the conda environments from requirements.in and groups.yaml
(``make lock``).

All environments get the versions that one resolution of requirements.in gave, so a rule's result does not depend on
whether it ran in the virtual environment, under conda or in the container.  The oldest Python that shall do makes it:
``make lock LOCK_PYTHON=/path/to/python3.11``.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HERE = Path(__file__).parent
PIP_TOOLS = "pip-tools==7.6.2"
# The CPU builds of torch are published on an index of their own; their hashes go into torch.txt.
TORCH_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_14_0_arm64")
# What installs the rest, and builds what comes as source.
INSTALLER = ("setuptools", "uv")


def resolve(folder: Path, interpreter: str, oldest: str) -> str:
    """Pinned and hashed requirements, annotated with what asked for each."""
    version = subprocess.run([interpreter, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    if version != oldest:
        sys.exit(f"error: {interpreter} is Python {version}; name a Python {oldest}: make lock LOCK_PYTHON=...")
    subprocess.run([interpreter, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", PIP_TOOLS], check=True)
    quiet = ["--quiet", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"]
    command = [python, "-m", "piptools", "compile", "--generate-hashes", "--strip-extras", "--allow-unsafe", *quiet]
    subprocess.run([*command, "--output-file", folder / "out.txt", "requirements.in"], check=True, cwd=HERE)
    return (folder / "out.txt").read_text(encoding="utf-8")


def parse(text: str) -> dict[str, tuple[str, list[str], str]]:
    """For each package its version, the packages that asked for it, and its block of text."""
    blocks = re.findall(r"^([\w.-]+)==([^ \\\n]+)(.*?)(?=^[\w.-]+==|\Z)", text, re.DOTALL | re.MULTILINE)
    packages = {}
    for name, version, rest in blocks:
        via = re.findall(r"#\s+(?:via\s+)?([\w.-]+)$", rest, re.MULTILINE)
        packages[name] = (version, [parent for parent in via if parent != "via"], f"{name}=={version}{rest}")
    return packages


def closure(direct: list[str], packages: dict) -> list[str]:
    """Packages that some direct dependencies need, themselves among them."""
    needed = set(direct)
    while True:
        more = {name for name, (_, parents, _) in packages.items() if needed.intersection(parents)} - needed
        if not more:
            return sorted(needed)
        needed |= more


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


def conda_environment(direct: list[str], packages: dict, settings: dict) -> str:
    """A conda environment: Python and pip from conda-forge, the packages by pip, as in the virtual environment.

    Hashes stand beside the versions, so that pip wants one for every package.
    """
    names = closure(direct, packages)
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
    for name in names:
        if name == "torch":
            lines += [f"      - {pin}" for pin in settings["torch"]]
            continue
        lines.append(" ".join([f"      - {name}=={packages[name][0]}", *re.findall(r"--hash=\S+", packages[name][2])]))
    lines += [f"      - {pin}" for name, pin in settings["on_macos"].items() if name in names]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write all files."""
    settings = yaml.safe_load((HERE / "groups.yaml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packages = parse(resolve(folder, sys.argv[1], settings["oldest_python"]))
        version = packages["torch"][0].split("+")[0]
        hashes = torch_hashes(version, folder)
    head = "# Made by `make lock` from requirements.in; installed with --require-hashes.\n"
    settings["torch"] = torch_pins(version, hashes)
    known = "".join(f"# --hash=sha256:{value}  # {platform}\n" for platform, value in hashes.items())
    texts = {
        "requirements": "".join(packages[name][2] for name in packages if name not in ("torch", "uv")),
        "torch": known + "".join(pin.replace(" --hash", " \\\n    --hash") + "\n" for pin in settings["torch"]),
        "installer": "".join(packages[name][2] for name in INSTALLER),
    }
    for name, text in texts.items():
        (HERE / f"{name}.txt").write_text(head + text, encoding="utf-8")
    for group, direct in settings["groups"].items():
        (HERE / f"{group}.yaml").write_text(conda_environment(direct, packages, settings), encoding="utf-8")


if __name__ == "__main__":
    main()
