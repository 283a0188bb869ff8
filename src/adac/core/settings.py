"""Agents as JSON and back, and overriding any of their settings by name. No code is ever loaded."""

import dataclasses
import difflib
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from adac.core.agent import PARTS, Agent
from adac.core.bases import Base
from adac.core.critics import Critic
from adac.core.explorers import Explorer
from adac.core.fields import Range, sentence, tuned
from adac.core.intrinsic import InformationGain, Intrinsic, Sum
from adac.core.networks import Networks
from adac.core.synonyms import ANSWERS, SEVERAL, SYNONYMS
from adac.core.validation import whole
from adac.errors import UserError

LATENT = 16  # dimensions of ξ where an explorer that needs them is chosen by name
_ROOTS: dict[str, type[Any]] = {
    "base": Base, "explorer": Explorer, "intrinsic": Intrinsic, "networks": Networks,
    "critic": Critic,
}  # fmt: skip


def kinds(part: str) -> dict[str, type[Any]]:
    """Every class that a part can be, by name: found, so that one's own need not be listed.

    Only classes that the program has imported are found; where two have a name, adac's own counts.
    """
    found = sorted(_concrete(_ROOTS[part]), key=lambda kind: kind.__module__.startswith("adac."))
    return {kind.__name__: kind for kind in found}


def hidden() -> list[type[Any]]:
    """Classes of one's own that no name leads to, because adac has one of that name."""
    return [
        kind
        for part, root in _ROOTS.items()
        for kind in _concrete(root)
        if kinds(part)[kind.__name__] is not kind and not kind.__module__.startswith("adac.")
    ]


def _concrete(kind: type[Any]) -> Iterator[type[Any]]:
    if not inspect.isabstract(kind) and not kind.__name__.startswith("_"):
        yield kind
    for below in kind.__subclasses__():
        yield from _concrete(below)


def named(part: str, name: str) -> Any:
    """A part by its name as one types it: `GaussianNoise`, `gaussian-noise`, or an alias.

    Bonuses add up: `counts+rnd`.
    """
    if part == "intrinsic" and name.lower() in ("none", ""):
        return None
    if part == "intrinsic" and "+" in name:
        return Sum(bonuses=tuple(named(part, one) for one in name.split("+")))
    plain: dict[str, type[Any]] = {}
    for kind in kinds(part).values():
        plain |= {_letters(word): kind for word in (kind.__name__, *getattr(kind, "aliases", ()))}
    if _letters(name) not in plain:
        near = difflib.get_close_matches(_letters(name), plain, n=3, cutoff=0.5) or sorted(plain)
        raise UserError(f"there is no {part} '{name}'; did you mean {', '.join(near)}?")
    try:
        return plain[_letters(name)]()
    except TypeError:
        raise UserError(f"the {part} '{name}' needs settings: build it in Python") from None
    except ValueError as error:
        raise UserError(str(error)) from None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def to_json(agent: Agent) -> dict[str, Any]:
    """Nested plain values; each part carries the name of its class under "kind"."""
    return {f.name: _plain(getattr(agent, f.name)) for f in dataclasses.fields(agent)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def from_json(data: Mapping[str, Any], like: Agent | None = None) -> Agent:
    """The agent that `to_json` wrote; anything else is refused.

    `like` has the classes of parts that are not adac's own; its settings are not looked at.
    """
    values = {}
    if not isinstance(data, Mapping):
        raise UserError(f"an agent is described by its settings, not by {data!r}")
    for name, value in data.items():
        if name not in PARTS or (name == "intrinsic" and value is None):
            values[name] = value
            continue
        own = {} if like is None else {type(k).__name__: type(k) for k in [getattr(like, name)]}
        values[name] = _part(name, value, kinds(name) | own)
    agent: Agent = _build(Agent, values)
    return agent


def _part(name: str, value: Any, known: Mapping[str, type[Any]]) -> Any:
    if not isinstance(value, Mapping):
        raise UserError(f"the {name} of this agent is not described by its settings: {value!r}")
    kind = known.get(str(value.get("kind")))
    if kind is None or not issubclass(kind, PARTS[name]):
        raise UserError(
            f"the part '{value.get('kind')}' of this agent is not known here as its {name}: "
            "import the module that defines it (--import), or pass the agent itself, "
            "Learner.load(folder, agent=...)"
        )
    fields = {f"{name}.{f.name}": f.name for f in dataclasses.fields(kind)}
    later = {fields[key]: neutral for key, neutral in LATER.items() if key in fields}
    values = {k: _inner(name, v, known) for k, v in value.items() if k != "kind"}
    return _build(kind, later | values)


def _inner(name: str, value: Any, known: Mapping[str, type[Any]]) -> Any:
    """A part's own parts: explorers that are made of explorers."""
    if isinstance(value, Mapping):
        return _part(name, value, known)
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return tuple(_part(name, one, known) for one in value)
    return value


def _build(kind: type[Any], values: Mapping[str, Any]) -> Any:
    known = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise UserError(f"{kind.__name__} has no setting '{unknown[0]}'")
    types_of = typing.get_type_hints(kind)
    ready = {k: _coerce(k, v, types_of[k]) for k, v in values.items()}
    try:
        return kind(**ready)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None


def names(agent: Agent) -> dict[str, Any]:
    """Every setting that can be overridden, with its value."""
    return {setting.name: setting.value for setting in describe(agent)}


class Setting(typing.NamedTuple):
    """One line of `adac list settings`."""

    part: str  # "" for the agent's own
    kind: str  # the class of the part
    name: str
    value: Any
    sentence: str
    tune: Range | None = None  # where better values may be


def describe(agent: Agent) -> list[Setting]:
    """Every setting of an agent, with its meaning."""
    found: list[Setting] = []
    for f in dataclasses.fields(agent):
        if f.name in PARTS:
            found += _described(f.name, getattr(agent, f.name))
        else:
            value = getattr(agent, f.name)
            found.append(Setting("", "Agent", f.name, value, sentence(f), tuned(f)))
    return found


def _described(part: str, value: Any) -> Iterator[Setting]:
    """A part's settings, and those of the parts that it is made of."""
    if not _is_part(value):
        return
    for f in dataclasses.fields(value):
        own = getattr(value, f.name)
        if _is_part(own):
            yield from _described(part, own)
        else:
            yield Setting(part, type(value).__name__, f.name, own, sentence(f), tuned(f))


def typed(value: Any) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(typed, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def override(agent: Agent, settings: Mapping[str, Any]) -> Agent:
    """The agent with some settings changed: `particles`, or `explorer.particles` in full.

    A part is changed as a whole by its name: `explorer=gaussian-noise`, `intrinsic=vime`.
    """
    parts_first = sorted(settings.items(), key=lambda setting: setting[0] not in PARTS)
    for name, value in parts_first:
        agent = _override_one(agent, name, value)
    return agent


def _override_one(agent: Agent, name: str, value: Any) -> Agent:
    if name in PARTS:
        return _with_part(agent, name, value)
    if name in SEVERAL:
        return override(agent, dict.fromkeys(SEVERAL[name], value))
    part, _, inner = name.rpartition(".")
    known = names(agent)
    inner = SYNONYMS[inner] if inner not in known and SYNONYMS.get(inner) in known else inner
    if not part and inner in {f.name for f in dataclasses.fields(agent)}:
        changed: Agent = _replace(agent, inner, value)
        return changed
    for name_of_part in (part,) if part in PARTS else PARTS if not part else ():
        found = _within(getattr(agent, name_of_part), inner, value)
        if found is not None:
            changed = _replace(agent, name_of_part, found)
            return changed
    raise UserError(_unknown(agent, name, inner))


def _is_part(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _within(part: Any, name: str, value: Any) -> Any:
    """The part with that setting changed, its own or that of a part it is made of; or None."""
    if not _is_part(part):
        return None
    if name in {f.name for f in dataclasses.fields(part)}:
        return _replace(part, name, value)
    for f in dataclasses.fields(part):
        found = _within(getattr(part, f.name), name, value)
        if found is not None:
            return dataclasses.replace(part, **{f.name: found})
    return None


def _with_part(agent: Agent, name: str, value: Any) -> Agent:
    part = named(name, value) if isinstance(value, str) else value
    networks = agent.networks
    if isinstance(part, Explorer) and part.uses_latent and not networks.latent:
        networks = dataclasses.replace(networks, latent=LATENT)
    intrinsic = agent.intrinsic
    if isinstance(part, Explorer) and part.weighs and intrinsic is None:
        intrinsic = InformationGain()
    try:
        changed = {"networks": networks, "intrinsic": intrinsic, name: part}
        return dataclasses.replace(agent, **changed)
    except ValueError as error:
        raise UserError(str(error)) from None


def _unknown(agent: Agent, name: str, inner: str) -> str:
    refusal = f"this agent has no setting '{name}'"
    if inner in ANSWERS:
        return f"{refusal}; here it is {ANSWERS[inner]}"
    settings = {setting.name: setting.sentence for setting in describe(agent)}
    elsewhere = [] if inner in settings else owners(inner)
    if elsewhere:
        return f"{refusal}: it belongs to {' or '.join(elsewhere[:3])}"
    near = difflib.get_close_matches(inner, settings, n=3)
    if not near:
        return (
            f"{refusal}: `adac list settings AGENT` shows all of them "
            f"({', '.join(sorted(settings)[:6])}, …)"
        )
    meant = ", ".join(f"{one} ({settings[one].rstrip('.')})" for one in near)
    return f"{refusal}; did you mean {meant}?"


def owners(name: str) -> list[str]:
    """Parts that have a setting of that name or synonym, as `--set` chooses them."""
    ours = SYNONYMS.get(name, name)
    return [
        f"{part}={kind}"
        for part in _ROOTS
        for kind, found in kinds(part).items()
        if ours in {f.name for f in dataclasses.fields(found)}
    ]


def is_one(name: str) -> bool:
    """Whether some agent has a setting of that name, ours or somebody else's."""
    known = {f.name for f in dataclasses.fields(Agent)}
    return name in SEVERAL or SYNONYMS.get(name, name) in known or bool(owners(name))


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
        word = value.lower() if isinstance(value, str) else value
        if word not in options:
            raise UserError(f"{name} must be one of {', '.join(options)}, not '{value}'")
        return word
    if origin is tuple:
        parts = value.strip("[]() ,").split(",") if isinstance(value, str) else value
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
LATER: dict[str, Any] = {
    "base.bound_penalty": 0.0, "base.adam_b1": 0.9, "explorer.score_floor": 0.0,
    "explorer.other_particles": False, "critic": {"kind": "Scalar", "batch_renorm": False},
    "n_steps": 1, "learn_after": None, "explorer.latent_colour": None, "explorer.latent_repeat": 0,
    "explorer.behaviour_entropy": None, "explorer.bonus_weight": "fixed",
    "reward_units": False,
    "hindsight": 4,  # no goal task could be learned on
    "reward_free": False, "priority_alpha": 0.0, "priority_beta": 0.4,
    "networks.activation": "relu", "base.lr_schedule": "constant", "base.lr_end": 0.0,
    "base.lr_updates": 0, "base.max_grad_norm": None, "base.weight_decay": 0.0,
}  # fmt: skip


def comparable(agent: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's settings as JSON, such that older and newer descriptions of it agree."""
    parts = {k: dict(v) if isinstance(v, Mapping) else v for k, v in agent.items()}
    for key, neutral in LATER.items():
        part, _, name = key.rpartition(".")
        owner = parts if not part else parts.get(part)
        if isinstance(owner, dict) and name in owner and owner[name] == neutral:
            del owner[name]
    return parts
