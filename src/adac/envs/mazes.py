"""The cells of Gymnasium-Robotics' mazes, and where in a flat observation the place is."""

from typing import Any, NamedTuple

import gymnasium
from gymnasium import spaces

Env = gymnasium.Env[Any, Any]


class Maze(NamedTuple):
    columns: slice  # of the place (x, y) in the flattened observation
    low: tuple[float, float]  # the corner of the map
    size: float  # of a cell
    shape: tuple[int, int]  # cells along x and y


def maze_of(env: Env) -> Maze | None:
    """None where the task is no maze."""
    maze, space = getattr(env.unwrapped, "maze", None), env.unwrapped.observation_space
    if not hasattr(maze, "maze_size_scaling") or not isinstance(space, spaces.Dict):
        return None
    place: Any = maze
    low = (-float(place.x_map_center), -float(place.y_map_center))
    shape = (int(place.map_width), int(place.map_length))
    return Maze(columns_of(space, "achieved_goal"), low, float(place.maze_size_scaling), shape)


def columns_of(space: spaces.Dict, name: str) -> slice:
    """Where `flatten` puts a part."""
    begin = 0
    for key, part in space.spaces.items():
        if key == name:
            return slice(begin, begin + spaces.flatdim(part))
        begin += spaces.flatdim(part)
    raise KeyError(name)
