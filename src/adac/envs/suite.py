"""The paper's tasks as a table, and their registration with Gymnasium."""

from dataclasses import dataclass
from typing import Any, Literal

import gymnasium

Group = Literal["benchmark", "sparse", "illustration", "extra"]
Extra = Literal["classic", "mujoco", "box2d", "pybullet"]


@dataclass(frozen=True)
class Task:
    """One task: its Gymnasium id, its place in the paper, its sizes, and what it needs to run."""

    id: str
    group: Group
    obs_dim: int
    action_dim: int
    extra: Extra  # the classic ones run without theirs and need it for pictures only


# In the paper's order: the benchmark table, the four sparse tasks, the modified CartPole.
SUITE: tuple[Task, ...] = (
    Task("adac/RoboschoolAnt-v1", "benchmark", 28, 8, "pybullet"),
    Task("adac/RoboschoolHopper-v1", "benchmark", 15, 3, "pybullet"),
    Task("adac/RoboschoolHalfCheetah-v1", "benchmark", 26, 6, "pybullet"),
    Task("adac/RoboschoolAtlasForwardWalk-v1", "benchmark", 70, 30, "pybullet"),
    Task("adac/RoboschoolWalker2d-v1", "benchmark", 22, 6, "pybullet"),
    Task("Ant-v4", "benchmark", 27, 8, "mujoco"),
    Task("Hopper-v4", "benchmark", 11, 3, "mujoco"),
    Task("HalfCheetah-v4", "benchmark", 17, 6, "mujoco"),
    Task("Walker2d-v4", "benchmark", 17, 6, "mujoco"),
    Task("InvertedPendulum-v4", "benchmark", 4, 1, "mujoco"),
    Task("InvertedDoublePendulum-v4", "benchmark", 11, 1, "mujoco"),
    Task("BipedalWalker-v3", "benchmark", 24, 4, "box2d"),
    Task("BipedalWalkerHardcore-v3", "benchmark", 24, 4, "box2d"),
    Task("LunarLanderContinuous-v3", "benchmark", 8, 2, "box2d"),
    Task("MountainCarContinuous-v0", "sparse", 2, 1, "classic"),
    Task("adac/AcrobotContinuous-v0", "sparse", 6, 1, "classic"),
    Task("adac/PendulumSparse-v0", "sparse", 3, 1, "classic"),
    Task("adac/CartPoleSwingUpSparse-v0", "sparse", 5, 1, "classic"),
    Task("adac/CartPoleContinuous-v0", "illustration", 4, 1, "classic"),
)

# Listed beside the nineteen: the reward that the paper's text gives to MountainCarContinuous.
EXTRAS: tuple[Task, ...] = (Task("adac/MountainCarContinuousPaper-v0", "extra", 2, 1, "classic"),)

_ROBOSCHOOL = "adac.envs.roboschool.walker:Walker"

# Entry points are names, so that registering imports no simulator.
_OURS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("CartPoleContinuous-v0", "adac.envs.cartpole:CartPoleContinuous", 500, {}),
    ("AcrobotContinuous-v0", "adac.envs.classic:AcrobotContinuous", 500, {}),
    ("PendulumSparse-v0", "adac.envs.classic:PendulumSparse", 200, {}),
    ("CartPoleSwingUpSparse-v0", "adac.envs.swingup:CartPoleSwingUpSparse", 1000, {}),
    ("MountainCarContinuousPaper-v0", "adac.envs.classic:MountainCarContinuousPaper", 999, {}),
    *(
        (f"Roboschool{robot}-v1", _ROBOSCHOOL, 1000, {"robot": robot})
        for robot in ("Ant", "Hopper", "HalfCheetah", "AtlasForwardWalk", "Walker2d")
    ),
)


def register() -> None:
    """Register our tasks under `adac/`; safe to call again."""
    for name, entry_point, max_steps, settings in _OURS:
        task_id = f"adac/{name}"
        if task_id not in gymnasium.registry:
            gymnasium.register(
                task_id, entry_point, max_episode_steps=max_steps, kwargs=dict(settings)
            )
