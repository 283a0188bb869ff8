"""A sweep by its name, or described in a TOML file."""

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adac.errors import UserError
from adac.experiments.sweeps.suites import SUITES, Entrant, Suite
from adac.training.train import Schedule

_SCHEDULE = tuple(f.name for f in dataclasses.fields(Schedule))
_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str, "title": str, "tasks": list, "agents": list, "seeds": (int, list),
    "steps": (int, dict), "num_envs": int, "action_repeat": int, "settings": dict, "variants": list,
    **dict.fromkeys(_SCHEDULE, int), "stop_return": (int, float),
    "save_best": bool,
}  # fmt: skip


def find(what: str) -> Suite:
    """A TOML file, or the name of an experiment."""
    if what in SUITES:
        return SUITES[what]
    path = Path(what)
    if path.suffix == ".toml" or path.is_file():
        return read_toml(path)
    near = difflib.get_close_matches(what, SUITES, n=3, cutoff=0.4) or list(SUITES)
    raise UserError(f"there is no sweep '{what}'; did you mean {', '.join(near)}, or a TOML file?")


def read_toml(path: Path) -> Suite:
    """The schema is in docs/experiments.md; anything that is not in it is refused."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    _check(data, _KEYS, str(path))
    for needed in ("tasks", "steps"):
        if needed not in data or data[needed] in ([], {}):
            raise UserError(f"{path} has no '{needed}'")
    steps = data["steps"]
    for each in steps.values() if isinstance(steps, dict) else [steps]:
        if not isinstance(each, int) or each < 1:
            raise UserError(f"{path}: 'steps' must be whole numbers of at least 1, not {each!r}")
    for count in ("num_envs", "action_repeat"):
        if data.get(count, 1) < 1:
            raise UserError(f"{path}: '{count}' must be at least 1, not {data[count]}")
    common = data.get("settings", {})
    entrants = [Entrant(agent, agent, common) for agent in _texts(data, "agents", path)]
    entrants += [_variant(variant, common, path) for variant in data.get("variants", [])]
    if not entrants:
        raise UserError(f"{path} names neither agents nor variants")
    name = data.get("name", path.stem)
    return Suite(
        name=name,
        title=data.get("title", ""),
        tasks=tuple(_texts(data, "tasks", path)),
        entrants=tuple(entrants),
        steps=steps,
        seeds=_seeds(data.get("seeds", 5), path),
        schedule={key: data[key] for key in _SCHEDULE if key in data},
        num_envs=data.get("num_envs", 1),
        action_repeat=data.get("action_repeat", 1),
    )


def _check(data: Any, keys: Mapping[str, type | tuple[type, ...]], where: str) -> None:
    if not isinstance(data, dict):
        raise UserError(f"{where} must be a table")
    for key, value in data.items():
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1) or sorted(keys)
            raise UserError(f"{where} has the unknown key '{key}'; did you mean {', '.join(near)}?")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise UserError(f"{where}: '{key}' cannot be {value!r}")


def _texts(data: Mapping[str, Any], key: str, path: Path) -> list[str]:
    values = data.get(key, [])
    if not all(isinstance(value, str) for value in values):
        raise UserError(f"{path}: '{key}' must be a list of names")
    return list(values)


def _seeds(value: int | list[Any], path: Path) -> tuple[int, ...]:
    seeds = tuple(range(value)) if isinstance(value, int) else tuple(value)
    if not seeds or not all(isinstance(seed, int) for seed in seeds):
        raise UserError(f"{path}: 'seeds' must be how many, or a list of numbers")
    return seeds


def _variant(data: Any, common: Mapping[str, Any], path: Path) -> Entrant:
    where = f"{path}: a variant"
    _check(data, {"label": str, "agent": str, "settings": dict}, where)
    for needed in ("label", "agent"):
        if needed not in data:
            raise UserError(f"{where} has no '{needed}'")
    return Entrant(data["label"], data["agent"], {**common, **data.get("settings", {})})
