"""Reading YAML files of settings."""

from pathlib import Path

import yaml

# YAML can write any number of values in a few lines, and reads 100 kB in a second.
MOST_VALUES, DEEPEST, MOST_BYTES = 5_000, 20, 100_000


class _Loader(yaml.SafeLoader):
    """One that refuses a key that a mapping has twice, of which YAML's own would take the last."""

    def compose_mapping_node(self, anchor):
        node, seen = super().compose_mapping_node(anchor), set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is there twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return node


def load_yaml(path: Path) -> dict:
    """What a YAML file holds; ValueError with the file, and the line where it is known, if that is no mapping, or one
    with a key that is there twice, or one that ``check_size`` refuses."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES} bytes")
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error}.") from None
    except yaml.YAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if getattr(error, "problem_mark", None) else ""
        raise ValueError(f"{path}{line}: {getattr(error, 'problem', None) or 'it is not valid YAML'}.") from None
    except (ValueError, RecursionError) as error:
        what = str(error).partition(";")[0].partition("\n")[0]
        raise ValueError(f"{path} cannot be read: {what}.") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no keys with values.")
    check_size(found, str(path))
    return found


def check_size(value, of: str) -> None:
    """Refuse what holds itself, or an absurd number of values; ValueError that begins with ``of``, its name."""
    waiting, number = [(value, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        number += 1
        if number > MOST_VALUES or depth > DEEPEST:
            raise ValueError(
                f"{of} has more than {MOST_VALUES} values or {DEEPEST} levels, or a value that holds itself; give less."
            )
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting += [(one, depth + 1) for one in inner]
