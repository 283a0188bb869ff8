"""What Gymnasium's own tasks need to repeat from a seed after they have been used."""

import contextlib
import copy
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs


class FreshWorld(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A new Box2D world for every episode.

    BipedalWalker empties and reuses one, in which bodies and contacts keep an order that depends
    on the past (LunarLander did so until its v3). The first episode of a new one is unchanged.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        walker: Any = self.unwrapped
        walker._destroy()
        walker.world = type(walker.world)()
        return super().reset(seed=seed, options=options)


def repeatable(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The same task; wrapped if it would not repeat."""
    module = type(env.unwrapped).__module__
    return FreshWorld(env) if module == "gymnasium.envs.box2d.bipedal_walker" else env


def seed_spaces(env: gymnasium.Env[Any, Any], seed: int) -> None:
    """Some tasks draw from their own spaces, which Gymnasium does not seed in `reset`.

    Spaces of a class are shared by its environments: each gets its own, or one's draws would be
    in the other's way.
    """
    task = env.unwrapped
    for name in {"action_space", "observation_space"} - vars(task).keys():
        with contextlib.suppress(AttributeError):  # a property: computed, or the task's affair
            setattr(task, name, copy.deepcopy(getattr(task, name)))
    for layer in {id(one): one for one in (env, task)}.values():
        layer.action_space.seed(seed)
        layer.observation_space.seed(seed)
