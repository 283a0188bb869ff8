"""Frames from PyBullet's software renderer, which needs no display."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adac.envs.roboschool.bullet import World, pybullet

WIDTH, HEIGHT = 640, 480


@dataclass(frozen=True)
class View:
    """From where the robot is looked at, as it runs."""

    distance: float = 3.0
    yaw: float = 20.0
    pitch: float = -15.0
    height: float = 0.7


SIDE = View()


class Camera:
    """Follows the robot, and lays a chequered floor that has no part in the physics."""

    def __init__(self, world: World, view: View) -> None:
        self._world, self._view = world, view

    def shoot(self) -> NDArray[np.uint8]:
        client = self._world.client
        x, y, _ = self._world.read().body
        view = self._view
        eye = pybullet.computeViewMatrixFromYawPitchRoll(
            (x, y, view.height), view.distance, view.yaw, view.pitch, 0.0, 2
        )
        lens = pybullet.computeProjectionMatrixFOV(50.0, WIDTH / HEIGHT, 0.1, 60.0)
        image = pybullet.getCameraImage(
            WIDTH,
            HEIGHT,
            eye,
            lens,
            lightDirection=(2.0, -3.0, 5.0),
            shadow=1,
            renderer=pybullet.ER_TINY_RENDERER,
            physicsClientId=client,
        )
        pixels = np.reshape(np.asarray(image[2], np.uint8), (HEIGHT, WIDTH, 4))
        return np.ascontiguousarray(pixels[:, :, :3])
