"""CartPoleSwingUp: swing the pole up and keep it there; the paper pays only above cos 0.8."""

import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from adac.errors import missing_extra

Observation = NDArray[np.float32]
Action = NDArray[np.float32]
Pixels = NDArray[np.uint8]

GRAVITY = 9.82
CART_MASS = 0.5
POLE_MASS = 0.5
LENGTH = 0.6  # of the pole
FORCE = 10.0
FRICTION = 0.1
SECONDS = 0.01  # per step
TRACK = 2.4  # half of it
UPRIGHT = 0.8  # cos of the angle above which the task pays


class Motion(NamedTuple):
    x: float
    x_dot: float
    theta: float  # 0 is upright
    theta_dot: float


def accelerations(motion: Motion, force: float) -> tuple[float, float]:
    """Of the cart and of the pole's angle (docs/tasks.md)."""
    _, x_dot, theta, theta_dot = motion
    sine, cosine = math.sin(theta), math.cos(theta)
    mass = CART_MASS + POLE_MASS
    push = force - FRICTION * x_dot
    swing = POLE_MASS * LENGTH * theta_dot**2 * sine
    x_acc = (-2 * swing + 3 * POLE_MASS * GRAVITY * sine * cosine + 4 * push) / (
        4 * mass - 3 * POLE_MASS * cosine**2
    )
    theta_acc = (-3 * swing * cosine + 6 * mass * GRAVITY * sine + 6 * push * cosine) / (
        4 * LENGTH * mass - 3 * POLE_MASS * LENGTH * cosine**2
    )
    return x_acc, theta_acc


def advance(motion: Motion, force: float) -> Motion:
    """One explicit Euler step: positions move with the old velocities."""
    x_acc, theta_acc = accelerations(motion, force)
    return Motion(
        x=motion.x + SECONDS * motion.x_dot,
        x_dot=motion.x_dot + SECONDS * x_acc,
        theta=motion.theta + SECONDS * motion.theta_dot,
        theta_dot=motion.theta_dot + SECONDS * theta_acc,
    )


def dense_reward(motion: Motion) -> float:
    """The original task's: 1 upright in the middle, 0 hanging or at an end of the track."""
    return (math.cos(motion.theta) + 1) / 2 * math.cos(math.pi * motion.x / (2 * TRACK))


class CartPoleSwingUpSparse(gymnasium.Env[Observation, Action]):
    """The dense reward where the pole is nearly upright, less the effort everywhere."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        fast = float(np.finfo(np.float32).max)
        high = np.array([2 * TRACK, fast, 1.0, 1.0, fast], np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.motion = Motion(0.0, 0.0, math.pi, 0.0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.motion = Motion(*self.np_random.normal([0.0, 0.0, math.pi, 0.0], 0.2).tolist())
        return self._observe(), {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        effort = min(1.0, max(-1.0, float(action[0])))
        self.motion = advance(self.motion, FORCE * effort)
        upright = math.cos(self.motion.theta) > UPRIGHT
        reward = (dense_reward(self.motion) if upright else 0.0) - 0.1 * abs(effort)
        return self._observe(), reward, abs(self.motion.x) > TRACK, False, {}

    def _observe(self) -> Observation:
        x, x_dot, theta, theta_dot = self.motion
        return np.array([x, x_dot, math.cos(theta), math.sin(theta), theta_dot], np.float32)

    def render(self) -> Pixels | None:
        return None if self.render_mode is None else draw(self.motion)


def draw(motion: Motion) -> Pixels:
    """The track, the cart and the pole, drawn without a window."""
    try:
        import pygame
        from pygame import gfxdraw
    except ModuleNotFoundError as error:
        raise missing_extra("A picture of this task", "classic") from error
    width, height, ground, scale = 640, 400, 240, 110.0
    canvas = pygame.Surface((width, height))
    canvas.fill((255, 255, 255))
    cart = np.array([width / 2 + scale * motion.x, ground])
    end = [width / 2 - scale * TRACK, width / 2 + scale * TRACK]
    pygame.draw.line(canvas, (120, 120, 120), (end[0], ground), (end[1], ground), 3)
    for stop in end:
        pygame.draw.line(canvas, (120, 120, 120), (stop, ground - 14), (stop, ground + 14), 3)
    pygame.draw.rect(canvas, (40, 44, 52), (*(cart - (32, 16)), 64, 32), border_radius=6)
    along = np.array([np.sin(motion.theta), -np.cos(motion.theta)])
    across = np.array([-along[1], along[0]]) * 6
    tip = cart + 1.5 * scale * LENGTH * along
    corners = [cart - across, cart + across, tip + across, tip - across]
    upright = np.cos(motion.theta) > UPRIGHT
    colour = (46, 139, 87) if upright else (205, 133, 63)
    gfxdraw.aapolygon(canvas, corners, colour)
    gfxdraw.filled_polygon(canvas, corners, colour)
    for point, radius, fill in ((tip, 9, colour), (cart, 6, (230, 230, 230))):
        x, y = (round(float(value)) for value in point)
        gfxdraw.aacircle(canvas, x, y, radius, fill)
        gfxdraw.filled_circle(canvas, x, y, radius, fill)
    return np.transpose(pygame.surfarray.array3d(canvas), (1, 0, 2)).copy()
