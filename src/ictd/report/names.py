"""How tables and figures show algorithms, baselines and environments."""

from typing import NamedTuple


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


# The algorithms, and the baselines of ictd.baselines.BASELINES that figures show.  The colours are those of Okabe and
# Ito, which are distinct with any colour vision.
LOOKS = {
    "td": Look("TD", "multi-task TD", "#0072B2"),
    "mc": Look("MC", "multi-task MC", "#D55E00"),
    "theta_td": Look("theta^TD", "theta^TD, best step size", "#009E73", (0, (5, 2))),
    "lstd": Look("LSTD", "LSTD", "#CC79A7", (0, (5, 2, 1, 2))),
    "zero": Look("predicting zero", "predicting zero", "#6e6e6e"),
    "constant": Look("one constant for all states", "one constant", "#E69F00"),
}
# Words for names of the code.
WORDS = {name: look.words for name, look in LOOKS.items()} | {
    "batch_td": "batch TD", "lspi": "LSPI", "pseudo_counts": "pseudo-counts", "boyan": "Boyan's chain", "loop": "Loop",
}  # fmt: skip
# Words for parts of names: "zero" and "constant" are English words there, as in the name of a setting.
PARTS = {name: words for name, words in WORDS.items() if name not in ("zero", "constant")}
