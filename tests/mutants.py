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
import itertools
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
import matplotlib.pyplot  # noqa: F401
import pandas  # noqa: F401
import pytest
import torch

ROOT = Path(__file__).parents[1]
LEFT_OUT = (".git", ".venv", ".snakemake", "__pycache__", ".*_cache", "results*")
EQUIVALENT = Path("tests/mutants_equivalent.txt")
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
    "alpha aspect axes.spines.right axes.spines.top axes.titlesize bounds columnspacing figsize"
    " figure.constrained_layout.h_pad figure.constrained_layout.use figure.dpi font.size fontsize handlelength"
    " handletextpad labelsize legend.frameon length lw marker markevery ms mutation_scale ncols offset pad rotation"
    " shrink shrinkA shrinkB zorder".split()
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
    for path in sorted([*Path("src").rglob("*.py"), *Path("studies").glob("*/*.py")]):
        text = path.read_text()
        lines = [line.encode() for line in text.splitlines(keepends=True)]
        for node, code in changes(ast.parse(text), {"strict"} | (LOOKS if "matplotlib" in text else set())):
            first, last = node.lineno - 1, node.end_lineno
            after = lines[first][: node.col_offset] + code.encode() + lines[last - 1][node.end_col_offset :]
            new = b"".join([*lines[:first], after, *lines[last:]]).decode()
            shown = [" ".join(part.decode().split()) for part in (b"".join(lines[first:last]), after)]
            found.setdefault((str(path), node.lineno), []).append((new, *shown))
    return found


def drawn(cases: int, seed: int) -> list[tuple[str, int, str, str, str]]:
    """Changes on different lines: file, line, the file's new text, and the changed lines before and after."""
    rng, found = random.Random(seed), mutants()
    return [(*place, *rng.choice(found[place])) for place in rng.sample(sorted(found), cases)]


def equivalent() -> dict[tuple[str, str, str], str]:
    """Reasons by file and changed line, before and after, or "anything" after; ends where a line is there no more."""
    blocks = [block.strip().split("\n") for block in EQUIVALENT.read_text().split("\n\n") if block.strip()]
    known = {(file, before) for (file, _), found in mutants().items() for _, before, _ in found}
    gone = [f"  {block[0]}: {block[1]}" for block in blocks if tuple(block[:2]) not in known]
    if gone:
        sys.exit("\n".join([f"error: {EQUIVALENT} names lines that are there no more; take them out:", *gone]))
    return {tuple(block[:3]): " ".join(block[3:]) for block in blocks}


@cache
def imports(path: Path) -> frozenset[Path]:
    """Files of the project that a file imports, or names in a text as modules."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", str(node.value)):
            names = [node.value]
        for name, place in itertools.product(names, (Path(), Path("src"), Path("tests"), path.parent)):
            file = place.joinpath(*name.split("."))
            found |= {one for one in (file.with_suffix(".py"), file / "__init__.py") if one.is_file()}
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


def test_files() -> tuple[list[Path], list[Path]]:
    """Test files; those that start processes, which is slow, apart."""
    found = sorted([*Path("tests").glob("test_*.py"), *Path("studies").glob("*/tests/test_*.py")])
    slow = re.compile(r"subprocess|copy_project|\b(snakemake|plans|rules_of)\(")
    return tuple([path for path in found if bool(slow.search(path.read_text())) == of] for of in (False, True))


def tests_for(file: str, seconds: dict[str, float]) -> tuple[list[Path], list[Path]]:
    """Fast test files that reach a file, and all slow ones; those first that import it themselves."""
    path, (fast, slow) = Path(file), test_files()
    order = {test: (path not in imports(test), seconds.get(str(test), 0)) for test in fast + slow}
    return sorted((test for test in fast if path in reached(test)), key=order.get), sorted(slow, key=order.get)


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


def run_tests(answer, caches: Path, tests: list[Path], slow: bool) -> None:
    """Run tests in this folder, in a process of its own, and answer which failed first, seconds, and what was said."""
    os.setsid()
    here = Path.cwd()
    os.environ |= {"XDG_CACHE_HOME": str(caches), "PYTHONPATH": str(here / "src")}
    sys.dont_write_bytecode = True
    sys.path[:0] = map(str, (here / "src", here / "tests", here))
    watch, said = Watch(slow), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(["-x", "-p", "no:cacheprovider", "-p", "no:faulthandler", *map(str, tests)], plugins=[watch])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        watch.failed = watch.failed or f"pytest, {code.name}"
    answer.send((watch.failed, watch.seconds, said.getvalue()))


def outcome(caches: Path, tests: list[Path], slow: bool, limit: float) -> tuple[str | None, dict[str, float], str]:
    """What ``run_tests`` answers; a crash, and a test that takes too long, count as failures."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=run_tests, args=(there, caches, tests, slow))
    child.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else ("time, as the tests did not end", {}, "")
    except EOFError:
        return "a crash", {}, ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.join()


def noticed(file: str, text: str, caches: Path, seconds: dict[str, float]) -> str | None:
    """What notices that a file of this folder has another text."""
    path, (fast, slow) = Path(file), tests_for(file, seconds)
    was, times = path.read_text(), path.stat()
    path.write_text(text)
    try:
        for tests, of_runs, limit in ((fast, False, FAST), (slow, False, SLOW), (fast + slow, True, SLOW)):
            if tests and (found := outcome(caches, tests, of_runs, limit)[0]):
                return found
    finally:
        path.write_text(was)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def main(cases: int, seed: int) -> None:
    """Say of each change what noticed it, and at the end which share was noticed."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        caches = Path(folder, "caches")
        os.chdir(shutil.copytree(ROOT, Path(folder, "project"), ignore=shutil.ignore_patterns(*LEFT_OUT)))
        caches.mkdir()
        failed, seconds, said = outcome(caches, test_files()[0], False, 10 * FAST)
        if failed:
            sys.exit(f"error: {failed} fails without any change.\n{said[-3000:]}")
        reasons, counts = equivalent(), {"caught": 0, "missed": 0, "the same": 0}
        for file, line, text, before, after in drawn(cases, seed):
            started = time.monotonic()
            reason = reasons.get((file, before, after)) or reasons.get((file, before, "anything"))
            by = None if reason else noticed(file, text, caches, seconds)
            kind = "the same" if reason else "caught" if by else "missed"
            counts[kind] += 1
            print(f"{kind}: {file}, line {line}\n  - {before}\n  + {after}\n  {reason or by or 'by nothing'}", end=" ")
            print(f"({time.monotonic() - started:.0f} s)", flush=True)
    tried = counts["caught"] + counts["missed"]
    share = counts["caught"] / max(tried, 1)
    print(f"Seed {seed}: of {tried} changes {counts['caught']} were caught, {share:.1%}.", end=" ")
    print(f"{counts['the same']} more are known to mean the same as before.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
