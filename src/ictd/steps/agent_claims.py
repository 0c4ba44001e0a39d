"""Decide the claims on pretraining on sampled contexts."""

from pathlib import Path

from ictd.agents import check_agents
from ictd.claims import as_records
from ictd.frames import load_table
from ictd.steps import run
from ictd.storage import save_json


def main(
    tables: list[Path], env: str, states: int, depth: int, discount: float, tasks: int, lengths: list[int], output: Path
) -> None:
    """Write the claims from the tables that ``check_agents`` names; ``env`` to ``discount`` are the main setting."""
    found = {path.stem: load_table(path) for path in tables}
    save_json(output, as_records(check_agents(found, (env, states, depth, discount), tasks, max(lengths))))


if __name__ == "__main__":
    run(main)
