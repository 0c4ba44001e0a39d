"""Tables of claims for readers: an overview, and every verdict."""

import re

import pandas as pd

from ictd.report.html import Markup, anchor, table, text
from ictd.report.verdicts import (
    by_name,
    holding,
    in_words,
    interval,
    number,
    verdict_in_words,
)


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
                "see": Markup("<br>".join(links(first["shown"], name))),
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
    needs = text(f"{group[0]['relation']} {number(threshold)}")
    return f"<b>{shown}</b>{not_finite}{intervals}; needs {needs}"


def links(figures: str, claim: str = "") -> list[str]:
    """Links to figures and to the rows of a claim; ``ictd.report.html.without_dead_links`` removes dead ones."""
    targets = [(figure, re.sub("_0?", "\u00a0", figure).capitalize()) for figure in figures.split()]
    targets += [(anchor("rows", claim), "all rows")] if claim else []
    return [f'<a href="#{target}">{title}</a>' for target, title in targets]


def marked(name: str, said: str) -> Markup:
    """A text as HTML with an id, to which links lead."""
    return Markup(f'<span id="{name}">{text(said)}</span>')


def claims_rows(claims: list[dict]) -> str:
    """Every verdict as HTML: each claim, and a table that has one row per setting, with an id for links to it."""
    sections = []
    for name, group in by_name(claims).items():
        rows = [
            {
                "setting": marked(anchor("row", claim["id"]), in_words(claim["setting"])),
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
