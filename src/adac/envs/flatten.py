"""How an observation of any space becomes the vector that the networks read."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from gymnasium.wrappers import FlattenObservation
from numpy.typing import NDArray

from adac.errors import UserError

Env = gymnasium.Env[Any, Any]
Floats = NDArray[np.float32]


def is_vector(space: gymnasium.Space[Any]) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def flattened(env: Env) -> Env:
    """The task with its observations as vectors; itself where they are."""
    return env if is_vector(env.observation_space) else FlattenObservation(env)


def require_flattenable(space: gymnasium.Space[Any], name: str) -> None:
    if any(_is_image(leaf) for leaf in _leaves(space)):
        raise UserError(
            f"{name} has pictures as observations, and adac has no convolutional networks: choose "
            "a task, or a setting of this one, whose observations are the state"
        )
    if not space.is_np_flattenable:
        raise UserError(
            f"{name} has observations in a {type(space).__name__}, which are not of one size: give "
            "them one with gymnasium.wrappers.TransformObservation"
        )


def _leaves(space: gymnasium.Space[Any]) -> list[gymnasium.Space[Any]]:
    parts: Sequence[gymnasium.Space[Any]] = ()
    if isinstance(space, spaces.Dict):
        parts = tuple(space.spaces.values())
    elif isinstance(space, spaces.Tuple):
        parts = space.spaces
    return [leaf for part in parts for leaf in _leaves(part)] if parts else [space]


def _is_image(space: gymnasium.Space[Any]) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8


def vectors(space: gymnasium.Space[Any], observation: Any) -> tuple[Floats, bool]:
    """The task's own observation, one or a batch, as [n, o], and whether it was a batch."""
    try:
        if is_vector(space):
            return _rows(space, observation)
        count = _count(space, observation)
        if count is None:
            return _flat(space, observation)[None], False
        return _flat_batch(space, observation, count), True
    except (ValueError, TypeError, KeyError, IndexError):
        raise UserError(
            f"an observation of this task is {space}, one or a batch of them; "
            f"not {_brief(observation)}"
        ) from None


def _rows(space: gymnasium.Space[Any], observation: Any) -> tuple[Floats, bool]:
    rows = np.asarray(observation, np.float32)
    if rows.ndim not in (1, 2) or rows.shape[-1:] != space.shape:
        raise ValueError
    return np.atleast_2d(rows), rows.ndim == 2


def _flat(space: gymnasium.Space[Any], observation: Any) -> Floats:
    return np.asarray(spaces.flatten(space, observation), np.float32)


def _flat_batch(space: gymnasium.Space[Any], observation: Any, count: int) -> Floats:
    """As `_flat` of each, without a loop over them where the space is a usual one."""
    if isinstance(space, spaces.Dict):
        named = [(part, observation[name]) for name, part in space.spaces.items()]
        return np.concatenate([_flat_batch(*pair, count) for pair in named], axis=1)
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return np.asarray(observation, np.float32).reshape(count, -1)
    if isinstance(space, spaces.Discrete):
        return _one_hot(np.asarray(observation) - space.start, int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        values = (np.asarray(observation) - space.start).reshape(count, -1)
        pairs = zip(values.T, space.nvec.ravel(), strict=True)
        return np.concatenate([_one_hot(value, int(n)) for value, n in pairs], axis=1)
    rows = iterate(batch_space(space, count), observation)
    return np.stack([_flat(space, row) for row in rows])


def _one_hot(values: NDArray[Any], count: int) -> Floats:
    if values.min(initial=0) < 0:
        raise ValueError
    rows: Floats = np.eye(count, dtype=np.float32)[values]
    return rows


def _count(space: gymnasium.Space[Any], observation: Any) -> int | None:
    """How many observations; None for a single one."""
    counts: set[int | None]
    if isinstance(space, spaces.Dict):
        counts = {_count(part, observation[name]) for name, part in space.spaces.items()}
    elif isinstance(space, spaces.Tuple):
        pairs = zip(space.spaces, observation, strict=True)
        counts = {_count(part, one) for part, one in pairs}
    else:
        shape, own = np.shape(observation), space.shape
        if shape != own and shape[1:] != own:
            raise ValueError
        counts = {None if shape == own else shape[0]}
    (count,) = counts  # else they are of different lengths
    return count


def _brief(observation: Any) -> str:
    if isinstance(observation, dict):
        return "{" + ", ".join(f"{k}: {_brief(v)}" for k, v in observation.items()) + "}"
    if isinstance(observation, tuple):
        return "(" + ", ".join(_brief(one) for one in observation) + ")"
    try:
        return f"shape {np.shape(observation)}"
    except ValueError:  # lists of different lengths
        return f"a {type(observation).__name__}"
