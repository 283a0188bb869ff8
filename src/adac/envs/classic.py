"""Sparse tasks of the paper that change one thing in a task of Gymnasium's (appendix E)."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from numpy.typing import NDArray

Observation = NDArray[np.float32]
Action = NDArray[np.float32]
Step = tuple[Observation, float, bool, bool, dict[str, Any]]


class AcrobotContinuous(AcrobotEnv):
    """Acrobot-v1 whose three torques are the thirds of [-1, 1]."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: Action) -> Step:
        # In float32, as actions are: the double -1/3 lies above the float32 that stands for it.
        third = np.float32(1 / 3)
        effort = np.float32(action[0])
        torque = int(effort >= -third) + int(effort >= third)
        return super().step(torque)  # type: ignore[no-any-return, no-untyped-call]


class MountainCarContinuousPaper(Continuous_MountainCarEnv):
    """MountainCarContinuous-v0 with the action cost that the paper prints, |a| for 0.1 a^2."""

    def step(self, action: Action) -> Step:
        observation, _, arrived, truncated, info = super().step(action)
        return observation, 100.0 * arrived - abs(float(action[0])), arrived, truncated, info


class PendulumSparse(PendulumEnv):
    """Pendulum-v1 that pays 10 while upright; actions are shares of the largest torque."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode=render_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: Action) -> Step:
        # As in Pendulum-v1, the reward is that of the state in which the action was chosen.
        reward = 10.0 if np.cos(self.state[0]) > 0.95 else 0.0
        observation, _, terminated, truncated, info = super().step(  # type: ignore[no-untyped-call]
            self.max_torque * action
        )
        return observation, reward, terminated, truncated, info
