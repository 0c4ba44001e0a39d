"""Tables of the paper's sentences and their tests, as HTML."""

from itertools import groupby
from textwrap import shorten

import pandas as pd

from ictd.pipeline.grid import Cell
from ictd.report.claim_tables import links, marked
from ictd.report.html import Markup, anchor, attribute, text
from ictd.report.paper.sentences import untested, varied_in
from ictd.report.verdicts import (
    HOLDS,
    NOT_SHOWN,
    REFUTED,
    VERDICTS,
    by_name,
    closest,
    counts_in_words,
    holding,
    in_words,
    number,
    outcome,
    overall,
    verdict_in_words,
    words,
)

# Marks of verdicts in the chart, for readers who do not see its colours.
MARKS = {HOLDS: "✓", NOT_SHOWN: "?", REFUTED: "✗"}


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
            quote = marked(anchor("sentence", sentence["name"]), f"“{sentence['quote']}”")
            row = {"the paper's words": quote, "verdict": sentence["verdict"]}
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


def verdict_chart(sentences: list[dict], claims: list[dict], cells: list[Cell], main: tuple[str, int, int]) -> str:
    """Draw the verdicts on the paper's sentences that are counted as squares, a row a sentence and a column a cell.

    Parameters
    ----------
    sentences : list of records, as of ``ictd.report.paper.sentences.decide``
    claims : list of records, as of ``ictd.report.claim.as_records``
    cells : list of Cell, those of one setting beside each other
    main : tuple, env, states and depth of the main setting

    Returns
    -------
    str
        HTML.  A square has the verdict of the sentence's tests in the cell, which is ``overall``, and leads to the row
        of the test that is closest to its threshold.  Cells unlike the paper's have no column.
    """
    by_id = {claim["id"]: claim for claim in claims}
    cells = [cell for cell in cells if varied_in(str(cell), main)]
    heads = [
        f'<th colspan="{len([*group])}">{in_words(setting).replace(", ", "<br>")}</th>'
        for setting, group in groupby(cells, key=lambda cell: cell.setting)
    ]
    algos = [f"<th>{words(cell.algo)}</th>" for cell in cells]
    head = "".join(f"<tr><th></th>{''.join(row)}</tr>\n" for row in (heads, algos))
    rows = []
    for sentence in sentences:
        if sentence["kind"] == "claim":
            quote = text(shorten(sentence["quote"], 120, placeholder=" …"))
            verdict = sentence["verdict"]
            link = f'<a href="#{anchor("sentence", sentence["name"])}">“{quote}”</a>'
            squares = "".join(_square(sentence, by_id, str(cell), main) for cell in cells)
            rows.append(f'<th scope="row">{link} <b class="{VERDICTS[verdict]}">{verdict}</b></th>{squares}')
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f'<table class="chart" style="--cells: {len(cells)}">\n<thead>{head}</thead>\n<tbody>{body}</tbody></table>'


def _square(sentence: dict, by_id: dict[str, dict], cell: str, main: tuple[str, int, int]) -> str:
    """The verdict of a sentence's tests in a cell, also of those that do not depend on its algorithm or its layers."""
    parts = [by_id[name] for name in sentence["parts"]]
    parts = [claim for claim in parts if f"-{claim['setting']}-" in f"-{cell}-"]
    if not parts or varied_in(cell, main) != sentence["cells"]:
        return "<td></td>"
    missing = [NOT_SHOWN for name in sentence["tests"] if name not in by_name(parts)]
    verdict = overall([claim["verdict"] for claim in parts] + missing)
    claim = closest(parts)
    said = f"{verdict}: {holding(parts)} of {len(parts) + len(missing)} tests hold in {in_words(cell)}."
    said = attribute(f"{said} The closest is {outcome(claim)}.")
    link = f'href="#{anchor("row", claim["id"])}" title="{said}"'
    return f'<td><a class="{VERDICTS[verdict]}" {link}>{MARKS[verdict]}</a></td>'
