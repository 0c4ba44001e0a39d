"""``python -P -m fuzz CASES [SEED]``: random cases of each kind, what came of them, and the faults (``make fuzz``).

A kind is a module beside this one with a function ``case(rng, folder)``, which tries one thing in an empty folder and
returns what was tried and what came of it: "taken", "refused" for a sentence, anything else for a fault.
"""

import random
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path

KINDS = ("configurations", "files")


def tried(kind: str, cases: int, seed: int) -> tuple[Counter, list[str]]:
    """Counts of what came of the cases of a kind, and a line for each fault."""
    case, counts, faults = import_module(f"fuzz.{kind}").case, Counter(), []
    for number in range(cases):
        with tempfile.TemporaryDirectory() as folder:
            what, outcome = case(random.Random(f"{kind} {seed} {number}"), Path(folder))
        counts[outcome if outcome in ("taken", "refused") else "fault"] += 1
        if outcome not in ("taken", "refused"):
            faults.append(f"{kind} {number}: {what}: {outcome}")
    return counts, faults


def main(cases: int, seed: int = 0) -> None:
    """Print counts and faults; exit with 1 if there are faults."""
    found = {kind: tried(kind, cases, seed) for kind in KINDS}
    for kind, (counts, faults) in found.items():
        print(f"{kind}: {cases} cases, {counts['taken']} taken, {counts['refused']} refused in a sentence,", end=" ")
        print(f"{counts['fault']} not answered")
        print("".join(f"  {fault}\n" for fault in faults), end="")
    sys.exit(any(faults for _, faults in found.values()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
