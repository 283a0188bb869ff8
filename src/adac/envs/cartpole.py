"""The paper's illustration: CartPole with one continuous action and an effort penalty."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from numpy.typing import NDArray

Observation = NDArray[np.float32]
Action = NDArray[np.float32]

LEFT, RIGHT = 0, 1


class CartPoleContinuous(gymnasium.Env[Observation, Action]):
    """CartPole-v1 pushed left below -0.5, right above 0.5, and at random between."""

    metadata: dict[str, Any] = CartPoleEnv.metadata

    def __init__(self, render_mode: str | None = None) -> None:
        # Held, not inherited: CartPole refuses actions that are not its own two.
        self.cartpole: gymnasium.Env[Any, Any] = CartPoleEnv(render_mode=render_mode)
        self.render_mode = render_mode
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        inner = self.cartpole.observation_space
        assert isinstance(inner, spaces.Box)
        largest = np.finfo(np.float32).max
        self.observation_space = spaces.Box(
            np.maximum(inner.low, -largest), np.minimum(inner.high, largest), dtype=np.float32
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.cartpole.np_random = self.np_random
        return self.cartpole.reset(options=options)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        effort = float(action[0])
        observation, _, fallen, _, info = self.cartpole.step(self._direction(effort))
        reward = -0.1 * abs(effort) - 0.05 * effort**2 + (-1.0 if fallen else 0.1)
        return observation, reward, fallen, False, info

    def _direction(self, effort: float) -> int:
        if effort < -0.5:
            return LEFT
        if effort > 0.5:
            return RIGHT
        return int(self.np_random.integers(2))

    def render(self) -> Any:
        return self.cartpole.render()

    def close(self) -> None:
        self.cartpole.close()
