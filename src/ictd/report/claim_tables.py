"""Tables of claims for readers: the paper's sentences and their parts, an overview of claims, and every verdict."""

import re

import pandas as pd

from ictd.report.html import Markup, anchor, table, text
from ictd.report.sentences import untested
from ictd.report.verdicts import (
    HOLDS,
    by_name,
    holding,
    in_words,
    interval,
    measured,
    number,
    verdict_in_words,
    verdict_on,
    words,
)


def sentences_overview(sentences: list[dict], claims: list[dict]) -> pd.DataFrame:
    """Tabulate the paper's sentences, one row per sentence.

    Parameters
    ----------
    sentences : list of records, as of ``ictd.report.sentences.decide``
    claims : list of records, as of ``ictd.report.claim.as_records``

    Returns
    -------
    DataFrame
        Where the sentence is, the paper's words, our tests with links to their rows in ``claims_rows``, the verdict,
        the parts that do not hold, and links to figures.
    """
    by_id = {claim["id"]: claim for claim in claims}
    rows = []
    for sentence in sentences:
        parts = [by_id[name] for name in sentence["parts"]]
        rows.append(
            {
                "in the paper": f"{sentence['section']}, {sentence['paragraph']} paragraph",
                "kind": sentence["kind"],
                "the paper's words": f"“{sentence['quote']}”",
                "our tests": Markup("<br>".join(_tests(parts) + _note(sentence))),
                "verdict": sentence["verdict"],
                "parts": Markup(_parts_in_short(sentence, parts)),
                "see": Markup(_links(sentence["shown"]) if parts else ""),
            }
        )
    return pd.DataFrame(rows)


def _note(sentence: dict) -> list[str]:
    """A sentence's note as HTML, if it has one."""
    return [f"<i>{text(sentence['note'])}</i>"] if sentence["note"] else []


def _tests(parts: list[dict]) -> list[str]:
    """The tests of a sentence, with their statistics and thresholds, as HTML."""
    return [
        f'<a href="#{anchor("rows", name)}">{text(group[0]["statement"])}</a>'
        f" <small>{text(group[0]['statistic'])}; needs {needs(group[0])}</small>"
        for name, group in by_name(parts).items()
    ]


def _parts_in_short(sentence: dict, parts: list[dict]) -> str:
    """The parts of a sentence that do not hold, and what was not tested, as HTML."""
    others = [claim for claim in parts if claim["verdict"] != HOLDS]
    if not parts:
        return ""
    lines = [f"{len(parts) - len(others)} of {len(parts)} hold"]
    for claim in others:
        said = f"{text(claim['statement'])} {in_words(claim['setting'])}: {measured(claim)}; needs {needs(claim)}"
        lines.append(f"{claim['verdict']}: {said}")
    missing = untested(sentence["tests"], parts)
    if missing:
        lines.append(f"not tested in this run: {', '.join(map(words, missing))}")
    return "<br>".join([text(lines[0]), *(f"<small>{line}</small>" for line in lines[1:])])


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
                "see": Markup(_links(first["shown"], name)),
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
    return f"<b>{shown}</b>{not_finite}{intervals}; needs {needs(group[0])}"


def needs(claim: dict) -> str:
    """The relation of a claim's value to the threshold, as HTML."""
    return f"{text(claim['relation'])} {number(claim['threshold'])}"


def _links(figures: str, claim: str = "") -> str:
    """Links to figures and to the rows of a claim; ``ictd.report.html.without_dead_links`` removes dead ones."""
    links = [(figure, re.sub("_0?", " ", figure).capitalize()) for figure in figures.split()]
    links += [(anchor("rows", claim), "all rows")] if claim else []
    return "<br>".join(f'<a href="#{target}">{title}</a>' for target, title in links)


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
    """The sentences of the kind "claim" that do not hold, as an HTML list with their parts; empty if there are none."""
    by_id = {claim["id"]: claim for claim in claims}
    items = []
    for sentence in sentences:
        if sentence["kind"] == "claim" and sentence["verdict"] != HOLDS:
            parts = _parts_in_short(sentence, [by_id[name] for name in sentence["parts"]])
            items.append(f"<li>“{text(sentence['quote'])}” <b>In this run: {sentence['verdict']}.</b> {parts}</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""


def what_does_not_hold(claims: list[dict]) -> str:
    """The claims that do not hold in all settings, as an HTML list; empty if there are none."""
    items = []
    for group in by_name(claims).values():
        if verdict_on(group) != HOLDS:
            sentence, colon, where = verdict_in_words(group).partition(": ")
            items.append(f"<li>{text(group[0]['statement'])} <b>In this run: {sentence}</b>{colon}{text(where)}.</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""
