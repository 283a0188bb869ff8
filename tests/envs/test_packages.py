"""Tasks of dm_control and Gymnasium-Robotics: all a user says is the id."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from rollouts import fingerprint

from adac import envs
from adac.errors import UserError

DMC = {
    "dm_control/cartpole-swingup_sparse-v0": (5, 1),
    "dm_control/pendulum-swingup-v0": (3, 1),
    "dm_control/acrobot-swingup_sparse-v0": (6, 1),
    "dm_control/finger-turn_hard-v0": (12, 2),
    "dm_control/hopper-hop-v0": (15, 4),
    "dm_control/lqr-lqr_2_1-v0": (4, 1),
}
ROBOTICS = {
    "PointMaze_UMaze-v3": (8, 2),
    "PointMaze_Medium-v3": (8, 2),
    "AntMaze_UMaze-v5": (109, 8),
    "FetchReach-v4": (16, 4),
    "AdroitHandDoorSparse-v1": (39, 28),
}


@pytest.mark.parametrize("task_id", [*DMC, *ROBOTICS])
def test_a_seed_repeats_on_a_fresh_and_on_a_used_environment(task_id: str) -> None:
    env, fresh = (envs.flattened(envs.make(task_id)) for _ in range(2))
    sizes = env.observation_space.shape, env.action_space.shape
    assert sizes == tuple((size,) for size in (DMC | ROBOTICS)[task_id])
    first = fingerprint(env, seed=3, steps=60)
    assert fingerprint(env, seed=4, steps=17) != first
    assert fingerprint(env, seed=3, steps=60) == first
    assert fingerprint(fresh, seed=3, steps=60) == first
    env.close()
    fresh.close()


def test_a_maze_repeats_its_goals_over_several_episodes() -> None:
    """Goals are drawn at the reset, and again on the way where the task continues."""
    env = envs.flattened(envs.make("PointMaze_Open_Diverse_GR-v3", max_episode_steps=20))
    once = fingerprint(env, seed=1, steps=90)
    assert fingerprint(env, seed=1, steps=90) == once


def test_no_version_is_recommended_that_no_longer_runs() -> None:
    with pytest.raises(UserError, match=r"FetchReach-v1 no longer runs.*: use FetchReach-v4$"):
        envs.make("FetchReach-v1")
    with pytest.raises(UserError, match="did you mean FetchReach-v4") as said:
        envs.make("FetchReach-v9")
    assert "-v1" not in str(said.value)


def test_dm_control_has_no_termination() -> None:
    env = envs.make("dm_control/pendulum-swingup-v0")
    env.reset(seed=0)
    ends = [env.step(np.zeros(1))[2:4] for _ in range(1_000)]
    assert set(ends[:-1]) == {(False, False)}
    assert ends[-1] == (False, True)


@pytest.mark.parametrize(
    ("task_id", "fps"),
    [("dm_control/cartpole-swingup_sparse-v0", 100), ("dm_control/hopper-hop-v0", 50)],
)
def test_a_video_runs_at_the_tasks_own_speed(task_id: str, fps: int) -> None:
    env = envs.make(task_id)
    envs.make("dm_control/finger-turn_hard-v0")  # Shimmy's environments share their metadata
    assert env.metadata["render_fps"] == fps


@pytest.mark.parametrize("task_id", ["dm_control/pendulum-swingup-v0", "PointMaze_UMaze-v3"])
def test_frames(task_id: str) -> None:
    env = envs.make(task_id, render_mode="rgb_array")
    env.reset(seed=0)
    first: Any = env.render()
    for _ in range(10):
        env.step(env.action_space.high)
    assert first.ndim == 3
    assert first.std() > 5
    assert not np.array_equal(env.render(), first)
    env.close()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("dm_control/cartpole-swingup_spars-v0", "dm_control/cartpole-swingup_sparse-v0"),
        ("PointMaze_Umaz-v3", "PointMaze_UMaze-v3"),
    ],
)
def test_an_unknown_id_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(UserError) as caught:
        envs.make(wrong)
    assert right in str(caught.value)


FIRST_USE = """
import json, sys
from adac import envs
packages = ("shimmy", "dm_control", "gymnasium_robotics", "mujoco")
before = [name for name in packages if name in sys.modules]
envs.make("adac/PendulumSparse-v0")
unasked = [name for name in packages if name in sys.modules]
envs.make("PointMaze_UMaze-v3").reset(seed=0)
envs.make("dm_control/pendulum-swingup-v0").reset(seed=0)
print(json.dumps([before, unasked]))
"""


def test_a_package_is_imported_when_it_is_asked_for_and_says_nothing() -> None:
    command = [sys.executable, "-c", FIRST_USE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], []]
    assert done.stderr == ""
