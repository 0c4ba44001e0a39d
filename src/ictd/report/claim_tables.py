"""Tables of claims for readers: the paper's sentences and their parts, an overview of claims, and every verdict."""

import re

import pandas as pd

from ictd.report.html import Markup, anchor, table, text
from ictd.report.sentences import untested
from ictd.report.verdicts import (
    HOLDS,
    by_name,
    closest,
    counts_in_words,
    holding,
    in_words,
    interval,
    needs,
    number,
    outcome,
    verdict_in_words,
    verdict_on,
    words,
)


def sentences_overview(sentences: list[dict], claims: list[dict], counted: bool = True) -> pd.DataFrame:
    """Tabulate the paper's sentences that are counted, or the others, one row per sentence.

    Parameters
    ----------
    sentences : list of records, as of ``ictd.report.sentences.decide``
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
    links = "".join(f" {link}" for link in _links(sentence["shown"]))
    return f"<ul>{''.join(items)}</ul><small>In the paper: {text(place)}.{links}</small>"


def claims_overview(claims: list[dict]) -> pd.DataFrame:
    """Tabulate claims, one row per claim.

    Parameters
    ----------
    claims : list of records, as of ``ictd.report.claim.as_records``

    Returns
    -------
    DataFrame
        The claim; the measured values over settings; the verdict; the number of trials that meet the threshold by
        themselves; and links to figures and to the rows of ``claims_rows``.
    """
    rows = []
    for name, group in by_name(claims).items():
        first = group[0]
        trials = [claim["trials"] for claim in group if claim["trials"] is not None]
        hold = sum(claim["trials_hold"] for claim in group if claim["trials"] is not None)
        rows.append(
            {
                "claim": first["statement"],
                "measured": Markup(f"{_measured(group)}<br><small>{text(first['statistic'])}</small>"),
                "verdict": verdict_in_words(group),
                "trials": f"{hold} of {sum(trials)}" if trials else "",
                "see": Markup("<br>".join(_links(first["shown"], name))),
            }
        )
    return pd.DataFrame(rows)


def _measured(group: list[dict]) -> str:
    """Least and greatest value over settings, and the threshold, as HTML."""
    values = [claim["value"] for claim in group if claim["value"] is not None]
    extremes = [min(values), max(values)] if values else [None]
    threshold = group[0]["threshold"]
    shown = " to ".join(dict.fromkeys(number(value, threshold) for value in extremes))
    not_finite = f", {len(group) - len(values)} not finite" if 0 < len(values) < len(group) else ""
    ends = [end for claim in group for end in (claim["low"], claim["high"]) if end is not None]
    intervals = f" (intervals from {number(min(ends), threshold)} to {number(max(ends), threshold)})" if ends else ""
    return f"<b>{shown}</b>{not_finite}{intervals}; needs {text(needs(group[0]))}"


def _links(figures: str, claim: str = "") -> list[str]:
    """Links to figures and to the rows of a claim; ``ictd.report.html.without_dead_links`` removes dead ones."""
    links = [(figure, re.sub("_0?", " ", figure).capitalize()) for figure in figures.split()]
    links += [(anchor("rows", claim), "all rows")] if claim else []
    return [f'<a href="#{target}">{title}</a>' for target, title in links]


def claims_rows(claims: list[dict]) -> str:
    """Every verdict as HTML: each claim, and a table that has one row per setting."""
    sections = []
    for name, group in by_name(claims).items():
        rows = [
            {
                "setting": in_words(claim["setting"]),
                "value": number(claim["value"], claim["threshold"]),
                "95% interval": interval(claim),
                "needs": f"{claim['relation']} {number(claim['threshold'])}",
                "verdict": claim["verdict"],
                "corrected": claim["corrected"],
                "trials": "" if claim["trials"] is None else f"{claim['trials_hold']} of {claim['trials']}",
            }
            for claim in group
        ]
        heading = f"<h4>{text(group[0]['statement'])}</h4>\n<p>It holds in {holding(group)} of {len(group)}."
        heading += f" <small>{text(group[0]['statistic'])}</small></p>"
        sections.append(f'<div id="{anchor("rows", name)}">{heading}\n{table(pd.DataFrame(rows))}</div>\n')
    return "".join(sections)


def sentences_that_do_not_hold(sentences: list[dict], claims: list[dict]) -> str:
    """The sentences of the kind "claim" that do not hold, as an HTML list with their tests; empty if there are none."""
    by_id = {claim["id"]: claim for claim in claims}
    items = []
    for sentence in sentences:
        if sentence["kind"] == "claim" and sentence["verdict"] != HOLDS:
            quote, said = text(sentence["quote"]), f"<b>In this run: {sentence['verdict']}.</b>"
            items.append(f"<li>“{quote}” {said} {''.join(_closest(sentence, by_id))}</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""


def what_does_not_hold(claims: list[dict]) -> str:
    """The claims that do not hold in all settings, as an HTML list; empty if there are none."""
    items = []
    for group in by_name(claims).values():
        if verdict_on(group) != HOLDS:
            sentence, colon, where = verdict_in_words(group).partition(": ")
            items.append(f"<li>{text(group[0]['statement'])} <b>In this run: {sentence}</b>{colon}{text(where)}.</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""
