"""What somebody types who comes from Stable-Baselines3."""

from typing import Any

import gymnasium
import pytest

from adac.core.explorers import GaussianNoise
from adac.errors import UserError
from adac.training.learner import Learner
from helpers import SMALL, TD3, tiny

AGENT = tiny(TD3, GaussianNoise(), warmup=10)


def wrapped() -> gymnasium.Env[Any, Any]:
    """Gymnasium writes its limit into the task's settings, which a run folder can tell."""
    return gymnasium.wrappers.TimeLimit(gymnasium.make("Pendulum-v1").unwrapped, 50)


def test_a_list_of_functions_is_called_without_what_the_first_one_made() -> None:
    assert Learner([wrapped, wrapped], AGENT).learn(20).step == 20


def test_a_policy_in_the_environments_place() -> None:
    with pytest.raises(UserError, match=r"env comes first, and there is no 'MlpPolicy'.*adac\.sb3"):
        Learner("MlpPolicy", "Pendulum-v1")


def test_a_learner_says_what_it_is() -> None:
    made = Learner("Pendulum-v1", "td3", seed=3, overrides=SMALL)
    assert repr(made) == "<Learner td3 on Pendulum-v1, seed 3, step 0>"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gamma": 0.9}, r"Learner has no argument 'gamma': .* overrides=\{'gamma': …\}"),
        ({"learning_rate": 1e-3}, r"overrides=\{'learning_rate': …\}"),
        ({"n_envs": 4}, "'n_envs'; here it is num_envs"),
        ({"policy_kwargs": {}}, "here it is settings by their names: net_arch"),
        ({"sede": 1}, "did you mean seed"),
    ],
)
def test_arguments_of_a_constructor_elsewhere(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Learner("Pendulum-v1", AGENT, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"total_timesteps": 10}, "learn has no argument 'total_timesteps'; here it is steps"),
        ({"steps": 10, "log_interval": 4}, "here it is log_every"),
        ({"steps": 10, "eval_evry": 4}, "did you mean eval_every"),
        ({"steps": 10, "device": "cpu"}, "here it is JAX's choice"),
        ({"steps": 10, "reset_num_timesteps": False}, "it has steps, out, progress_bar"),
    ],
)
def test_arguments_of_learn_elsewhere(given: dict[str, Any], words: str) -> None:
    learner = Learner("Pendulum-v1", AGENT)
    with pytest.raises(UserError, match=words):
        learner.learn(**given)


def test_an_agent_that_is_not_here() -> None:
    with pytest.raises(UserError, match="no agent 'PPO': `adac list agents` shows all"):
        Learner("Pendulum-v1", "PPO")
