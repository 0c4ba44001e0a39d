"""The paper's sentences on its experiments, and the verdict on each, which follows from the verdicts on its tests."""

import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ictd.report.verdicts import HOLDS, NOT_SHOWN, PLACE, REFUTED, overall

# Kinds of sentences; only sentences of the kind "claim" are counted.
KINDS = ("claim", "speculation", "question", "repetition", "interpretation")
# What is varied in the cells that a sentence covers, with the environment of pretraining that the sentence is about.
VARIED = {"main": "boyan", "depth": "boyan", "states": "boyan", "env": "loop"}
# The algorithms of the paper, the environment on which it evaluates, and the tests of errors there.
ALGOS, EVALUATED_ON = ("td", "mc"), "boyan"
ON_EVALUATION = ("msve_falls", "msve_lower", "beats_zero", "beats_zero_by_medians", "beats_constant", "layer_is_td")


@dataclass(frozen=True)
class Sentence:
    """A sentence of the paper.

    Parameters
    ----------
    name : str
    kind : str, one of KINDS
    section, paragraph : str, where the sentence is in the paper
    quote : str, the paper's words
    tests : list of str, names of the tests that decide
    cells : str, one of VARIED
    beside : list of str, names of our own tests, which stand beside the others and do not decide
    note : str, a remark for readers
    shown : str, names of the figures that show it
    """

    name: str
    kind: str
    section: str
    paragraph: str
    quote: str
    tests: list[str]
    cells: str = "main"
    beside: list[str] = field(default_factory=list)
    note: str = ""
    shown: str = ""


def load_sentences(path: Path) -> list[Sentence]:
    """Read the sentences of a TOML file with an array of tables ``sentence``.

    Raises
    ------
    ValueError
        If the file is not valid TOML, or a sentence lacks a key or has a wrong one.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("sentence", [])
    except ValueError as error:
        raise ValueError(f"{path} is no valid TOML: {error}.") from None
    sentences = []
    for table in tables:
        try:
            sentence = Sentence(**table)
        except TypeError as error:
            raise ValueError(f"{path}, sentence {table.get('name')!r}: {error}.") from None
        if sentence.kind not in KINDS or sentence.cells not in VARIED:
            raise ValueError(
                f"{path}, sentence {sentence.name!r}: give a kind of {', '.join(KINDS)}, and cells of"
                f" {', '.join(VARIED)}."
            )
        sentences.append(sentence)
    return sentences


def varied_in(setting: str, main: tuple[str, int, int]) -> str | None:
    """What is varied in a cell or setting, one of VARIED; None for cells unlike the paper's, and for other texts.

    A cell is unlike the paper's if it has another algorithm, or an environment that VARIED does not have for it.

    Parameters
    ----------
    setting : str, [ALGO-]ENV-STATES[-DEPTH]
    main : tuple, env, states and depth of the main setting
    """
    place = PLACE.fullmatch(setting)
    if not place:
        return None
    algo, env, states, depth = place.groups()
    varied = "depth" if depth and int(depth) != main[2] else "main"
    if int(states) != main[1]:
        varied = "states"
    if env != main[0]:
        varied = "env"
    return varied if algo in (None, *ALGOS) and env == VARIED[varied] else None


def tested_by(tests: list[str], cells: str, claims: list[dict], main: tuple[str, int, int]) -> list[dict]:
    """The records of the claims that tests make in the cells that a sentence covers, one of VARIED."""
    return [
        claim
        for name in tests
        for claim in claims
        if claim["id"].split("/")[0] == name and varied_in(claim["setting"], main) == cells
    ]


def untested(tests: list[str], parts: list[dict]) -> list[str]:
    """Names of the tests and algorithms that a sentence needs and a run lacks.

    A run lacks a test that could not be made, such as one on a single trial.  A sentence that is tested with one
    algorithm needs the other algorithm, too; tests of a setting as a whole name no algorithm.

    Parameters
    ----------
    tests : list of str, names of the tests of the sentence
    parts : list of records of the claims that decide the sentence
    """
    tested = {claim["id"].split("/")[0] for claim in parts}
    algos = {PLACE.fullmatch(claim["setting"])[1] for claim in parts} - {None}
    not_run = [algo for algo in ALGOS if algo not in algos] if algos else []
    return [name for name in tests if name not in tested] + not_run


def decide(
    sentences: list[Sentence], claims: list[dict], main: tuple[str, int, int], evaluated_on: str = EVALUATED_ON
) -> list[dict]:
    """Decide sentences from the verdicts of their tests.

    Parameters
    ----------
    sentences : list of Sentence
    claims : list of records, with "id", "setting" and "verdict"
    main : tuple, env, states and depth of the main setting
    evaluated_on : str, the environment of the unseen tasks

    Returns
    -------
    list of dict
        The fields of each sentence, the ids of its "parts" and of its tests "beside", and its "verdict".  Sentences
        about settings that the configuration does not have are left out.  A test or an algorithm that the run lacks
        counts as not shown.  A sentence without tests has an empty verdict.
    """
    if evaluated_on != EVALUATED_ON:
        sentences = [one for one in sentences if not set(one.tests) & set(ON_EVALUATION)]
    records = []
    for sentence in sentences:
        parts, beside = (tested_by(names, sentence.cells, claims, main) for names in (sentence.tests, sentence.beside))
        if sentence.tests and not parts:
            continue
        missing = [NOT_SHOWN for _ in untested(sentence.tests, parts)]
        verdict = overall([claim["verdict"] for claim in parts] + missing) if parts else ""
        ids = {"parts": [claim["id"] for claim in parts], "beside": [claim["id"] for claim in beside]}
        records.append({**asdict(sentence), **ids, "verdict": verdict})
    return records


def counted(sentences: list[dict]) -> dict[str, int]:
    """Number of sentences of the kind "claim" by verdict, given the records of sentences."""
    verdicts = [sentence["verdict"] for sentence in sentences if sentence["kind"] == "claim"]
    return {verdict: verdicts.count(verdict) for verdict in (HOLDS, NOT_SHOWN, REFUTED)}


def in_one_sentence(counts: dict[str, int]) -> str:
    """How many of the paper's sentences hold, as a sentence; ``counts`` is that of ``counted``."""
    return (
        f"The paper makes a claim about its experiments in {sum(counts.values())} sentences. By our thresholds,"
        f" {counts[HOLDS]} hold; not shown: {counts[NOT_SHOWN]}; refuted: {counts[REFUTED]}."
    )
