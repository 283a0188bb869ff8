"""Stable-Baselines3's own tools with our class: callbacks, VecNormalize, goals, refusals."""

import io
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3")

import torch
from models import SMALL, adac, td3
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.callbacks import (
    CheckpointCallback,
    EvalCallback,
    StopTrainingOnMaxEpisodes,
)
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv, FakeImageEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from adac.core.presets import make as make_agent
from adac.errors import UserError
from adac.sb3 import ADAC, TD3, Algorithm
from adac.sb3.observations import Edge


def short(steps: int = 10) -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(gymnasium.make("Pendulum-v1"), steps)


def test_callbacks_and_normalised_environments(tmp_path: Path) -> None:
    env = VecNormalize(make_vec_env(short, n_envs=2))
    evaluated = VecNormalize(make_vec_env(short), training=False, norm_reward=False)
    watch = EvalCallback(
        evaluated, best_model_save_path=str(tmp_path), log_path=str(tmp_path), eval_freq=15,
        n_eval_episodes=2, verbose=0,
    )  # fmt: skip
    keep = CheckpointCallback(10, str(tmp_path), save_replay_buffer=True, save_vecnormalize=True)
    stop = StopTrainingOnMaxEpisodes(max_episodes=3)
    model = adac(env, tensorboard_log=str(tmp_path), stats_window_size=5)
    model.learn(1_000, callback=[watch, keep, stop], log_interval=2)
    assert model.num_timesteps == 60  # three episodes of ten steps for each of two
    found = np.load(tmp_path / "evaluations.npz")
    assert found["timesteps"].tolist() == [30, 60]
    assert (tmp_path / "ADAC_1").is_dir()
    loaded = ADAC.load(tmp_path / "rl_model_40_steps", env=env, tensorboard_log=None)
    loaded.load_replay_buffer(tmp_path / "rl_model_replay_buffer_40_steps.pkl")
    assert loaded.replay_buffer.size() == 19  # a callback is told of a step before it is stored
    evaluate_policy(loaded, evaluated, n_eval_episodes=1)


def test_the_buffer_is_raw_and_an_update_reads_what_vec_normalize_shows() -> None:
    env = VecNormalize(make_vec_env(short), gamma=0.9)
    model = td3(env, learning_starts=100)
    model.learn(30)
    env.obs_rms.mean[:], env.obs_rms.var[:] = 100.0, 4.0
    columns = model.policy.running.program.rows.columns
    obs = model._draw(8)[:, columns["obs"]]
    raw = model.replay_buffer.observations[:30, 0]
    assert np.abs(raw).max() < 9
    np.testing.assert_allclose(obs, -10.0)  # cut there


def test_goals_are_relabelled_before_an_update_reads_them() -> None:
    """Hindsight's own buffer: among its minibatches are goals that the task never set."""
    model = TD3(
        "MultiInputPolicy", BitFlippingEnv(n_bits=3, continuous=True), **SMALL,
        learning_starts=20, replay_buffer_class=HerReplayBuffer,
    ).learn(30)  # fmt: skip
    edge = model.policy.edge
    assert edge.size == 9
    rows = np.concatenate([model._draw(8) for _ in range(10)])
    columns = model.policy.running.program.rows.columns
    wanted = rows[:, columns["obs"]][:, 3:6]  # achieved_goal, desired_goal, observation
    assert {tuple(goal) for goal in wanted} - {(1.0, 1.0, 1.0)}
    reached = rows[:, columns["next_obs"]]
    met = (reached[:, :3] == reached[:, 3:6]).all(axis=1)
    np.testing.assert_array_equal(rows[:, columns["reward"]][:, 0], np.where(met, 0.0, -1.0))


def test_observations_of_other_kinds_are_flattened_as_gymnasium_does() -> None:
    space = spaces.Dict({"b": spaces.MultiDiscrete([3, 2]), "a": spaces.Discrete(4)})
    space.seed(0)
    items = [space.sample() for _ in range(5)]
    batch = {name: np.stack([item[name] for item in items]) for name in ("a", "b")}
    expected = np.stack([spaces.flatten(space, item) for item in items])
    np.testing.assert_array_equal(Edge(space)(batch)[0], expected)
    # A buffer keeps a number of a Discrete with an axis of its own, as a tensor.
    stored = {"a": torch.tensor(batch["a"])[:, None], "b": torch.tensor(batch["b"])}
    np.testing.assert_array_equal(Edge(space).of_buffer(stored), expected)


def test_a_picture_beside_a_vector_is_numbers_between_0_and_1_and_that_is_said() -> None:
    picture = spaces.Box(0, 255, (1, 36, 36), np.uint8)
    edge = Edge(spaces.Dict({"p": picture, "v": spaces.Box(-1, 1, (2,))}))
    with pytest.warns(UserWarning, match="p: pictures, read as plain numbers"):
        edge.warn_of_pictures()
    seen = {"p": np.full((1, 36, 36), 255, np.uint8), "v": np.ones(2, np.float32)}
    np.testing.assert_allclose(edge(seen)[0], 1.0)
    upright = seen | {"p": np.full((36, 36, 1), 51, np.uint8)}
    np.testing.assert_allclose(edge(upright)[0][0, :-2], 0.2)


def test_what_cannot_be_is_one_sentence() -> None:
    image = FakeImageEnv(screen_height=36, screen_width=36, n_channels=1, discrete=False)
    for policy, env, kwargs, words in (
        ("CnnPolicy", "Pendulum-v1", {}, "no convolutional networks"),
        ("MlpPolicy", image, {}, "no convolutional networks"),
        ("MlpPolicy", "Pendulum-v1", {"particels": 4}, "did you mean particles"),
        ("MlpPolicy", "Pendulum-v1", {"agent": "PPO"}, "no agent 'PPO'"),
        ("MlpPolicy", "Pendulum-v1", {"hindsight": 4}, "no effect.*HerReplayBuffer"),
        ("MlpPolicy", "Pendulum-v1", {"per_alpha": 0.6}, "no effect.*adac.Learner"),
        ("MlpPolicy", "Pendulum-v1", {"updates_per_step": 0.5}, "say train_freq"),
        (
            "MlpPolicy", "Pendulum-v1",
            {"policy_kwargs": {"features_extractor_class": torch.nn.Linear}}, "PyTorch network",
        ),
        (
            "MlpPolicy", "Pendulum-v1",
            {"policy_kwargs": {"optimizer_class": torch.optim.SGD}}, "Adam and AdamW",
        ),
    ):  # fmt: skip
        with pytest.raises(UserError, match=words):
            ADAC(policy, env, **{"buffer_size": 10, **kwargs})
    with pytest.raises(AssertionError, match="only supports"):
        ADAC("MlpPolicy", "CartPole-v1")


def test_priorities_of_an_agent_are_said_to_have_no_effect() -> None:
    agent = replace(make_agent("td3"), priority_alpha=0.6, updates_per_step=0.5)
    with pytest.warns(UserWarning, match="priority_alpha has no effect here"):
        model = td3(agent=agent, gradient_steps=2, train_freq=4)
    with pytest.warns(UserWarning, match="priority_alpha"):
        again = TD3.load(saved(model))
    assert again.gradient_steps == 2


def saved(model: Algorithm) -> io.BytesIO:
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return file


def test_the_pages_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/howto/stable-baselines3.md, with small networks and few steps."""
    page = Path(__file__).parents[2] / "docs" / "howto" / "stable-baselines3.md"
    (code,) = re.findall(r"test_at_home.py -->\n```python\n(.*?)```", page.read_text(), re.S)
    small = "batch_size=8, buffer_size=200, policy_kwargs={'net_arch': [8]}, particles=4"
    code = code.replace("10_000", "60").replace("eval_freq=1_000", "eval_freq=20")
    code = code.replace("n_eval_episodes=5", "n_eval_episodes=1")
    code = code.replace("learning_starts=500", f"learning_starts=20, {small}")
    script = tmp_path / "example.py"
    script.write_text(code)
    monkeypatch.chdir(tmp_path)
    found = runpy.run_path(str(script))
    assert found["model"].num_timesteps == 60
    assert np.isfinite(found["mean"])
    assert (tmp_path / "best" / "best_model.zip").exists()


def test_the_zoo_knows_every_agent() -> None:
    pytest.importorskip("rl_zoo3")
    from rl_zoo3 import ALGOS

    from adac.sb3 import zoo

    names = zoo.register()
    assert ALGOS["adac"] is ADAC
    assert {"adac-sac", "td3-pink"} <= set(names)
    assert ALGOS["td3"].__module__.startswith("stable_baselines3")
