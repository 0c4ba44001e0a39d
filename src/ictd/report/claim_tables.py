"""Claims as a reader meets them: what holds and what does not, a row a claim, and every verdict."""

import re

import pandas as pd

from ictd.report.html import Markup, anchor, table, text
from ictd.report.verdicts import by_name, holding, holds_everywhere, in_words, number, verdict


def claims_overview(claims: list[dict]) -> pd.DataFrame:
    """A row a claim: where the paper says it, the claim, what was measured over its settings, the verdict with the
    settings where it fails, if few, how many trials hold by themselves, and links to figures and to its rows."""
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
    """The statistic in full."""
    of_interval = f"{claim['end']} end of the 95% bootstrap interval, over trials, of "
    return (of_interval if claim["end"] else "") + claim["statistic"]


def _measured(group: list[dict]) -> str:
    """Least and greatest value over settings, and what the claim needs."""
    values = [claim["value"] for claim in group if claim["value"] is not None]
    ends = dict.fromkeys(number(end) for end in ((min(values), max(values)) if values else (None,)))
    also = f", {len(group) - len(values)} not finite" if 0 < len(values) < len(group) else ""
    return f"<b>{' to '.join(ends)}</b>{also}; needs {text(group[0]['relation'])} {group[0]['threshold']:g}"


def _links(figures: list[str], name: str) -> str:
    """Links to figures and to the rows of a claim; a page takes those away that lead nowhere."""
    links = [(figure, re.sub("_0?", " ", figure).capitalize()) for figure in figures]
    return "<br>".join(f'<a href="#{to}">{title}</a>' for to, title in [*links, (anchor("rows", name), "all rows")])


def claims_rows(claims: list[dict]) -> str:
    """Every verdict, as HTML: a fold for each claim, with a row a setting."""
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
        said = f"<p>{text(group[0]['statement'])}<br><small>{text(decided_by(group[0]))}</small></p>"
        folds.append(
            f"<details><summary>{text(name)}: holds in {holding(group)} of {len(group)}</summary>"
            f'<div id="{anchor("rows", name)}">{said}\n{table(pd.DataFrame(rows))}</div></details>\n'
        )
    return "".join(folds)


def what_fails(claims: list[dict]) -> str:
    """A list of the claims that do not hold everywhere, in words."""
    failing = [group for group in by_name(claims).values() if not holds_everywhere(group)]
    items = []
    for group in failing:
        said, colon, where = verdict(group).partition(": ")
        items.append(f"<li>{text(group[0]['statement'])} <b>This {said}</b>{colon}{text(where)}.</li>")
    return f"<ul>{''.join(items)}</ul>\n" if items else ""
