"""Environments whose values are known, learned by the whole machine from reset to Q."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from adac.agent import Agent
from adac.bases import Deterministic
from adac.explorers import Analogous, GaussianNoise
from adac.learner import Learner
from adac.networks import Networks
from helpers import (
    ChosenReward,
    MatchingReward,
    SeenReward,
    TerminalReward,
    Toy,
    TruncatedReward,
    TwoSteps,
    q_values,
)

GAMMA = 0.6
BASE = Deterministic(discount=GAMMA, tau=0.1, actor_lr=3e-3, critic_lr=5e-3)
SIZES = Networks(actor_hidden=(16,), critic_hidden=(32,), latent=4, latent_hidden=(16,))
AGENTS = {
    "td3": Agent(BASE, GaussianNoise(0.3), None, SIZES, batch_size=32, warmup=100),
    "adac": Agent(BASE, Analogous(particles=4), None, SIZES, batch_size=32, warmup=100),
}


@contextmanager
def learned(env: Toy, name: str) -> Iterator[Learner]:
    """One agent for all tasks of a size, so that it is compiled once."""
    learner = Learner(env, AGENTS[name], seed=1)
    learner.horizon = 700
    for _ in range(700):
        learner.advance()
    yield learner
    learner.close()


@pytest.fixture(params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_terminated_step_is_worth_its_reward(name: str) -> None:
    with learned(TerminalReward(), name) as learner:
        np.testing.assert_allclose(q_values(learner.state, [1, 1], [-0.5, 0.5]), 1.0, atol=0.1)


def test_a_truncated_step_is_worth_what_would_have_followed(name: str) -> None:
    with learned(TruncatedReward(), name) as learner:
        wanted = 1.0 / (1.0 - GAMMA)
        np.testing.assert_allclose(q_values(learner.state, [1, 1], [-0.5, 0.5]), wanted, atol=0.25)


def test_a_reward_one_step_away_is_discounted(name: str) -> None:
    with learned(TwoSteps(), name) as learner:
        found = q_values(learner.state, [-1, 1], [0.3, 0.3])
        np.testing.assert_allclose(found, [GAMMA, 1.0], atol=0.1)


def test_value_depends_on_what_is_seen(name: str) -> None:
    with learned(SeenReward(), name) as learner:
        np.testing.assert_allclose(q_values(learner.state, [-1, 1], [0, 0]), [-1, 1], atol=0.15)


def test_policy_finds_the_rewarded_action(name: str) -> None:
    with learned(ChosenReward(), name) as learner:
        np.testing.assert_allclose(learner.policy(np.ones((1, 1), np.float32)), 0.4, atol=0.15)
        found = q_values(learner.state, [1, 1], [0.4, -0.4])
        np.testing.assert_allclose(found, [0.0, -0.64], atol=0.15)


def test_policy_depends_on_what_is_seen(name: str) -> None:
    with learned(MatchingReward(), name) as learner:
        low, high = learner.policy(np.array([[-1], [1]], np.float32))[:, 0]
        assert low < -0.7
        assert high > 0.7
