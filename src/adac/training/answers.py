"""What an environment answers, looked at before anything learns from it.

Training and evaluation both ask through here, so that both refuse the same, in the same words.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adac.envs import environment_steps, seed_spaces
from adac.errors import RunError

Env = gymnasium.Env[Any, Any]
Floats = NDArray[np.float32]


class UnusableError(Exception):
    """An answer that nothing can be learned from; its text follows "TASK gave "."""


class Answer(NamedTuple):
    obs: Floats  # [o]
    reward: float
    terminated: bool
    truncated: bool
    steps: int  # of the environment: several with action repeat
    info: Mapping[str, Any]


def reset(env: Env, seed: int, size: int) -> Floats:
    """The first observation of the episode with this seed."""
    seed_spaces(env, seed)
    try:
        answer: Any = env.reset(seed=seed)
    except TypeError as error:
        if "'seed'" not in str(error):
            raise
        raise UnusableError(
            "no episode for a seed: Gymnasium's reset is reset(*, seed=None, options=None)"
        ) from error
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise UnusableError(
            f"{_brief(answer)} from reset, where Gymnasium's answer is (observation, info)"
        )
    return _observation(answer[0], size)


def step(env: Env, action: NDArray[Any], size: int) -> Answer:
    answer: Any = env.step(action)
    if not isinstance(answer, tuple | list) or len(answer) != 5:
        raise UnusableError(
            f"{_brief(answer)} from step, where Gymnasium's answer is (observation, reward, "
            "terminated, truncated, info); the old Gym's is brought up to it by Shimmy"
        )
    raw, reward, terminated, truncated, info = answer
    return Answer(
        _observation(raw, size),
        _reward(reward),
        _flag("terminated", terminated),
        _flag("truncated", truncated),
        environment_steps(info),
        info if isinstance(info, Mapping) else {},
    )


def blame(name: str, error: UnusableError, when: str) -> RunError:
    return RunError(f"{name} gave {error} {when}")


def _observation(raw: Any, size: int) -> Floats:
    try:
        if getattr(getattr(raw, "dtype", None), "kind", "") == "c":
            raise ValueError
        with np.errstate(over="ignore"):
            obs = np.asarray(raw, np.float32)
    except (TypeError, ValueError, OverflowError):
        raise UnusableError(f"the observation {_brief(raw)}, which is no vector of numbers,") \
            from None  # fmt: skip
    if obs.shape != (size,):
        raise UnusableError(
            f"an observation of shape {obs.shape}, which is not in its observation_space of "
            f"shape ({size},),"
        )
    if not np.isfinite(obs).all():
        raise UnusableError(f"the observation {obs[~np.isfinite(obs)][0]}")
    return obs


def _reward(reward: Any) -> float:
    try:
        if getattr(reward, "ndim", 0):
            raise ValueError
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        raise UnusableError(f"the reward {_brief(reward)}, which is no number,") from None
    if not abs(number) <= _LARGEST:
        shown = number if not np.isfinite(number) else float(np.copysign(np.inf, number))
        raise UnusableError(f"the reward {shown}")
    return number


_LARGEST = float(np.finfo(np.float32).max)


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    try:
        if value is None or np.size(value) != 1:
            raise ValueError
        return bool(np.asarray(value).item())
    except (TypeError, ValueError):
        raise UnusableError(f"{name} = {_brief(value)}, which is neither true nor false,") from None


def _brief(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
