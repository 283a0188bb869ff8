"""Action repeat: one decision, several steps of the environment, all of them counted."""

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from adac.core.validation import whole
from adac.errors import UserError

Env = gymnasium.Env[Any, Any]
_STEPS = "adac/environment_steps"


class ActionRepeat(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Each action is taken `times` times, or until the episode ends; the rewards are summed."""

    def __init__(self, env: Env, times: int) -> None:
        RecordConstructorArgs.__init__(self, times=times)
        gymnasium.Wrapper.__init__(self, env)
        self.times = times
        if fps := env.metadata.get("render_fps"):  # a picture is taken before each decision
            self.metadata = {**env.metadata, "render_fps": fps / times}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        total, taken, over = 0.0, 0, False
        while taken < self.times and not over:
            # A copy, because a task may change what it is given.
            obs, reward, terminated, truncated, info = self.env.step(np.copy(action))
            total, taken, over = total + float(reward), taken + 1, terminated or truncated
        return obs, total, terminated, truncated, {**info, _STEPS: taken}


def repeated(env: Env, times: Any) -> Env:
    """The task with its actions repeated; itself where they are taken once."""
    count = whole("action_repeat", times)
    if count < 1:
        raise UserError(f"action_repeat must be at least 1, not {count}")
    return env if count == 1 else ActionRepeat(env, count)


def action_repeat_of(env: Env) -> int:
    """How often each action is taken, over all wrappers."""
    times = 1
    while isinstance(env, gymnasium.Wrapper):
        times *= env.times if isinstance(env, ActionRepeat) else 1
        env = env.env
    return times


def environment_steps(info: Any) -> int:
    """How many steps of the environment the decision took that returned this `info`."""
    return int(info.get(_STEPS, 1)) if isinstance(info, Mapping) else 1
