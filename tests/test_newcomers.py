"""What somebody types who comes from Stable-Baselines3."""

from typing import Any

import gymnasium
import pytest

from adac.core.explorers import GaussianNoise
from adac.errors import UserError
from adac.training.learner import Learner
from helpers import TD3, tiny

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
    made = Learner("Pendulum-v1", "td3", seed=3)
    assert repr(made) == "<Learner td3 on Pendulum-v1, seed 3, step 0>"
