"""What a program hands to a Learner, checked before it is used."""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import gymnasium
import numpy as np

from adac import envs
from adac.core import settings
from adac.core.synonyms import ANSWERS
from adac.errors import UserError
from adac.training.answers import Floats
from adac.training.environments import Scaling

P = ParamSpec("P")
R = TypeVar("R")
# What Stable-Baselines3's constructor, `learn` and callbacks call our arguments.
THEIRS = {
    "total_timesteps": "steps",
    "log_interval": "log_every",
    "eval_freq": "eval_every",
    "n_eval_episodes": "eval_episodes",
    "save_freq": "checkpoint_every",
    "tensorboard_log": "tensorboard",
    "tb_log_name": "out",
    "n_envs": "num_envs",
    "env_id": "env",
}


def answering(function: Callable[P, R]) -> Callable[P, R]:
    """An argument that the function does not have is answered in a sentence with ours; type
    checkers see the function's own signature."""
    known = inspect.signature(function).parameters
    title = "Learner" if function.__name__ == "__init__" else function.__name__

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise UserError(f"{title} has no argument '{name}'{_instead(name, list(known))}")
        return function(*args, **kwargs)

    return call


def _instead(name: str, known: list[str]) -> str:
    if THEIRS.get(name) in known:
        return f"; here it is {THEIRS[name]}"
    if "overrides" in known and settings.is_one(name):
        return f": it is a setting of the agent, overrides={{'{name}': …}}"
    if name in ANSWERS:
        return f"; here it is {ANSWERS[name]}"
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known[1:])}"


def observations(given: Any, space: gymnasium.Space[Any]) -> tuple[Floats, bool]:
    """The task's own, one or a batch, as vectors [n, o]; and whether it was a batch."""
    obs, several = envs.vectors(space, given)
    if not np.isfinite(obs).all():
        raise UserError(f"an observation must be finite, not {obs[~np.isfinite(obs)][0]}")
    return obs, several


def batch(name: str, given: Any, space: gymnasium.Space[Any]) -> Floats:
    """Observations of transitions from elsewhere, as vectors [n, o]."""
    obs, several = observations(given, space)
    if not several:
        raise UserError(f"{name} must be a batch of observations, not one")
    return obs


def numbers(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Columns of transitions from elsewhere."""
    try:
        found = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be numbers of shape {shape}, not {values!r}") from None
    if found.shape != shape or not found.size:
        raise UserError(f"{name} must be of shape {shape}, not {found.shape}")
    if not np.isfinite(found).all():
        raise UserError(f"{name} must be finite, and has a {found[~np.isfinite(found)][0]}")
    return found


def actions(given: Any, count: int, scaling: Scaling) -> Floats:
    """Actions of transitions from elsewhere, in [-1, 1]."""
    found = scaling.from_task(numbers("action", given, (count, len(scaling.low))))
    if np.abs(found).max() > 1.001:  # a little is left to data that was stored in fewer digits
        raise UserError(f"action must be in the task's units, {scaling.low} to {scaling.high}")
    clipped: Floats = np.clip(found, -1.0, 1.0)
    return clipped
