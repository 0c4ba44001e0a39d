"""The pages with tables: summaries, the slider over pretraining, and computing times."""

from pathlib import Path

import yaml

from ictd.report import html
from ictd.report.compute import compute_table, load_benchmarks
from ictd.report.slider import runs_of, slider
from ictd.report.summaries import save_summaries
from ictd.report.tables import load_tables
from ictd.storage import load_json, save_table


def main(
    claims: Path,
    theory: Path,
    sentences: Path,
    tables: list[Path],
    settings: dict,
    schema: Path,
    cells: list[str],
    rules: list[str],
    benchmarks: Path,
    compute: Path,
    folder: Path,
) -> None:
    """Write the pages as HTML, and computing times as CSV.

    ``claims`` has all claims, ``theory`` those on the theory, and ``sentences`` the paper's sentences on its
    experiments.  The slider shows ``cells`` in this order.  Computing
    times are those of ``rules``, from the folder ``benchmarks``.
    """
    table = load_tables(tables)
    theory_ids = {claim["id"] for claim in load_json(theory)}
    schema_content = yaml.safe_load(schema.read_text(encoding="utf-8"))
    save_summaries(load_json(claims), theory_ids, load_json(sentences), table, settings, schema_content, folder)
    runs = runs_of(cells, table["mean_entries"], table["learning"], table["weights"], settings["discount"])
    html.save(folder / "slider.html", "slider", slider(runs))
    times = compute_table(load_benchmarks(benchmarks, rules))
    save_table(compute, times)
    html.save(folder / "compute.html", "compute", html.table(times))
