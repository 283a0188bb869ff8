"""Observations of Stable-Baselines3's environments and buffers, as the vectors an agent reads."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import is_image_space, maybe_transpose

from adac import envs
from adac.errors import UserError

Floats = NDArray[np.float32]
PICTURE = 255.0  # the brightest pixel


class Edge:
    """A space, and the vectors that its observations become: what `Learner` flattens to.

    A picture that is the whole observation is refused. Beside other parts in a Dict it is read as
    plain numbers, each pixel divided by 255.
    """

    def __init__(self, space: spaces.Space[Any], normalize_images: bool = True):
        self.space = space
        if is_image_space(space):
            raise UserError(
                "the observations are pictures, and adac has no convolutional networks: choose a "
                "task whose observations are the state"
            )
        if not space.is_np_flattenable:
            raise UserError(f"the observations {space} are not of one size")
        self.size = int(spaces.flatdim(space))
        self.scale: Floats = np.ones(self.size, np.float32)
        self.pictures: dict[str, spaces.Space[Any]] = {}
        if isinstance(space, spaces.Dict):
            self.pictures = {name: s for name, s in space.spaces.items() if is_image_space(s)}
            for name in self.pictures if normalize_images else ():
                self.scale[envs.columns_of(space, name)] = 1.0 / PICTURE

    def warn_of_pictures(self) -> None:
        if self.pictures:
            warnings.warn(
                f"{', '.join(self.pictures)}: pictures, read as plain numbers; adac has no "
                "convolutional networks",
                stacklevel=2,
            )

    def __call__(self, observation: Any) -> tuple[Floats, bool]:
        """One observation or a batch of them as [n, o], and whether it was a batch."""
        if self.pictures and isinstance(observation, Mapping):
            pictures = self.pictures.items()
            upright = {name: maybe_transpose(observation[name], s) for name, s in pictures}
            observation = {**observation, **upright}
        rows, several = envs.vectors(self.space, observation)
        return (rows * self.scale if self.pictures else rows), several

    def of_buffer(self, stored: Any) -> Floats:
        """A buffer's minibatch: tensors, in which a number of a Discrete has an axis of its own."""
        if isinstance(self.space, spaces.Dict):
            parts = self.space.spaces.items()
            return self({name: _array(stored[name], part) for name, part in parts})[0]
        return self(_array(stored, self.space))[0]


def _array(tensor: Any, space: spaces.Space[Any]) -> NDArray[Any]:
    array: NDArray[Any] = tensor.cpu().numpy()
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        array = array.astype(np.int64)
    return array.reshape((len(array), *(space.shape or ())))
