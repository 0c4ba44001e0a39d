"""Tables of the paper's sentences and their tests, as HTML."""

import pandas as pd

from ictd.report.claim_tables import links
from ictd.report.html import Markup, anchor, text
from ictd.report.paper.sentences import untested
from ictd.report.verdicts import (
    HOLDS,
    by_name,
    closest,
    counts_in_words,
    holding,
    in_words,
    number,
    outcome,
    verdict_in_words,
    words,
)


def sentences_overview(sentences: list[dict], claims: list[dict], counted: bool = True) -> pd.DataFrame:
    """Tabulate the paper's sentences that are counted, or the others, one row per sentence.

    Parameters
    ----------
    sentences : list of records, as of ``ictd.report.paper.sentences.decide``
    claims : list of records, as of ``ictd.report.claim.as_records``

    Returns
    -------
    DataFrame
        The paper's words, the verdict, and the test that is closest to its threshold, which opens a list of all tests,
        with our tests beside it.  Counted sentences have the number of tests that hold, others their kinds and notes.
    """
    by_id = {claim["id"]: claim for claim in claims}
    rows = []
    for sentence in sentences:
        if (sentence["kind"] == "claim") == counted:
            parts = [by_id[name] for name in sentence["parts"]]
            row = {"the paper's words": Markup(f"“{text(sentence['quote'])}”"), "verdict": sentence["verdict"]}
            if counted:
                row["tests that hold"] = f"{holding(parts)} of {len(parts)}"
            else:
                row |= {"kind": sentence["kind"], "note": sentence["note"]}
            first, rest = _closest(sentence, by_id)
            fold = f"<details><summary>{first}</summary>{_tests(sentence, by_id)}</details>{rest}"
            rows.append(row | {"closest test": Markup(fold if first else "")})
    return pd.DataFrame(rows)


def _closest(sentence: dict, by_id: dict[str, dict]) -> tuple[str, str]:
    """The closest test, and in small letters what stands beside it or was not tested, as HTML; empty without tests."""
    parts, beside = ([by_id[name] for name in sentence[key]] for key in ("parts", "beside"))
    if not parts:
        return "", ""
    claim = closest(parts)
    lines = [f"beside it: {outcome(closest(group))}; {counts_in_words(group)}" for group in by_name(beside).values()]
    missing = untested(sentence["tests"], parts)
    if missing:
        lines.append(f"not tested in this run: {', '.join(map(words, missing))}")
    rest = "".join(f"<div><small>{text(line)}</small></div>" for line in lines)
    return text(f"{outcome(claim)} ({in_words(claim['setting'])})"), rest


def _tests(sentence: dict, by_id: dict[str, dict]) -> str:
    """All tests of a sentence and those beside it, with statistics, thresholds and verdicts, as an HTML list."""
    items = []
    for name, group in by_name([by_id[part] for part in (*sentence["parts"], *sentence["beside"])]).items():
        first = group[0]
        own = "" if name in sentence["tests"] else " (beside)"
        how = f"{first['statistic']}; needs {first['relation']} {number(first['threshold'])}"
        items.append(
            f'<li><a href="#{anchor("rows", name)}">{text(first["statement"])}</a>{own}'
            f" {text(verdict_in_words(group))}. <small>{text(how)}</small></li>"
        )
    place = f"{sentence['section']}, {sentence['paragraph']} paragraph"
    figures = "".join(f" {link}" for link in links(sentence["shown"]))
    return f"<ul>{''.join(items)}</ul><small>In the paper: {text(place)}.{figures}</small>"


def sentences_that_do_not_hold(sentences: list[dict], claims: list[dict]) -> str:
    """The sentences of the kind "claim" that do not hold, as an HTML list with their tests; empty if there are none."""
    by_id = {claim["id"]: claim for claim in claims}
    items = []
    for sentence in sentences:
        if sentence["kind"] == "claim" and sentence["verdict"] != HOLDS:
            quote, said = text(sentence["quote"]), f"<b>In this run: {sentence['verdict']}.</b>"
            items.append(f"<li>“{quote}” {said} {''.join(_closest(sentence, by_id))}</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""
