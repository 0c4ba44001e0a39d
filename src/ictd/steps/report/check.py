"""Refuse results that are not what their records say (``make report``)."""

from pathlib import Path

from ictd.pipeline.records import checked_records, finished_files, without_record


def main(results: Path) -> None:
    """Check all finished files; the output names files without a record."""
    print(without_record(checked_records(results, finished_files(results))), end="")
