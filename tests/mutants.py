"""Change the code in one place, and see whether a test notices: ``python tests/mutants.py CASES SEED``.

Changes are drawn at random, a line of src and of the studies' modules as likely as any other: operators, comparisons,
constants, conditions, signs, minima for maxima, ends of slices.  Texts and how figures look (LOOKS) are left alone.
Each is tried in a copy of the project by the tests whose imports reach the module, in processes forked from one where
the packages are imported; then, if none of these fails, by those that run the workflow.  A test that takes too long has
noticed.  Changes that mean the same as what they replace are listed in mutants_equivalent.txt, each with its reason.
"""

import ast
import contextlib
import copy
import io
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

# What the tests import, so that it is not imported for each change anew.
import jsonschema  # noqa: F401
import matplotlib.animation
import matplotlib.pyplot  # noqa: F401
import numba
import pandas  # noqa: F401
import pytest
import torch  # noqa: F401

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "tests/mutants_equivalent.txt"
PARTS = [path.name for path in ROOT.iterdir() if path.name not in {".git", ".venv", ".snakemake", "results"}]
RUNS = {"smoke", "under_conda"}
# Seconds that the tests may take; the slow ones wait for runs of the workflow.
FAST, SLOW = 300, 1800
OTHERS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv], ast.Pow: [ast.Mult], ast.MatMult: [ast.Mult], ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd], ast.And: [ast.Or], ast.Or: [ast.And], ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.Lt], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.In: [ast.NotIn], ast.NotIn: [ast.In],
}  # fmt: skip
PAIRS = [("min", "max"), ("any", "all"), ("argmin", "argmax"), ("minimum", "maximum"), ("mean", "sum")]
SWAPPED = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
# Keywords in modules that draw.
LOOKS = set(
    "alpha aspect axes.titlesize figsize figure.constrained_layout.h_pad figure.dpi font.size fontsize labelsize length"
    " lw marker ms mutation_scale ncols offset pad rotation savefig.dpi shrink shrinkA shrinkB zorder".split()
)


def changes(node: ast.AST, left_alone: set[str]):
    """Pairs of a node inside ``node``, itself included, and the code that may take its place; not of some keywords."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        node = ast.Tuple([value for key, value in pairs if getattr(key, "value", None) not in left_alone])
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in OTHERS[type(op)]:
                yield node, _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for other in OTHERS.get(type(node.op), []):
            yield node, _with(node, op=other())
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.operand, ast.Constant):
            yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, repr(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield from ((node, f"({node.value + by})") for by in (-1, 1))
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield from ((node, repr(value)) for value in ([node.value * 2, node.value / 2] if node.value else [1.0]))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
        yield node.func, SWAPPED[node.func.id]
    elif isinstance(node, ast.Attribute) and node.attr in SWAPPED:
        yield node, _with(node, attr=SWAPPED[node.attr])
    elif isinstance(node, ast.Slice):
        for end in (node.lower, node.upper):
            if end and not isinstance(end, ast.Constant):
                yield from ((end, f"({ast.unparse(end)} {by} 1)") for by in "+-")
    for condition in [*getattr(node, "ifs", []), getattr(node, "test", None)]:
        if condition:
            yield condition, f"(not ({ast.unparse(condition)}))"
    for name, inner in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, ast.AST) and not (isinstance(one, ast.keyword) and one.arg in left_alone):
                    yield from changes(one, left_alone)


def _with(node: ast.AST, **fields) -> str:
    other = copy.copy(node)
    vars(other).update(fields)
    return ast.unparse(other) if isinstance(node, ast.AugAssign | ast.Attribute) else f"({ast.unparse(other)})"


def mutants() -> dict[tuple[str, int], list[tuple[str, str, str]]]:
    """By file and line, what may stand there: the new text of the file, and the changed lines before and after."""
    found = {}
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "studies").glob("*/*.py")]:
        text = path.read_text()
        lines = [line.encode() for line in text.splitlines(keepends=True)]
        for node, code in changes(ast.parse(text), {"strict"} | (LOOKS if "matplotlib" in text else set())):
            first, last = node.lineno - 1, node.end_lineno
            head = lines[first][: node.col_offset]
            after = head + code.encode() + lines[last - 1][node.end_col_offset :]
            new = b"".join([*lines[:first], after, *lines[last:]]).decode()
            shown = [" ".join(part.decode().split()) for part in (b"".join(lines[first:last]), after)]
            found.setdefault((str(path.relative_to(ROOT)), node.lineno), []).append((new, *shown))
    return found


def drawn(cases: int, seed: int) -> list[tuple[str, int, str, str, str]]:
    """Changes on different lines: file, line, the file's new text, and the changed lines before and after."""
    rng, found = random.Random(seed), mutants()
    places = rng.sample(sorted(found), cases)
    return [(*place, *rng.choice(found[place])) for place in places]


def equivalent() -> dict[tuple[str, str, str], str]:
    """Reasons by file and changed line, before and after, or "anything" after."""
    blocks = [block.strip().split("\n") for block in EQUIVALENT.read_text().split("\n\n") if block.strip()]
    return {tuple(block[:3]): " ".join(block[3:]) for block in blocks}


@cache
def imports(path: Path) -> frozenset[Path]:
    """Files of the project that a file imports, or names in a text as modules."""
    found, places = set(), (ROOT, ROOT / "src", ROOT / "tests", path.parent)
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.replace(".", "").isidentifier()
        ):
            names = [node.value]
        files = (place.joinpath(*name.split(".")) for name in names for place in places)
        found |= {one for file in files for one in (file.with_suffix(".py"), file / "__init__.py") if one.is_file()}
    return frozenset(found)


@cache
def reached(path: Path) -> frozenset[Path]:
    """All files that a file imports, and that these import."""
    found, waiting = set(), [path]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += imports(one)
    return frozenset(found)


def test_files() -> tuple[list[str], list[str]]:
    """Test files; those that start processes, which is slow, apart."""
    found = [*(ROOT / "tests").glob("test_*.py"), *(ROOT / "studies").glob("*/tests/test_*.py")]
    slow = [
        path for path in found if re.search(r"subprocess|copy_project|\b(snakemake|plans|rules_of)\(", path.read_text())
    ]
    return tuple(
        [str(path.relative_to(ROOT)) for path in part] for part in (sorted(set(found) - set(slow)), sorted(slow))
    )


def tests_for(file: str, seconds: dict[str, float]) -> tuple[list[str], list[str]]:
    """Test files that reach a file, fast and slow ones, those first that import it themselves; slow ones reach all."""
    path, (fast, slow) = ROOT / file, test_files()
    order = {test: (path not in imports(ROOT / test), seconds.get(test, 0)) for test in fast + slow}
    return sorted((test for test in fast if path in reached(ROOT / test)), key=order.get), sorted(slow, key=order.get)


class Watch:
    """Which test failed first, and how long each file's tests took; leaves out tests of one kind."""

    def __init__(self, slow: bool):
        self.slow, self.failed, self.seconds = slow, None, {}

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if bool(RUNS.intersection(item.fixturenames)) == self.slow]

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed = self.failed or f"{report.nodeid}, when it was imported"

    def pytest_runtest_logreport(self, report):
        file = report.nodeid.partition("::")[0]
        self.seconds[file] = self.seconds.get(file, 0) + report.duration
        if report.failed:
            self.failed = self.failed or report.nodeid


def run_tests(answer, folder: Path, cache_home: Path, tests: list[str], slow: bool) -> None:
    """Run tests in a copy of the project, in a process of its own, and answer which failed."""
    os.setsid()
    os.chdir(folder)
    os.environ |= {"NUMBA_CACHE_DIR": str(cache_home / "numba"), "XDG_CACHE_HOME": str(cache_home)}
    os.environ["PYTHONPATH"] = str(folder / "src")
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(folder / "src"), str(folder / "tests"), str(folder)]
    numba.config.reload_config()
    watch, said = Watch(slow), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(["-x", "-p", "no:cacheprovider", *tests], plugins=[watch])
    if code not in (0, 5):
        watch.failed = watch.failed or f"pytest, which ended with {int(code)}"
    answer.send((watch.failed, watch.seconds, said.getvalue()))


def outcome(folder: Path, cache_home: Path, tests: list[str], slow: bool, limit: float) -> tuple:
    """First failing test, or None; seconds by test file; what pytest said."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=run_tests, args=(there, folder, cache_home, tests, slow))
    child.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else ("time: the tests did not end", {}, "")
    except EOFError:
        return "a crash of the process", {}, ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.join()


class Copy:
    """A copy of the project, with what numba has compiled for it."""

    def __init__(self, folder: Path):
        self.folder, self.caches = folder / "project", folder / "cache"
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache", "results*")
                shutil.copytree(source, self.folder / part, ignore=ignored)
            else:
                self.folder.mkdir(exist_ok=True)
                shutil.copy2(source, self.folder / part)
        failed, self.seconds, said = outcome(self.folder, self.caches, test_files()[0], False, 10 * FAST)
        if failed:
            sys.exit(f"error: {failed} fails without any change.\n{said[-3000:]}")

    def noticed(self, file: str, text: str) -> str | None:
        """What notices that a file has another text."""
        path, (fast, slow) = self.folder / file, tests_for(file, self.seconds)
        was, times = path.read_text(), path.stat()
        # numba does not see that a kernel that another one calls has changed.
        caches = Path(tempfile.mkdtemp(dir=self.folder.parent)) if "njit" in was else self.caches
        path.write_text(text)
        try:
            runs = ((fast, False, FAST), (slow, False, SLOW), (fast + slow, True, SLOW))
            found = (outcome(self.folder, caches, *run)[0] for run in runs if run[0] and run[2])
            return next(filter(None, found), None)
        finally:
            path.write_text(was)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if caches != self.caches:
                shutil.rmtree(caches, ignore_errors=True)


def main(cases: int, seed: int) -> None:
    """Say of each change what noticed it, and at the end which share was noticed."""
    reasons, counts = equivalent(), {"caught": 0, "missed": 0, "equivalent": 0}
    with tempfile.TemporaryDirectory() as folder:
        project = Copy(Path(folder))
        for file, line, text, before, after in drawn(cases, seed):
            reason, started = (
                reasons.get((file, before, after), reasons.get((file, before, "anything"))),
                time.monotonic(),
            )
            by = None if reason else project.noticed(file, text)
            kind = "equivalent" if reason else "caught" if by else "missed"
            counts[kind] += 1
            took = f"({time.monotonic() - started:.0f} s)"
            print(
                f"{kind}: {file}, line {line}",
                f"- {before}",
                f"+ {after}",
                reason or by or "nothing",
                sep="\n  ",
                end="",
            )
            print("", took, flush=True)
    tried = counts["caught"] + counts["missed"]
    print(
        f"Seed {seed}: {counts['caught']} of {tried} changes were noticed, {counts['caught'] / max(tried, 1):.1%};",
        end="",
    )
    print(f" {counts['equivalent']} more mean the same as before.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
