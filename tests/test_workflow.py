"""The whole workflow at smoke size: its results, their verification, and the division into jobs."""

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import matplotlib.image
import numpy as np
import pytest
from html_page import Page
from projects import FEW, ROOT, STUDIES, small_project, snakemake

from ictd.pipeline import provenance
from ictd.pipeline.config import load_yaml
from ictd.report.paper import results as of_paper
from ictd.report.part import outputs_in
from ictd.steps.report import check, reference, verify
from ictd.storage import file_digest, load_json, save_json

FIGURES = {figure.name: figure for figure in outputs_in(of_paper, "figure") if figure.name != "elsewhere"}


@pytest.fixture
def results(smoke) -> Path:
    """Results of the smoke run (read only)."""
    return smoke / "results-smoke"


def test_figures_are_not_empty(results):
    for name in FIGURES:
        image = matplotlib.image.imread(results / f"figures/{name}.png")
        dark = (image[..., :3].min(axis=-1) < 0.5).mean()
        assert min(image.shape[:2]) > 200 and 0.002 < dark < 0.5, name
        assert (results / f"figures/{name}.svg").read_text().rstrip().endswith("</svg>"), name


def test_the_report_is_one_page_whose_links_have_targets(results):
    page, text = Page(results / "report.html"), (results / "report.html").read_text()
    assert len(page.images) == len(FIGURES) and not page.outside
    assert all(source.startswith("data:image/png;base64,") for source in page.images)
    shown = page.text.replace("\nMore\n", " ")
    assert all(figure.caption in shown for figure in FIGURES.values())
    files = re.findall(r'class="file" href="(.*?)"', text)
    assert files and all((results / file).exists() for file in files)
    ids, links = set(re.findall(r"""id=["'](.*?)["']""", text)), set(re.findall(r'href="#(.*?)"', text))
    assert len(links) > 20 and links <= {*map(quote, ids), *ids}
    assert all(len(alternative) > 20 for alternative in re.findall(r'<img[^>]*alt="(.*?)"', text))


@pytest.mark.slow
def test_snakemakes_report_holds_figures_and_the_report(smoke, tmp_path):
    done = snakemake(smoke, "--report", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stdout
    text = (tmp_path / "report.html").read_text()
    for name in [*FIGURES, "report", "explore"]:
        assert re.search(rf"\b{name}\.(png|html)", text), name
    assert "on the unseen tasks that decide the claims" in text


def test_the_manifest_has_the_digest_of_each_result(results):
    manifest = load_json(results / "manifest.json")
    kinds = {"metrics": ".csv", "weights": ".npz", "evaluation": ".npz"}
    made = {f"{kind}/{path.name}" for kind, end in kinds.items() for path in (results / kind).glob(f"*{end}")}
    assert made | {"claims.json", "theory/claims.json"} <= manifest["files"].keys()
    assert all(file_digest(results / name) == digest for name, digest in manifest["files"].items())


def test_verification_names_differences(results, tmp_path, capsys, monkeypatch):
    copied, wanted = shutil.copytree(results, tmp_path / "results"), tmp_path / "reference"
    reference.main(copied, wanted)
    manifest = load_json(copied / "manifest.json")
    records = copied / "logs/manifest.log"

    def said(**changes) -> str:
        """Messages of the verification of another manifest, as if the workflow had made it."""
        before = file_digest(copied / "manifest.json")
        save_json(copied / "manifest.json", manifest | changes)
        records.write_text(records.read_text().replace(before, file_digest(copied / "manifest.json")))
        try:
            verify.main(copied, wanted)
        except ValueError as error:
            return str(error)
        return capsys.readouterr().out

    assert "results agrees with the reference in all of its " in said()
    other = manifest["settings"] | {"discount": 0.8}
    assert "other settings than the reference (paper.discount)" in said(settings=other)
    digest_of = provenance.code_digest
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "code_digest", lambda name: "x" if name == "ictd.mrp" else digest_of(name))
        assert "other code or texts than the project's (ictd.mrp); run snakemake" in said()
    path = copied / "numbers.csv"
    text = path.read_text()
    path.write_text(text + "\n")
    assert "numbers.csv is not the file that its job wrote" in said()
    (copied / "logs/results.log").unlink()
    assert "numbers.csv is not the file that the manifest lists" in said()
    path.write_text(text)
    assert "file(s) have no record in a log, such as claims.json" in said()
    check.main(copied)
    assert "file(s) have no record in a log" in capsys.readouterr().out


def test_the_reference_is_that_of_the_configuration():
    settings = load_json(ROOT / "reference/run.json")["settings"]
    config = load_yaml(ROOT / "config.yaml")
    paper = {key: config[key] for key in config if key not in ("extensions", "seeds_per_job", "results")}
    studies = {name: load_yaml(ROOT / f"studies/{name}/config.yaml") | {"paper": paper} for name in STUDIES}
    assert settings == {"paper": paper} | studies


@pytest.mark.slow
def test_the_smallest_configuration_is_enough(tmp_path):
    small = ["algos=[mc]", "envs=[loop]", "states=[2]", "depths=[1]", "seeds=1", "tasks=3", "discount=0", "snapshots=2"]
    done = snakemake(small_project(tmp_path), "--cores", "2", "--config", *small)
    assert done.returncode == 0, done.stdout
    assert len(Page(tmp_path / "results-smoke/report.html").images) == 9


@pytest.mark.slow
def test_a_failing_job_gives_the_reason_and_keeps_finite_snapshots(tmp_path):
    target, changes = "results-smoke/runs/td-boyan-5-6/0-2.npz", ["learning_rate=1e300", "algos=[td]", *FEW]
    done = snakemake(small_project(tmp_path), target, "--cores", "2", "--config", *changes)
    assert done.returncode != 0 and re.search(r"^ *error: td-boyan-5-6, seed 0: .*Choose another", done.stdout, re.M)
    kept = np.load(tmp_path / "results-smoke/diverged/td-boyan-5-6-seed-0.npz")
    assert kept["tasks_seen"].tolist() == [1] and len(kept["A"]) == 1
