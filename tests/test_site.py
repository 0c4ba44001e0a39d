"""Formulas of the site."""

import sys

import pytest
from projects import ROOT

sys.path.append(str(ROOT / "docs/site"))
from latex import to_latex


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("    h_{l+1} = h_l T,    so    X'AX", r"h_{l+1} = h_l T, \qquad \text{ so } \qquad X'AX"),
        ("‖r‖_∞ ≤ Σ_{l<L} TF_L²", r"\|r\|_\infty  \le  \sum _{l<L} \mathrm{TF}_L^2"),
        ("alpha sum_t phi_t reward_square", r"\alpha  \sum _t \phi _t \mathrm{reward\_square}"),
        ("X̃ − ḡ", r"\tilde{X} - \bar{g}"),
    ],
)
def test_formulas(formula, latex):
    assert to_latex(formula) == latex
