"""How tables and figures show algorithms, baselines and environments."""

from itertools import cycle
from typing import NamedTuple

from ictd.algorithms import ALGORITHMS


class Look(NamedTuple):
    """The look of an algorithm or of a baseline.

    Parameters
    ----------
    words : str, in tables
    label : str, in legends
    colour : str
    dashes : str or tuple, the dashes and gaps of a line, in points
    """

    words: str
    label: str
    colour: str
    dashes: str | tuple = "-"


# The paper's algorithms, and the baselines of ictd.baselines.BASELINES that figures show.  The colours are those of
# Okabe and Ito, which are distinct with any colour vision.
LOOKS = {
    "td": Look("TD", "multi-task TD", "#0072B2"),
    "mc": Look("MC", "multi-task MC", "#D55E00"),
    "theta_td": Look("theta^TD, tuned step", "theta^TD, best step size", "#009E73", (0, (5, 2))),
    "lstd": Look("LSTD", "LSTD", "#CC79A7", (0, (5, 2, 1, 2))),
    "zero": Look("predicting zero", "predicting zero", "#6e6e6e"),
    "constant": Look("one constant for all states", "one constant", "#E69F00"),
}
# Other algorithms: Okabe and Ito's sky blue, and the violet and brown that are farthest from all others.
OTHERS = "#56B4E9", "#9600F0", "#964B2D"
added = [name for name in ALGORITHMS if name not in LOOKS]
for name, colour in zip(added, cycle(OTHERS)):
    LOOKS[name] = Look(ALGORITHMS[name].label, ALGORITHMS[name].label, colour)
# Words for names of the code.
WORDS = {name: look.words for name, look in LOOKS.items()} | {
    "constant_tuned": "one constant, tuned", "lstd_pseudo_steps": "LSTD, tuned pseudo-steps",
    "lspi": "LSPI", "pseudo_counts": "pseudo-counts", "boyan": "Boyan's chain", "loop": "Loop",
}  # fmt: skip
# What a test of the paper's sentences measures.
MEASURED = {
    "msve_falls": "rank correlation of MSVE and length",
    "msve_lower": "MSVE",
    "beats_zero": "MSVE",
    "beats_zero_by_medians": "median over tasks of the MSVE",
    "beats_constant": "MSVE",
    "pattern": "squared cosine of the mean A and theta^TD",
    "pattern_A11": "squared cosine of block A11 and -I",
    "pattern_A12": "squared cosine of block A12 and I",
    "pattern_A21": "relative squared norm of block A21",
    "pattern_A22": "relative squared norm of block A22",
    "bootstraps": "ratio of A12 to A11",
    "pattern_P": "largest entry of u",
    "consistent": "trials with the pattern",
    "finite": "trials that did not diverge",
    "converged": "relative change of A in the last half",
    "same_pattern": "squared correlation of the mean A of TD and MC",
    "same_noise": "squared correlation of the residuals of TD and MC",
    "same_place": "relative distance of the mean A of TD and MC",
    "layer_is_td": "squared cosine of a layer and TD",
    "layer_converges": "tasks in which the repeated layer converges",
    "truncation": "relative bias",
}
# Words for parts of names: "zero" and "constant" are English words there, as in the name of a setting.
PARTS = {name: words for name, words in WORDS.items() if name not in ("zero", "constant")}
