"""Explorers with a memory, learned numbers or a bonus of their own go on to the same bits."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from adac.training.learner import Learner

TINY = {"actor_hidden": "8", "critic_hidden": "8", "warmup": 20, "batch_size": 8}
MODEL = {"model_hidden": "8", "bonus_after": 0}


def arrays(learner: Learner) -> list[Any]:
    leaves = jax.tree.leaves((learner.state, learner.loop.memory))
    rows = learner.replay.rows[: len(learner.replay)].copy()
    return [np.asarray(leaf) for leaf in leaves] + [rows]


@pytest.mark.parametrize(
    ("agent", "num_envs", "extra"),
    [
        ("td3-parameter-noise", 2, {}),
        ("gep-pg", 1, {"episodes": 3, "random_episodes": 1}),
        ("mulex", 1, {"latent_hidden": "8"}),
        ("maxinfo-sac", 1, MODEL),
        ("adac-maxinfo", 2, MODEL | {"latent_hidden": "8", "particles": 2, "latent_colour": 1.0}),
        ("td3-counts", 1, {"bonus_after": 30}),
    ],
)
def test_interrupted_equals_uninterrupted(
    tmp_path: Path, agent: str, num_envs: int, extra: dict[str, object]
) -> None:
    def start() -> Learner:
        env = "adac/PendulumSparse-v0"
        learner = Learner(env, agent, seed=3, num_envs=num_envs, overrides=TINY | extra)
        return learner

    whole = start().learn(260)
    stopped = start().learn(260, callback=lambda learner: learner.step < 130)
    assert stopped.step < 140
    stopped.save(tmp_path)
    resumed = Learner.load(tmp_path)
    resumed.learn(260 - resumed.step)
    for one, other in zip(arrays(whole), arrays(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
