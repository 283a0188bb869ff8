"""Frames from PyBullet's software renderer, which needs no display."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adac.envs.roboschool.bullet import BASE, World, pybullet

Pixels = NDArray[np.uint8]
Colour = tuple[float, float, float, float]

WIDTH, HEIGHT = 512, 384  # whole blocks of 16, as video encoders like
SUN = (2.0, -3.0, 5.0)  # no shadows: the renderer puts most of the floor into one
ZENITH, HORIZON = (118, 158, 206), (228, 238, 246)
SAND: Colour = (0.85, 0.62, 0.38, 1.0)
RUST: Colour = (0.72, 0.30, 0.20, 1.0)


@dataclass(frozen=True)
class View:
    """From where the robot is looked at, and how it is painted (None: as its model says)."""

    distance: float = 3.0
    height: float = 0.7  # of the point looked at
    limbs: Colour | None = SAND
    feet: Colour | None = RUST


class Camera:
    """Runs beside the robot."""

    def __init__(self, world: World, view: View, feet: list[int]) -> None:
        self._world, self._view = world, view
        for link in (BASE, *world.link_numbers.values()):
            colour = view.feet if link in feet else view.limbs
            if colour is not None:
                pybullet.changeVisualShape(
                    world.robot, link, rgbaColor=colour, physicsClientId=world.client
                )
        self._lens = pybullet.computeProjectionMatrixFOV(45.0, WIDTH / HEIGHT, 0.1, 80.0)
        self._sky = np.linspace(ZENITH, HORIZON, HEIGHT // 3, dtype=np.float64)
        self._sky = np.concatenate([self._sky, np.tile(HORIZON, (HEIGHT - HEIGHT // 3, 1))])

    def shoot(self) -> Pixels:
        x, y, _ = self._world.read().body
        eye = pybullet.computeViewMatrixFromYawPitchRoll(
            (x, y, self._view.height), self._view.distance, 12.0, -14.0, 0.0, 2
        )
        _, _, colours, _, bodies = pybullet.getCameraImage(
            WIDTH,
            HEIGHT,
            eye,
            self._lens,
            lightDirection=SUN,
            shadow=0,
            renderer=pybullet.ER_TINY_RENDERER,
            physicsClientId=self._world.client,
        )
        frame = np.reshape(np.asarray(colours, np.uint8), (HEIGHT, WIDTH, 4))[:, :, :3]
        nothing = np.reshape(bodies, (HEIGHT, WIDTH, 1)) < 0
        return np.where(nothing, self._sky[:, None, :], frame).astype(np.uint8)
