"""The settings of a run as rows, and which of them are not the paper's."""

import json


def settings_rows(settings: dict, schema: dict, section: str = "") -> list[dict]:
    """Configuration keys, nested ones with dots, with their values, the paper's, and what the schema says of them."""
    rows = []
    for key, value in settings.items():
        about = schema["properties"][key]
        if "properties" in about:
            rows += settings_rows(value, about, f"{section}{key}.")
        else:
            name = section + key
            shown = value if isinstance(value, str) else json.dumps(value)
            paper = json.dumps(about["paper"]) if "paper" in about else ""
            rows.append({"key": name, "value": shown, "paper": paper, "meaning": about["description"]})
    return rows


def difference_from_paper(settings: dict, schema: dict) -> str:
    """A sentence that says which settings are not the paper's."""
    other = [row["key"] for row in settings_rows(settings, schema) if row["paper"] not in ("", row["value"])]
    if not other:
        return "The settings of this run are the paper's."
    return f"The settings of this run are not the paper's: {', '.join(other)}."
