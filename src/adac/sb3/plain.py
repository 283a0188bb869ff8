"""Stable-Baselines3's settings as plain JSON and back: known kinds by name, and no code.

What is of no known kind cannot be written. What is read becomes numbers, texts, lists, or an object
of one of the classes below, made by its own constructor.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.noise import (
    NormalActionNoise,
    OrnsteinUhlenbeckActionNoise,
    VectorizedActionNoise,
)
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule
from stable_baselines3.her.goal_selection_strategy import KEY_TO_GOAL_STRATEGY
from stable_baselines3.her.her_replay_buffer import GoalSelectionStrategy, HerReplayBuffer

from adac.errors import UserError

KIND = "kind"
BUFFERS = {
    c.__name__: c for c in (ReplayBuffer, DictReplayBuffer, NStepReplayBuffer, HerReplayBuffer)
}
# Objects that are made of some of their attributes: {class: (its arguments, the attributes)}.
OBJECTS: dict[type[Any], dict[str, str]] = {
    NormalActionNoise: {"mean": "_mu", "sigma": "_sigma"},
    OrnsteinUhlenbeckActionNoise: {
        "mean": "_mu", "sigma": "_sigma", "theta": "_theta", "dt": "_dt",
        "initial_noise": "initial_noise",
    },
    VectorizedActionNoise: {"base_noise": "base_noise", "n_envs": "n_envs"},
    ConstantSchedule: {"val": "val"},
    LinearSchedule: {"start": "start", "end": "end", "end_fraction": "end_fraction"},
    FloatSchedule: {"value_schedule": "value_schedule"},
}  # fmt: skip
NAMED = {kind.__name__: kind for kind in OBJECTS}


class NotEncodableError(Exception):
    """A value that only its own program can make."""


def encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {KIND: "array", "dtype": str(value.dtype), "values": value.tolist()}
    if isinstance(value, TrainFreq):
        return {KIND: "TrainFreq", "frequency": value.frequency, "unit": value.unit.value}
    if isinstance(value, GoalSelectionStrategy):
        return {KIND: "goals", "name": value.name.lower()}
    if isinstance(value, deque):
        return {KIND: "deque", "maxlen": value.maxlen, "values": encode(list(value))}
    if isinstance(value, list | tuple):
        return [encode(one) for one in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: encode(one) for key, one in value.items()}
    if value in BUFFERS.values() if isinstance(value, type) else False:
        return {KIND: "buffer", "name": value.__name__}
    if type(value).__name__ == "SimpleLinearSchedule":  # RL Zoo's: from there to zero
        return encode(LinearSchedule(value.initial_value, 0.0, 1.0))
    if type(value) in OBJECTS:
        named = OBJECTS[type(value)].items()
        return {KIND: type(value).__name__} | {k: encode(getattr(value, a)) for k, a in named}
    raise NotEncodableError(type(value).__name__)


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    rest = {key: decode(one) for key, one in value.items() if key != KIND}
    if KIND not in value:
        return rest
    try:
        return _made(value[KIND], rest)
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError):
        raise UserError(f"the file has a {value[KIND]!r} that is not one") from None


def _made(kind: Any, parts: dict[str, Any]) -> Any:
    if kind == "array":
        return np.array(parts["values"], np.dtype(str(parts["dtype"])))
    if kind == "TrainFreq":
        return TrainFreq(int(parts["frequency"]), TrainFrequencyUnit(parts["unit"]))
    if kind == "goals":
        return KEY_TO_GOAL_STRATEGY[parts["name"]]
    if kind == "deque":
        return deque(parts["values"], maxlen=parts["maxlen"])
    if kind == "buffer":
        return BUFFERS[parts["name"]]
    return NAMED[kind](**parts)


def encode_space(space: spaces.Space[Any]) -> dict[str, Any]:
    name = type(space).__name__
    if isinstance(space, spaces.Dict):
        return {KIND: "Dict", "spaces": {k: encode_space(s) for k, s in space.spaces.items()}}
    if isinstance(space, spaces.Box):
        bounds = {"low": _brief(space.low), "high": _brief(space.high)}
        return {KIND: "Box", **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        return {KIND: "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {KIND: "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {
            KIND: "MultiBinary",
            "n": space.n if isinstance(space.n, int) else list(space.shape),
        }
    raise UserError(f"a model with a {name} among its spaces cannot be saved")


def _brief(bound: Any) -> Any:
    """One number where all are the same."""
    flat = np.ravel(bound)
    return float(flat[0]) if flat.size and (flat == flat[0]).all() else np.asarray(bound).tolist()


def decode_space(plain: Any) -> spaces.Space[Any]:
    try:
        return _space(plain)
    except (KeyError, TypeError, ValueError, AssertionError, OverflowError, MemoryError):
        raise UserError("the file describes no space of observations and actions") from None


def _space(plain: Any) -> spaces.Space[Any]:
    kind = plain[KIND]
    if kind == "Dict":
        return spaces.Dict({str(k): _space(s) for k, s in plain["spaces"].items()})
    if kind == "Box":
        shape, dtype = tuple(plain["shape"]), np.dtype(str(plain["dtype"]))
        low, high = (np.broadcast_to(np.array(plain[k], dtype), shape) for k in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(plain["n"], start=plain["start"])
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(plain["nvec"], start=plain["start"])
    if kind == "MultiBinary":
        return spaces.MultiBinary(plain["n"])
    raise ValueError(kind)
