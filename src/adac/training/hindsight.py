"""Hindsight experience replay for goal tasks: what was reached, taken for what was wanted.

When a minibatch is taken, k of k + 1 transitions get as their goal what the same episode achieved
at some later step, drawn uniformly ("future"), and the reward that the task pays for that goal.
M. Andrychowicz et al., Hindsight Experience Replay, 2017.
"""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from adac.envs import action_repeat_of, columns_of
from adac.errors import UserError
from adac.training.replay import Places, Replay, Rows

Env = gymnasium.Env[Any, Any]


class Goals(NamedTuple):
    """A goal task: where its goals are in a flat observation, and what it pays for them."""

    achieved: slice
    desired: slice
    task: Any  # with compute_reward(achieved [n, g], desired [n, g], info) → [n]
    terminates: bool

    def rewards(self, achieved: Rows, desired: Rows) -> NDArray[np.float64]:
        return np.asarray(self.task.compute_reward(achieved, desired, {}), np.float64)

    def continues(self, achieved: Rows, desired: Rows) -> NDArray[np.float64]:
        if not self.terminates:
            return np.ones(len(achieved))
        ends = (
            self.task.compute_terminated(*pair, {}) for pair in zip(achieved, desired, strict=True)
        )
        return 1.0 - np.fromiter(ends, np.float64, len(achieved))  # fmt: skip


def goals_of(env: Env, space: gymnasium.Space[Any], name: str) -> Goals | None:
    """None where the task has no goals, or none that can be given another reward."""
    task: Any = env.unwrapped
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    pair = [parts.get("achieved_goal"), parts.get("desired_goal")]
    if not all(isinstance(part, spaces.Box) for part in pair) or not hasattr(
        task, "compute_reward"
    ):
        return None
    assert isinstance(space, spaces.Dict)
    goals = Goals(
        columns_of(space, "achieved_goal"), columns_of(space, "desired_goal"), task, False
    )
    some = np.zeros((2, goals.desired.stop - goals.desired.start), np.float32)
    try:
        fits = goals.rewards(some, some).shape == (2,)
        ends = hasattr(task, "compute_terminated") and bool(
            task.compute_terminated(some[0], some[0], {})
        )
    except Exception:  # the task's own code
        fits = ends = False
    if not fits:
        warnings.warn(
            f"{name} has goals, but its compute_reward takes no batch of them: it is learned "
            "without hindsight",
            stacklevel=2,
        )
        return None
    return goals._replace(terminates=ends)


class Hindsight:
    """Knows where each stored transition's episode ends."""

    def __init__(self, goals: Goals, relabelled: int, replay: Replay):
        self.goals, self.share, self.replay = goals, relabelled / (relabelled + 1), replay
        # The number of the last transition of each place's episode; −1 while that goes on.
        self.ends = np.full(replay.capacity, -1, np.int64)

    def added(self, count: int, ended: Iterable[int]) -> None:
        """After a step of `count` environments, of which those `ended` their episode."""
        replay, first = self.replay, self.replay.inserted - count
        self.ends[np.arange(first, replay.inserted) % replay.capacity] = -1
        ahead = replay.rows[:, replay.spec.columns["ahead"]][:, 0]
        oldest = replay.inserted - len(replay)
        for i in ended:
            number = last = first + int(i)
            while number >= oldest and (number == last or ahead[number % replay.capacity] == count):
                self.ends[number % replay.capacity] = last
                number -= count

    def rebuild(self) -> None:
        """From the stored rows alone, as after a load."""
        replay = self.replay
        ahead = replay.rows[: len(replay), replay.spec.columns["ahead"]][:, 0].astype(np.int64)
        self.ends.fill(-1)
        for number in range(replay.inserted - 1, replay.inserted - len(replay) - 1, -1):
            place = number % replay.capacity
            following = number + ahead[place]
            if not ahead[place]:
                self.ends[place] = number
            elif following < replay.inserted:
                self.ends[place] = self.ends[following % replay.capacity]

    def relabel(self, places: Places, rows: Rows) -> Rows:
        """Of the rows at these places, k in k + 1 with a goal of hindsight; changed in place."""
        replay, columns = self.replay, self.replay.spec.columns
        draws = replay.generator.random((2, len(places)))
        last, ahead = self.ends[places], rows[:, columns["ahead"]][:, 0].astype(np.int64)
        chosen = (draws[0] < self.share) & (last >= 0)
        number = replay.inserted - 1 - replay.ages(places)
        left = (last - number) // np.maximum(ahead, 1)
        later = number + (draws[1] * (left + 1)).astype(np.int64) * ahead
        seen, after = columns["obs"].start, columns["next_obs"].start
        reached = _shift(self.goals.achieved, after)
        goal = replay.rows[later[chosen] % replay.capacity, reached]
        achieved = rows[chosen, reached]
        for begin in (seen, after):
            rows[chosen, _shift(self.goals.desired, begin)] = goal
        rows[chosen, columns["reward"]] = self.goals.rewards(achieved, goal)[:, None]
        rows[chosen, columns["continues"]] = self.goals.continues(achieved, goal)[:, None]
        return rows


def _shift(part: slice, begin: int) -> slice:
    return slice(begin + part.start, begin + part.stop)


def hindsight_of(
    env: Env, space: gymnasium.Space[Any], name: str, relabelled: int, n_steps: int, replay: Replay
) -> Hindsight | None:
    """For a goal task, unless the agent wants none."""
    goals = goals_of(env, space, name) if relabelled else None
    if goals is None:
        return None
    for setting, value in (("n_steps", n_steps), ("action_repeat", action_repeat_of(env))):
        if value > 1:
            raise UserError(
                f"hindsight on {name} needs {setting} = 1, not {value}: a goal of hindsight gives "
                "one step another reward; set it so, or hindsight to 0"
            )
    return Hindsight(goals, relabelled, replay)
