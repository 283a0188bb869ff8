"""The nineteen as a table, as Gymnasium environments, and as repeatable ones."""

import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rollouts import fingerprint

from adac import envs

TASKS = (*envs.SUITE, *envs.EXTRAS)
OURS = [task.id for task in TASKS if task.id.startswith("adac/")]
MAX_STEPS = {
    "adac/CartPoleContinuous-v0": 500,
    "adac/AcrobotContinuous-v0": 500,
    "adac/PendulumSparse-v0": 200,
    "MountainCarContinuous-v0": 999,
    "adac/MountainCarContinuousPaper-v0": 999,
    "BipedalWalker-v3": 1600,
    "BipedalWalkerHardcore-v3": 2000,
}


def test_the_suite_is_the_papers() -> None:
    groups = Counter(task.group for task in envs.SUITE)
    assert groups == {"benchmark": 14, "sparse": 4, "illustration": 1}
    assert len({task.id for task in TASKS}) == 20


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_sizes_types_and_time_limit(task: envs.Task) -> None:
    env = envs.make(task.id)
    assert env.observation_space.shape == (task.obs_dim,)
    assert env.action_space.shape == (task.action_dim,)
    assert env.action_space.dtype == np.float32
    assert env.spec is not None
    assert env.spec.max_episode_steps == MAX_STEPS.get(task.id, 1000)
    env.close()


@pytest.mark.parametrize("task_id", OURS)
def test_check_env_has_nothing_to_say(task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(task_id)
        assert env.observation_space.dtype == np.float32
        check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_seed_repeats_on_a_fresh_and_on_a_used_environment(task: envs.Task) -> None:
    env, fresh = envs.make(task.id), envs.make(task.id)
    first = fingerprint(env, seed=3, steps=150)
    assert fingerprint(env, seed=4, steps=77) != first
    assert fingerprint(env, seed=3, steps=150) == first
    assert fingerprint(fresh, seed=3, steps=150) == first
    env.close()
    fresh.close()


@pytest.fixture(scope="module")
def other_process() -> Any:
    script = Path(__file__).with_name("rollouts.py")
    command = [sys.executable, str(script), "60", *(task.id for task in TASKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_seed_repeats_in_another_process(other_process: Any) -> None:
    for task in TASKS:
        env = envs.make(task.id)
        assert other_process["prints"][task.id] == fingerprint(env, seed=3, steps=60), task.id
        env.close()


def test_importing_adac_imports_no_simulator(other_process: Any) -> None:
    heavy = {"pybullet", "mujoco", "Box2D", "pygame"}
    assert heavy.isdisjoint(other_process["at_import"])
    assert heavy - {"pygame"} < set(other_process["at_end"])


def test_roboschool_is_never_imported(other_process: Any) -> None:
    assert "adac.envs.roboschool.atlas" in other_process["at_end"]
    assert "roboschool" not in other_process["at_end"]


def test_environments_of_one_process_do_not_disturb_each_other() -> None:
    ids = ["adac/RoboschoolHopper-v1", "adac/CartPoleContinuous-v0"]
    for task_id in ids:
        alone, other = envs.make(task_id), envs.make(task_id)
        expected = fingerprint(alone, seed=5, steps=40)
        actions = np.random.default_rng(5)
        other.reset(seed=9)
        observation, _ = alone.reset(seed=5)
        seen = [observation]
        for _ in range(10):
            action = actions.uniform(-1, 1, alone.action_space.shape).astype(np.float32)
            other.step(-action)
            seen.append(alone.step(action)[0])
        assert fingerprint(alone, seed=5, steps=40) == expected
        alone.reset(seed=5)
        actions = np.random.default_rng(5)
        for frame in seen[1:]:
            action = actions.uniform(-1, 1, alone.action_space.shape).astype(np.float32)
            np.testing.assert_array_equal(alone.step(action)[0], frame)
        alone.close()
        other.close()


def test_registering_twice_is_safe() -> None:
    before = dict(gymnasium.registry)
    envs.register()
    assert gymnasium.registry == before


def test_a_time_limit_truncates_and_does_not_terminate() -> None:
    env = envs.make("adac/PendulumSparse-v0")
    env.reset(seed=0)
    still = np.zeros(1, np.float32)
    ends = [env.step(still)[2:4] for _ in range(200)]
    assert ends[:-1] == [(False, False)] * 199
    assert ends[-1] == (False, True)
