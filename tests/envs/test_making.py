"""`make`: one sentence for what a user can get wrong, and pictures without a display."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from adac import envs
from adac.errors import UserError

WITHOUT_SIMULATORS = """
import importlib.util, json, sys
HIDDEN = {"mujoco", "Box2D", "pybullet", "pybullet_data", "pygame", "dm_control"}
HIDDEN.add("gymnasium_robotics")
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in HIDDEN else find(name, *rest)

import gymnasium
from adac import envs
from adac.errors import UserError

def said(make, *args, **kwargs):
    try:
        make(*args, **kwargs)
    except UserError as error:
        return str(error)

print(json.dumps({
    "mujoco": said(envs.make, "Hopper-v4"),
    "box2d": said(envs.make, "BipedalWalker-v3"),
    "pybullet": said(envs.make, "adac/RoboschoolHopper-v1"),
    "dmc": said(envs.make, "dm_control/pendulum-swingup-v0"),
    "robotics": said(envs.make, "PointMaze_UMaze-v3"),
    "pybullet, gymnasium's own make": said(gymnasium.make, "adac/RoboschoolAnt-v1"),
    "classic": said(envs.make, "adac/PendulumSparse-v0", render_mode="rgb_array"),
    "size": envs.make("adac/CartPoleSwingUpSparse-v0").reset(seed=0)[0].size,
}))
"""


@pytest.fixture(scope="module")
def without_simulators() -> dict[str, Any]:
    command = [sys.executable, "-c", WITHOUT_SIMULATORS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return lines


@pytest.mark.parametrize(
    "extra",
    ["mujoco", "box2d", "pybullet", "pybullet, gymnasium's own make", "classic", "dmc", "robotics"],
)
def test_a_missing_simulator_is_one_line_that_names_the_extra(
    extra: str, without_simulators: dict[str, Any]
) -> None:
    line = without_simulators[extra]
    assert line.endswith(f"pip install 'adac[{extra.partition(',')[0]}]'")
    assert len(line.splitlines()) == 1


def test_the_small_tasks_run_without_any(without_simulators: dict[str, Any]) -> None:
    assert without_simulators["size"] == 5


def failure(task_id: str, **kwargs: Any) -> str:
    with pytest.raises(UserError) as caught:
        envs.make(task_id, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Hoper-v4", "Hopper-v4"),
        ("RoboschoolHopper-v1", "adac/RoboschoolHopper-v1"),
        ("adac/PendulmSparse-v0", "adac/PendulumSparse-v0"),
        ("Hopper-v9", "Hopper-v4"),
        ("adac/RoboschoolAtlas-v1", "adac/RoboschoolAtlasForwardWalk-v1"),
    ],
)
def test_an_unknown_id_names_the_nearest(wrong: str, right: str) -> None:
    said = failure(wrong)
    assert f"'{wrong}'" in said
    assert right in said
    assert "-v2" not in said  # still registered, but they do not run


def test_an_id_unlike_any_points_to_the_list() -> None:
    assert "adac list envs" in failure("Qqqqqqqqqqqq-v0")


def test_an_id_of_a_package_that_was_not_imported_says_so() -> None:
    said = failure("ALE/Pong-v5")
    assert "nor any of ALE/: import the package" in said
    assert "did you mean" not in said


@pytest.mark.parametrize("wrong", ["", "no task", "Hopper-v4!"])
def test_a_malformed_id(wrong: str) -> None:
    assert "is not a task id" in failure(wrong)


@pytest.mark.parametrize("robotics", [False, True])
@pytest.mark.parametrize("old", ["Hopper-v2", "Ant-v3", "InvertedPendulum-v2"])
def test_mujoco_versions_that_are_gone(old: str, robotics: bool) -> None:
    """Gymnasium-Robotics registers them anew, with what needs a MuJoCo of long ago."""
    if robotics:
        envs.make("PointMaze_UMaze-v3")
    said = failure(old)
    assert old.rpartition("-")[0] + "-v4" in said
    assert "-v2" not in failure("Hoper-v4")


def test_a_deprecated_version_names_its_successor() -> None:
    assert "LunarLanderContinuous-v3" in failure("LunarLanderContinuous-v2")


def test_a_module_that_does_not_exist() -> None:
    assert "nowhere" in failure("nowhere:Task-v0")


def test_any_other_failure_is_a_sentence_with_its_cause() -> None:
    with pytest.raises(UserError, match=r"cannot be made with .*no_such_setting") as raised:
        envs.make("Hopper-v4", no_such_setting=1)
    assert isinstance(raised.value.__cause__, TypeError)


def test_ids_with_a_module_and_settings_reach_gymnasium() -> None:
    env = envs.make("adac:adac/PendulumSparse-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(1, np.float32))[3] for _ in range(3)] == [False, False, True]


def test_a_task_of_the_users_own() -> None:
    class Own(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    gymnasium.register("own/Task-v0", Own)
    try:
        assert isinstance(envs.make("own/Task-v0").unwrapped, Own)
        assert "own/Task-v0" in failure("own/Tsk-v0")
    finally:
        del gymnasium.registry["own/Task-v0"]


HEADLESS = ("MUJOCO_GL", "SDL_VIDEODRIVER", "SDL_AUDIODRIVER")


@pytest.fixture
def no_display(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", *HEADLESS):
        monkeypatch.setenv(variable, "x")  # so that it is restored afterwards
        monkeypatch.delenv(variable)
    return monkeypatch


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_headless_variables_are_set_only_without_a_display(no_display: pytest.MonkeyPatch) -> None:
    no_display.setenv("DISPLAY", ":0")
    envs.make("adac/PendulumSparse-v0")
    assert not any(variable in os.environ for variable in HEADLESS)
    no_display.delenv("DISPLAY")
    no_display.setenv("MUJOCO_GL", "osmesa")
    envs.make("adac/PendulumSparse-v0")
    assert [os.environ[variable] for variable in HEADLESS] == ["osmesa", "dummy", "dummy"]


@pytest.mark.parametrize("task", [*envs.SUITE, *envs.EXTRAS], ids=lambda task: task.id)
def test_frames(task: envs.Task) -> None:
    env = envs.make(task.id, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert isinstance(first, np.ndarray)
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    assert min(first.shape[:2]) >= 300
    assert first.std() > 5  # not one colour
    for _ in range(5):
        env.step(env.action_space.high)
    assert not np.array_equal(env.render(), first)
    env.close()


def test_no_frames_without_a_render_mode() -> None:
    for task_id in ("adac/RoboschoolHopper-v1", "adac/CartPoleSwingUpSparse-v0"):
        env = envs.make(task_id).unwrapped
        env.reset(seed=0)
        assert env.render() is None


@pytest.mark.parametrize(
    "kwargs",
    [
        {"xml_file": "/etc/shadow"},
        {"xml_file": "../../secret.xml"},
        {"xml_file": "~/model.xml"},
        {"options": {"models": ["a.xml", "..\\\\b.xml"]}},
        {"./x": 1, "options": {"./x": 1}},
    ],
)
def test_a_folder_does_not_choose_files_for_a_simulator(kwargs: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"run makes its task with .*env_kwargs="):
        envs.require_no_paths(kwargs, Path("run"))
    envs.require_no_paths({"xml_file": "hopper.xml", "g": 3.0, "mode": "easy"}, Path("run"))


def test_what_a_task_s_constructor_raises_is_one_sentence() -> None:
    with pytest.raises(UserError, match="Hopper-v5 cannot be made with"):
        envs.make("Hopper-v5", xml_file="/nothing/here.xml")
