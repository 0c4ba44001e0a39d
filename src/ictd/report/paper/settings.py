"""The settings of a run as a table, and the settings that differ from the paper's."""

import json


def settings_rows(settings: dict, schema: dict, section: str = "") -> list[dict]:
    """Tabulate settings.

    Parameters
    ----------
    settings : dict, values by configuration key
    schema : dict, the JSON schema of these settings
    section : str, what precedes the names of nested keys

    Returns
    -------
    list of dicts with key, value, the paper's value, and meaning
    """
    rows = []
    for key, value in settings.items():
        entry = schema["properties"][key]
        if "properties" in entry:
            rows += settings_rows(value, entry, f"{section}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            paper = json.dumps(entry["paper"]) if "paper" in entry else ""
            rows.append({"key": section + key, "value": text, "paper": paper, "meaning": entry["description"]})
    return rows


def difference_from_paper(settings: dict, schema: dict) -> str:
    """A sentence that names the settings that differ from the paper's."""
    other = [row["key"] for row in settings_rows(settings, schema) if row["paper"] not in ("", row["value"])]
    if not other:
        return "The settings of this run are the paper's."
    return (
        f"The settings of this run are not the paper's: {', '.join(other)}. Its verdicts are on this run, not on the"
        " paper; docs/results.md has those at the paper's settings."
    )
