"""What archives say of themselves, so that none is taken for another.

The label of an archive has

    step, values : what wrote it, and with which options
    of : the labels of the archives that were read for it, by their steps
    place : the end of its path
    content : digest of the names, sizes and checksums of its arrays

How seeds were cut into jobs is no part of the labels in ``of``, so that it changes no byte.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

ENTRY = "label.json"
# Options that have one value from the task sets of a run to its last figure.
SHARED = (
    "algo", "env", "states", "depth", "discount", "batch_size", "rollout_steps", "learning_rate", "initial_gain",
    "attention_scale", "engine", "evaluation_env",
)  # fmt: skip


class Work:
    """What a process carries out: the name of a step and its options, empty outside of steps; and what it has read."""

    def __init__(self, step: str = "", values: dict | None = None):
        self.step, self.values, self.of = step, values or {}, {}

    def label(self, archive: zipfile.ZipFile, path: Path) -> str:
        """Label, as JSON, of an archive whose arrays are written."""
        made = {"step": self.step, "values": self.values, "of": self.of}
        return json.dumps(made | {"place": place(path), "content": _content(archive)}, sort_keys=True)

    def read(self, archive: zipfile.ZipFile, path: Path) -> None:
        """Refuse an archive that is not what its place and this work call for; ValueError says why."""
        label = read_label(archive, path)
        if self.step and not label["step"]:
            raise ValueError("no step wrote it")
        for _, values in of_steps(label):
            for name in SHARED:
                if name in values and values[name] != self.values.get(name, values[name]):
                    raise ValueError(f"it was made with {name} {values[name]}, not {self.values[name]}")
        kept = {name: value for name, value in label["values"].items() if name != "seeds"}
        others = self.of.get(label["step"], {"values": kept})["values"]
        same = {name: value for name, value in kept.items() if name in others and others[name] == value}
        self.of[label["step"]] = {"values": same, "of": label["of"]}


def read_label(archive: zipfile.ZipFile, path: Path) -> dict:
    """Label of an archive; ValueError if it has none, is at another place, or has other arrays."""
    if ENTRY not in archive.namelist():
        raise ValueError("it does not say what it is")
    label = json.loads(archive.read(ENTRY))
    if label["content"] != _content(archive):
        raise ValueError("its arrays are not those that its label is of")
    if label["place"] != place(path):
        raise ValueError(f"it says that it is {label['place']}")
    return label


def place(path: Path) -> str:
    """The end of a path that tells files of a run apart: its folder and its name."""
    return "/".join(path.absolute().parts[-2:])


def of_steps(label: dict) -> Iterator[tuple[str, dict]]:
    """Name and options of the step that wrote an archive, and of those that wrote what was read for it."""
    yield label["step"], label["values"]
    for step, inner in label["of"].items():
        yield from of_steps({"step": step, **inner})


def _content(archive: zipfile.ZipFile) -> str:
    """Digest of an archive's arrays by what its directory says of them; each is compared with that when it is read."""
    arrays = [entry for entry in archive.infolist() if entry.filename != ENTRY]
    lines = (f"{entry.filename} {entry.file_size} {entry.CRC}" for entry in arrays)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
