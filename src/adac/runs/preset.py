"""An agent's settings in a small TOML file: what `adac tune` ends in and `adac train` takes."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from adac.errors import UserError
from adac.runs.files import read_plain, write_whole

MOST_BYTES = 2**20
PLAIN = (str, int, float, bool)


class Preset(NamedTuple):
    agent: str  # a named agent
    settings: dict[str, Any]  # overrides, by name


def write_preset(path: Path, preset: Preset, about: Sequence[str] = ()) -> None:
    lines = [f"# {line}" for line in about]
    lines += [f"agent = {_value(preset.agent)}", "", "[settings]"]
    lines += [f"{name} = {_value(value)}" for name, value in preset.settings.items()]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _value(value: Any) -> str:
    """As TOML has it; its texts and truths are JSON's."""
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)


def read_preset(path: Path) -> Preset:
    try:
        found = tomllib.loads(read_plain(path, MOST_BYTES).decode())
    except OSError as error:
        raise UserError(f"the preset {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"the preset {path} is not TOML: {error}") from None
    settings = found.get("settings", {})
    wrong = sorted(found.keys() - {"agent", "settings"})
    if wrong or not isinstance(found.get("agent"), str) or not isinstance(settings, Mapping):
        raise UserError(
            f'the preset {path} must have agent = "NAME" and a table [settings], '
            f"{f'not {wrong[0]!r}' if wrong else 'as `adac tune` writes it'}"
        )
    for name, value in settings.items():
        if not all(
            isinstance(one, PLAIN) for one in (value if isinstance(value, list) else [value])
        ):
            raise UserError(f"{name} in the preset {path} must be a number, a text or a list")
    return Preset(found["agent"], dict(settings))
