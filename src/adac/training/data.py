"""Transitions from elsewhere: arrays, files, Minari datasets, other runs' replay buffers."""

from typing import Any, NamedTuple

from adac.training.inputs import actions, batch, numbers
from adac.training.loop import Loop


class Columns(NamedTuple):
    """Transitions in the task's own units, [n, ...], in order."""

    obs: Any
    action: Any
    reward: Any
    next_obs: Any
    terminated: Any
    truncated: Any = None


def add(loop: Loop, columns: Columns) -> None:
    """Into the replay buffer, once they are looked at."""
    task = loop.environments
    rows = batch("obs", columns.obs, task.observation_space)
    following = batch("next_obs", columns.next_obs, task.observation_space)
    count, truncated = len(rows), columns.truncated
    loop.add(
        rows,
        actions(columns.action, count, task.scaling),
        numbers("reward", columns.reward, (count,)),
        numbers("next_obs", following, rows.shape),
        numbers("terminated", columns.terminated, (count,)).astype(bool),
        None if truncated is None else numbers("truncated", truncated, (count,)).astype(bool),
    )
