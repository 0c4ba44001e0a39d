"""What result files say of themselves, so that none is taken for another.

The label of a file has

    step, values, taken : what wrote it, with which options, and which of these the configuration gave, null where none
        was there
    of : the same of all steps before it, by their names, in what their files have in common
    place : the end of its path
    content : a digest

How seeds were cut into jobs is no part of the labels in ``of``, so that it changes no byte of an archive.
"""

import hashlib
import json
import os
import zipfile
from pathlib import Path

from ictd.pipeline.steps import find_step

# Variables in which the workflow gives a job its configuration, and the names of the options that come from it.
SETTINGS, TAKEN = "ICTD_SETTINGS", "ICTD_TAKEN"
# Options that have one value from the task sets of a run to its weights, for commands that get no configuration.
SHARED = (
    "algo", "env", "states", "depth", "discount", "batch_size", "rollout_steps", "learning_rate", "initial_gain",
    "attention_scale", "engine", "evaluation_env",
)  # fmt: skip


class Work:
    """What a process carries out: the name of a step and its options, empty outside of steps; and what it has read.

    ``taken`` are the names of options that come from the configuration, and ``config`` is that; both are None outside
    of the workflow.
    """

    def __init__(
        self, step: str = "", values: dict | None = None, taken: str | None = None, config: dict | None = None
    ):
        self.step, self.values, self.config, self.of = step, values or {}, config, {}
        self.taken = None if taken is None else taken.split()

    @classmethod
    def of_job(cls, step: str, values: dict) -> "Work":
        """What a job of the workflow carries out, or a command given by hand."""
        return cls(step, values, os.environ.get(TAKEN), json.loads(os.environ.get(SETTINGS, "null")))

    def label(self, path: Path, content: str) -> str:
        """Label, as JSON, of a file with a content."""
        place = self._inside(path) or "/".join(path.absolute().parts[-2:])
        made = {"step": self.step, "values": self.values, "taken": self.taken, "of": self.of}
        return json.dumps(made | {"place": place, "content": content}, sort_keys=True)

    def read(self, label: str, path: Path, content: str) -> None:
        """Refuse a file that is not what its label, its place, and this work call for; ValueError says why."""
        label = json.loads(label)
        if label["content"] != content:
            raise ValueError("it is not what was written there")
        inside = self._inside(path)
        if inside != label["place"] if inside else not f"{path.absolute()}".endswith(f"/{label['place']}"):
            raise ValueError(f"it says that it is {label['place']}")
        if self.step and not label["step"]:
            raise ValueError("no step wrote it")
        before = label["of"] | {label["step"]: {"values": label["values"], "taken": label["taken"]}}
        for name, one in before.items():
            # Of files that differ in what was taken, nothing is known in common.
            values, taken = one["values"], one.get("taken", [])
            if self.config is not None and name:
                if taken is None:
                    raise ValueError(f"step {name} was carried out by hand, with settings that none has compared")
                _check_settings(name, values, taken, self.config)
            if values.get("cells", own := self.values.get("cells")) != own and own is not None:
                raise ValueError(f"it was made for the cells {' '.join(values['cells'])}, not {' '.join(own)}")
            for key in SHARED if self.config is None and path.suffix == ".npz" else ():
                own = self.values.get(key)
                if key in values and type(own) is type(values[key]) and own != values[key]:
                    raise ValueError(f"it was made with {key} {values[key]}, not {own}")
            kept = {key: value for key, value in values.items() if key != "seeds"}
            kept = {"values": kept, "taken": taken}
            self.of[name] = _common(self.of.get(name, kept), kept)

    def _inside(self, path: Path) -> str:
        """A path in the folder of results; empty where that is not known, or it lies elsewhere."""
        results = Path((self.config or {}).get("results", "/dev/null")).absolute()
        return str(path.absolute().relative_to(results)) if path.absolute().is_relative_to(results) else ""


def content_of_archive(archive: zipfile.ZipFile, label: str) -> str:
    """Digest of an archive's arrays by what its directory says of them; each is compared with that when it is read.

    The entry ``label`` is none of them.
    """
    arrays = [entry for entry in archive.infolist() if entry.filename != label]
    return content_of_text("\n".join(f"{entry.filename} {entry.file_size} {entry.CRC}" for entry in arrays).encode())


def content_of_text(text: bytes) -> str:
    """Digest of a text."""
    return hashlib.sha256(text).hexdigest()


def _check_settings(name: str, values: dict, taken: list[str], config: dict) -> None:
    """Refuse what a step made with other settings than a configuration's."""
    wanted = config | find_step(name).settings(config, config.get("studies", ()))
    wanted = {key: wanted.get(key) for key in taken if key in values}
    env = next((values[key] for key in ("on_env", "evaluation_env", "env") if key in values), None)
    if "env_options" in values and env:
        wanted["env_options"] = config["readings"]["env_options"].get(env, {})
    for key, value in wanted.items():
        if values[key] != value:
            raise ValueError(f"step {name} made it with {key} {values[key]}, not {value}")


def _common(one: dict, other: dict) -> dict:
    """What two mappings have in common, inner ones likewise."""
    both = {key: (one[key], other[key]) for key in one if key in other}
    return {
        key: _common(*pair) if all(isinstance(part, dict) for part in pair) else pair[0]
        for key, pair in both.items() if pair[0] == pair[1] or all(isinstance(part, dict) for part in pair)
    }  # fmt: skip
