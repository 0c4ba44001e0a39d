"""Tables of claims for readers: an overview with one row per claim, every verdict, and the claims that fail."""

import re

import pandas as pd

from ictd.report.html import Markup, anchor, table, text
from ictd.report.verdicts import by_name, holding, holds_everywhere, in_words, number, verdict


def claims_overview(claims: list[dict]) -> pd.DataFrame:
    """Tabulate claims, one row per claim.

    Parameters
    ----------
    claims : list of records, as of ``ictd.report.claim.as_records``

    Returns
    -------
    DataFrame
        Where the paper states the claim, if it does; the claim; the measured values over settings; the verdict; the
        number of trials that meet the threshold by themselves; and links to figures and to the rows of ``claims_rows``.
    """
    rows = []
    for name, group in by_name(claims).items():
        first = group[0]
        trials = [claim["trials"] for claim in group if claim["trials"] is not None]
        hold = sum(claim["trials_hold"] for claim in group if claim["trials"] is not None)
        rows.append(
            {
                "in the paper": first["where"],
                "claim": first["statement"],
                "measured": Markup(f"{_measured(group)}<br><small>{text(decided_by(first))}</small>"),
                "verdict": verdict(group),
                "trials": f"{hold} of {sum(trials)}" if trials else "",
                "see": Markup(_links(first["shown"].split(), name)),
            }
        )
    frame = pd.DataFrame(rows)
    return frame if frame["in the paper"].any() else frame.drop(columns="in the paper")


def decided_by(claim: dict) -> str:
    """The statistic that decides a claim, in words."""
    if not claim["end"]:
        return claim["statistic"]
    return f"{claim['end']} end of the 95% bootstrap interval, over trials, of {claim['statistic']}"


def _measured(group: list[dict]) -> str:
    """Least and greatest value over settings, and the threshold, as HTML."""
    values = [claim["value"] for claim in group if claim["value"] is not None]
    extremes = [min(values), max(values)] if values else [None]
    shown = " to ".join(dict.fromkeys(map(number, extremes)))
    not_finite = f", {len(group) - len(values)} not finite" if 0 < len(values) < len(group) else ""
    return f"<b>{shown}</b>{not_finite}; needs {text(group[0]['relation'])} {group[0]['threshold']:g}"


def _links(figures: list[str], name: str) -> str:
    """Links to figures and to the rows of a claim; ``ictd.report.html.without_dead_links`` removes dead ones."""
    links = [(figure, re.sub("_0?", " ", figure).capitalize()) for figure in figures]
    links.append((anchor("rows", name), "all rows"))
    return "<br>".join(f'<a href="#{target}">{title}</a>' for target, title in links)


def claims_rows(claims: list[dict]) -> str:
    """Every verdict as HTML: a fold for each claim, with a table that has one row per setting."""
    folds = []
    for name, group in by_name(claims).items():
        rows = [
            {
                "setting": in_words(claim["setting"]),
                "value": number(claim["value"]),
                "needs": f"{claim['relation']} {claim['threshold']:g}",
                "verdict": claim["verdict"],
                "corrected": claim["corrected"],
                "trials": "" if claim["trials"] is None else f"{claim['trials_hold']} of {claim['trials']}",
            }
            for claim in group
        ]
        heading = f"<p>{text(group[0]['statement'])}<br><small>{text(decided_by(group[0]))}</small></p>"
        folds.append(
            f"<details><summary>{text(name)}: holds in {holding(group)} of {len(group)}</summary>"
            f'<div id="{anchor("rows", name)}">{heading}\n{table(pd.DataFrame(rows))}</div></details>\n'
        )
    return "".join(folds)


def what_fails(claims: list[dict]) -> str:
    """The claims that do not hold in all settings, as an HTML list; empty if there are none."""
    items = []
    for group in by_name(claims).values():
        if not holds_everywhere(group):
            sentence, colon, where = verdict(group).partition(": ")
            items.append(f"<li>{text(group[0]['statement'])} <b>This {sentence}</b>{colon}{text(where)}.</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""
