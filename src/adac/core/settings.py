"""Agents as JSON and back, and overriding any of their settings by name. No code is ever loaded."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from adac.core.agent import PARTS, Agent
from adac.core.bases import SAC, Base, Deterministic
from adac.core.explorers import Analogous, Explorer, GaussianNoise, OrnsteinUhlenbeck, OwnPolicy
from adac.core.intrinsic import Intrinsic, Rnd, Vime
from adac.core.networks import Networks
from adac.core.validation import whole
from adac.errors import UserError

Part = Base | Explorer | Intrinsic | Networks
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Deterministic,
        SAC,
        Analogous,
        GaussianNoise,
        OrnsteinUhlenbeck,
        OwnPolicy,
        Vime,
        Rnd,
        Networks,
    )
}


def to_json(agent: Agent) -> dict[str, Any]:
    """Nested plain values; each part carries the name of its class under "kind"."""
    return {f.name: _plain(getattr(agent, f.name)) for f in dataclasses.fields(agent)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    return list(value) if isinstance(value, tuple) else value


def from_json(data: Mapping[str, Any], like: Agent | None = None) -> Agent:
    """The agent that `to_json` wrote; anything else is refused.

    `like` has the classes of parts that are not adac's own; its settings are not looked at.
    """
    own = [] if like is None else [type(getattr(like, name)) for name in PARTS]
    kinds = KINDS | {kind.__name__: kind for kind in own}
    values = {name: _part(name, value, kinds) for name, value in data.items()}
    agent: Agent = _build(Agent, values)
    return agent


def _part(name: str, value: Any, kinds: Mapping[str, type[Any]]) -> Any:
    if name not in PARTS or (name == "intrinsic" and value is None):
        return value
    if not isinstance(value, Mapping):
        raise UserError(f"the {name} of this agent is not described by its settings: {value!r}")
    kind = kinds.get(str(value.get("kind")))
    if kind is None or not issubclass(kind, PARTS[name]):
        raise UserError(
            f"the part '{value.get('kind')}' of this agent is not known here as its {name}: "
            "pass the agent itself, Learner.load(folder, agent=...)"
        )
    fields = {f"{name}.{f.name}": f.name for f in dataclasses.fields(kind)}
    later = {fields[key]: neutral for key, neutral in LATER.items() if key in fields}
    return _build(kind, later | {k: v for k, v in value.items() if k != "kind"})


def _build(kind: type[Any], values: Mapping[str, Any]) -> Any:
    known = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise UserError(f"{kind.__name__} has no setting '{unknown[0]}'")
    types_of = typing.get_type_hints(kind)
    ready = {k: _coerce(k, v, types_of[k]) for k, v in values.items()}
    try:
        return kind(**ready)
    except ValueError as error:
        raise UserError(str(error)) from None


def names(agent: Agent) -> dict[str, Any]:
    """Every setting that can be overridden, with its value."""
    flat: dict[str, Any] = {}
    for f in dataclasses.fields(agent):
        value = getattr(agent, f.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            flat |= {inner.name: getattr(value, inner.name) for inner in dataclasses.fields(value)}
        elif f.name != "intrinsic":
            flat[f.name] = value
    return flat


def override(agent: Agent, settings: Mapping[str, Any]) -> Agent:
    """The agent with some settings changed: `particles`, or `explorer.particles` in full."""
    for name, value in settings.items():
        agent = _override_one(agent, name, value)
    return agent


def _override_one(agent: Agent, name: str, value: Any) -> Agent:
    part, _, inner = name.rpartition(".")
    for f in dataclasses.fields(agent):
        current = getattr(agent, f.name)
        if dataclasses.is_dataclass(current) and not isinstance(current, type):
            owns = inner in {g.name for g in dataclasses.fields(current)}
            if owns and part in ("", f.name):
                changed: Agent = _replace(agent, f.name, _replace(current, inner, value))
                return changed
        elif f.name == inner and not part and f.name != "intrinsic":
            changed = _replace(agent, inner, value)
            return changed
    near = difflib.get_close_matches(inner, names(agent), n=3) or sorted(names(agent))
    raise UserError(f"this agent has no setting '{name}'; did you mean {', '.join(near)}?")


def _replace(owner: Any, name: str, value: Any) -> Any:
    kind = typing.get_type_hints(type(owner))[name]
    try:
        return dataclasses.replace(owner, **{name: _coerce(name, value, kind)})
    except ValueError as error:
        raise UserError(str(error)) from None


def _coerce(name: str, value: Any, kind: Any) -> Any:
    """A value of the field's type, from JSON or from the shell's text."""
    if dataclasses.is_dataclass(kind) or dataclasses.is_dataclass(value):
        return value
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        absent = value is None or (isinstance(value, str) and value.lower() == "none")
        if absent and type(None) in options:
            return None
        several = isinstance(value, list | tuple) or (isinstance(value, str) and "," in value)
        fitting = [o for o in options if (typing.get_origin(o) is tuple) == several]
        return _coerce(name, value, next(o for o in fitting or options if o is not type(None)))
    if origin is Literal:
        if value not in options:
            raise UserError(f"{name} must be one of {', '.join(options)}, not '{value}'")
        return value
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise UserError(f"{name} must be numbers with commas between, not '{value}'")
        return tuple(_coerce(name, part, options[0]) for part in parts)
    return _scalar(name, value, kind)


def _scalar(name: str, value: Any, kind: type) -> Any:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    try:
        if kind is bool:
            return words[str(value).lower()]
        if kind is int:
            return whole(name, float(value) if isinstance(value, str) else value)
        if kind is float and not isinstance(value, bool):
            return float(value)
        if kind not in (bool, int, float):  # of a part that is not adac's own
            return value
    except (ValueError, KeyError, TypeError, OverflowError):
        pass
    raise UserError(f"{name} must be {_article(kind)}, not '{value}'")


def _article(kind: type) -> str:
    return {bool: "true or false", int: "a whole number", float: "a number"}[kind]


# Settings younger than runs that were stored: what such a run did without them.
LATER = {"base.bound_penalty": 0.0, "explorer.score_floor": 0.0}


def comparable(agent: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's settings as JSON, such that older and newer descriptions of it agree."""
    parts = {k: dict(v) if isinstance(v, Mapping) else v for k, v in agent.items()}
    for key, neutral in LATER.items():
        part, _, name = key.partition(".")
        if isinstance(parts.get(part), dict) and parts[part].get(name) == neutral:
            del parts[part][name]
    return parts
