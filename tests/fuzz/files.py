"""Files of a finished run, damaged or in another's place, given to the steps that read them."""

import base64
import contextlib
import json
import multiprocessing
import os
import random
import shlex
import shutil
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import matplotlib.pyplot
import nbconvert  # noqa: F401
import numpy as np
import torch  # noqa: F401
from projects import copy_project, snakemake

from ictd.pipeline.runner import command

# One that takes a minute.
SLOW = ("report.notebook",)
SECONDS = 60
# Ways to damage files of one format, besides those for any file.
KINDS = {
    ".npz": ("array", "array", "renamed"),
    ".csv": ("row", "column", "text", "head"),
    ".json": ("null", "item"),
}


@cache
def finished() -> Path:
    """A project with a finished smoke run; a test may name one."""
    folder = copy_project(Path(tempfile.mkdtemp(prefix="ictd-fuzz-")))
    done = snakemake(folder, "--cores", "2")
    assert done.returncode == 0, done.stderr
    return folder


@cache
def jobs(project: Path) -> list[dict]:
    """Words of the command, input and output files of each job that reads files, as Snakemake recorded them."""
    found = {}
    for path in sorted((project / ".snakemake/metadata").iterdir()):
        record = json.loads(path.read_text())
        words = shlex.split(record["shellcmd"].partition(" > ")[0].partition("ictd.steps ")[2])
        files = [name for name in record["input"] if Path(name).suffix and "/kernels/" not in name]
        if files and words[0] not in SLOW and set(files) <= set(words):
            job = found.setdefault(record["log"][0], {"words": words, "inputs": files, "outputs": []})
            job["outputs"].append(base64.b64decode(path.name).decode())
    return [found[log] for log in sorted(found)]


def damage(rng: random.Random, path: Path, project: Path) -> str:
    """Change a file in place; what was done."""
    content = path.read_bytes()
    kinds = ["gone", "empty", "cut", "flipped", "another's", "zeros", "alone", *KINDS.get(path.suffix, ())]
    kind = rng.choice(kinds)
    place = rng.randrange(max(len(content), 1))
    if kind == "gone":
        path.unlink()
    elif kind == "alone":
        path.with_name(f".{path.name}.label").unlink(missing_ok=True)
    elif kind in ("empty", "cut", "zeros", "flipped", "null"):
        flipped = content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
        made = {"empty": b"", "cut": content[:place], "zeros": bytes(len(content)), "flipped": flipped}
        path.write_bytes(made.get(kind) or (rng.choice([b"null", b"{}", b"[]", b"1"]) if kind == "null" else b""))
    elif kind == "another's":
        others = [project / "config.yaml", *sorted((project / "results-smoke").rglob(f"*{path.suffix}"))]
        shutil.copyfile(rng.choice([other for other in others if other.read_bytes() != content]), path)
    elif path.suffix == ".npz":
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        label = arrays.pop("label.json", None)
        name = rng.choice(sorted(arrays))
        array = arrays[name]
        if kind == "renamed":
            arrays[name + "_"] = arrays.pop(name)
        else:
            change = rng.choice(["zero", "negative", "complex", "nan", "short", "reversed", "float"])
            made = {
                "zero": lambda: array * 0, "negative": lambda: -1 - array, "complex": lambda: array + 1j,
                "nan": lambda: array * np.nan, "short": lambda: array[:-1], "reversed": lambda: array[::-1],
                "float": lambda: array.astype(np.float32),
            }  # fmt: skip
            if array.dtype.kind == "U" or not array.ndim:
                arrays[name], change = np.zeros(3), "another"
            else:
                arrays[name] = made[change]()
            kind = f"{name} {change}"
        np.savez(path, **arrays)
        if label is not None and rng.random() < 0.5:
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr("label.json", label)
            kind += " with the old label"
    elif path.suffix == ".csv":
        lines = path.read_text().splitlines()
        at = rng.randrange(1, len(lines)) if len(lines) > 1 else 0
        column = rng.randrange(len(lines[0].split(",")))
        if kind == "row":
            del lines[at]
        elif kind == "head":
            del lines[1:]
        elif kind == "column":
            lines = [",".join(word for i, word in enumerate(line.split(",")) if i != column) for line in lines]
        else:
            words = lines[at].split(",")
            words[min(column, len(words) - 1)] = "text"
            lines[at] = ",".join(words)
        path.write_text("\n".join(lines) + "\n")
    else:
        found = json.loads(content)
        if isinstance(found, list) and found:
            del found[rng.randrange(len(found))]
        elif isinstance(found, dict):
            del found[rng.choice(sorted(found))]
        path.write_text(json.dumps(found))
    return kind


def run(words: list[str], folder: Path, queue) -> None:
    """Carry out a step in a folder; the error, empty if there was none, goes into the queue."""
    os.chdir(folder)
    sys.argv = ["ictd.steps", *words]
    matplotlib.pyplot.close("all")
    said = ""
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing), contextlib.redirect_stdout(nothing):
            command()
    except SystemExit as ended:
        said = str(ended.code or "")
    except BaseException as error:
        said = f"{type(error).__name__}, {error}"
    queue.put(said)


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same content, whatever their labels."""
    if one.suffix != ".npz":
        return one.read_bytes() == other.read_bytes()
    with np.load(one) as first, np.load(other) as second:
        names = [name for name in first.files if name != "label.json"]
        return all(np.array_equal(first[name], second[name], equal_nan=first[name].dtype.kind == "f") for name in names)


def case(rng: random.Random, folder: Path) -> tuple[str, str]:
    """One input of one job, damaged."""
    project = finished()
    job = rng.choice(jobs(project))
    for name in job["inputs"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for part in (Path(name), Path(name).with_name(f".{Path(name).name}.label")):
            if (project / part).exists():
                shutil.copyfile(project / part, folder / part)
    for word in job["words"]:
        if word.startswith(("report", "studies", "workflow")) and (project / word).is_file():
            (folder / word).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(project / word, folder / word)
    victim = rng.choice(job["inputs"])
    what = f"{job['words'][0]}, {victim}: {damage(rng, folder / victim, project)}"
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=run, args=(job["words"], folder, queue))
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        return what, "it hangs"
    if process.exitcode or queue.empty():
        return what, f"it died, {process.exitcode}"
    said = queue.get()
    if said:
        answered = said.startswith("error: ") and "\n" not in said and "results-smoke/" in said
        return what, "refused" if answered else said
    other = [name for name in job["outputs"] if not same(folder / name, project / name)]
    return what, f"{other[0]} is another, without a word" if other else "taken"
