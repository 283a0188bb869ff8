"""Evaluation: whole episodes of a policy on tasks of its own, seeded and apart from training."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adac.errors import RunError, UserError
from adac.training.environments import EVALUATION, Env, check_spaces, episode_seed

Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]  # obs [n, o] → action [n, d]
SIDE_BY_SIDE = 10  # environments at most; one call of the policy costs more than most steps


class Evaluation(NamedTuple):
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    def summary(self) -> dict[str, float]:
        return {
            "mean_return": float(self.returns.mean()),
            "std_return": float(self.returns.std()),
            "episodes": len(self.returns),
            "min_return": float(self.returns.min()),
            "max_return": float(self.returns.max()),
            "mean_length": float(self.lengths.mean()),
        }


def evaluate(
    policy: Policy,
    envs: Env | Sequence[Env],
    episodes: int,
    seed: int,
    *,
    salt: int = 0,
    name: str = "the task",
    frame: Callable[[Any], None] | None = None,
) -> Evaluation:
    """Returns of `episodes` episodes; `salt` tells one evaluation of a run from the next.

    Several environments play side by side, each its next episode when one is over, so that the
    policy is asked once for all of them. `frame` is shown the first one's picture before each step.
    """
    if episodes < 1:
        raise UserError(f"episodes must be at least 1, not {episodes}")
    if seed < 0:
        raise UserError(f"seed must not be negative, and is {seed}")
    lanes = [envs] if isinstance(envs, gymnasium.Env) else list(envs)[:episodes]
    scaling = check_spaces(lanes[0], name)
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)

    def begin(lane: int, episode: int) -> NDArray[np.float32]:
        first, _ = lanes[lane].reset(seed=episode_seed(seed, EVALUATION, salt, episode))
        return np.asarray(first, np.float32)

    begun = len(lanes)
    playing = {lane: lane for lane in range(begun)}  # lane: the number of its episode
    obs = np.stack([begin(lane, episode) for lane, episode in playing.items()])
    while playing:
        if frame is not None:
            frame(_picture(lanes[0], name))
        actions = scaling.to_task(policy(obs))
        for lane, episode in list(playing.items()):
            raw, reward, terminated, truncated, _ = lanes[lane].step(actions[lane])
            if not np.isfinite(float(reward)) or not np.isfinite(raw).all():
                raise RunError(f"{name} gave a non-finite observation or reward in an evaluation")
            obs[lane] = raw
            returns[episode] += float(reward)
            lengths[episode] += 1
            if not (terminated or truncated):
                continue
            del playing[lane]
            if begun < episodes:
                playing[lane] = begun
                obs[lane] = begin(lane, begun)
                begun += 1
    return Evaluation(returns, lengths)


def _picture(env: Env, name: str) -> Any:
    try:
        return env.render()
    except NotImplementedError:
        raise UserError(f"{name} does not render, so it can not be filmed") from None
