"""The tool that changes the code at random, as far as an edit elsewhere can break it."""

import mutants
from projects import ROOT


def test_reasons_of_changes_that_mean_the_same_are_of_lines_that_are_there(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert all(mutants.equivalent().values())
