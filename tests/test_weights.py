"""Published weights: ``make weights`` packs exactly the arrays that ``ictd.load_model`` reads."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import ictd
from ictd.steps.report import publish as weights
from ictd.storage import file_digest, load_json


@pytest.fixture
def results(smoke, tmp_path) -> Path:
    """The weights and the manifest of a finished run, for editing."""
    shutil.copytree(smoke / "results-smoke/weights", tmp_path / "results/weights")
    shutil.copy(smoke / "results-smoke/manifest.json", tmp_path / "results/")
    return tmp_path / "results"


def test_packed_models_are_those_of_the_results(results, tmp_path):
    packed = tmp_path / "packed"
    weights.main(results, packed)
    manifest, run = load_json(packed / "manifest.json"), load_json(results / "manifest.json")
    assert manifest["settings"] == run["settings"] and manifest["commit"] == run["commit"]
    assert {path.name: file_digest(path) for path in packed.glob("*.npz")} == manifest["files"]
    assert len(manifest["files"]) == len(list((results / "weights").iterdir())) == 8
    for name in manifest["files"]:
        cell = name.removesuffix(".npz")
        with np.load(packed / name) as archive:
            assert {*archive} == {*manifest["arrays"]}
        for seed in range(3):
            assert ictd.load_model(packed, cell, seed) == ictd.load_model(results, cell, seed)


def test_weights_that_the_manifest_does_not_list_are_refused(results, tmp_path):
    packed = tmp_path / "packed"
    shutil.copy(results / "weights/td-boyan-3-6.npz", results / "weights/td-boyan-5-6.npz")
    with pytest.raises(ValueError, match=r"weights/td-boyan-5-6\.npz is not the file that the manifest lists"):
        weights.main(results, packed)
