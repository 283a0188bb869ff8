"""What a program hands to a Learner, checked before it is used."""

from typing import Any

import gymnasium
import numpy as np

from adac import envs
from adac.errors import UserError
from adac.training.answers import Floats
from adac.training.environments import Scaling


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
