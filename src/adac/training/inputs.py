"""What a program hands to a Learner, checked before it is used."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from adac import envs
from adac.errors import UserError
from adac.training.answers import Env, Floats
from adac.training.environments import Environments, Scaling, check_spaces


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


def describe(env: str | Env, kwargs: Mapping[str, Any] | None) -> envs.Description:
    if isinstance(env, str):
        return envs.Description(env, dict(kwargs or {}), all=True)
    if not hasattr(env, "reset") or not hasattr(env, "action_space"):
        raise UserError(f"env must be a task id or a Gymnasium environment, not {env!r}")
    if kwargs:
        raise UserError("env_kwargs go with a task id: an environment is already made")
    return envs.describe(env)


def require_fitting(eval_env: Env, environments: Environments) -> None:
    """It plays other episodes of the same task, so it is another environment like the first."""
    if not hasattr(eval_env, "reset") or not hasattr(eval_env, "action_space"):
        raise UserError(f"eval_env must be an environment, not {eval_env!r}")
    if eval_env.unwrapped is environments.envs[0].unwrapped:
        raise UserError("eval_env must be an environment of its own, not the one trained in")
    check_spaces(eval_env, "eval_env")
    flat = envs.flattened(eval_env)
    for name in ("observation_space", "action_space"):
        mine, other = getattr(environments.envs[0], name), getattr(flat, name)
        if mine.shape != other.shape:
            raise UserError(f"eval_env has the {name} {other}, but the run has {mine}")
