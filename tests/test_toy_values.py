"""Environments whose values are known, learned by the whole machine from reset to Q."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from adac.training.learner import Learner
from helpers import (
    TOY_AGENT,
    ChosenReward,
    MatchingReward,
    SeenReward,
    TerminalReward,
    Toy,
    TruncatedReward,
    TwoSteps,
    q_values,
)

GAMMA = TOY_AGENT.base.discount
STEPS = 600


@contextmanager
def learned(env: Toy) -> Iterator[Learner]:
    """One agent for all tasks, so that it is compiled once."""
    learner = Learner(env, TOY_AGENT, seed=1)
    learner.loop.horizon = STEPS
    for _ in range(STEPS):
        learner.loop.advance()
    yield learner
    learner.close()


def test_a_terminated_step_is_worth_its_reward() -> None:
    with learned(TerminalReward()) as learner:
        np.testing.assert_allclose(q_values(learner.state, [1, 1], [-0.5, 0.5]), 1.0, atol=0.1)


def test_a_truncated_step_is_worth_what_would_have_followed() -> None:
    with learned(TruncatedReward()) as learner:
        wanted = 1.0 / (1.0 - GAMMA)
        np.testing.assert_allclose(q_values(learner.state, [1, 1], [-0.5, 0.5]), wanted, atol=0.25)


def test_a_reward_one_step_away_is_discounted() -> None:
    with learned(TwoSteps()) as learner:
        found = q_values(learner.state, [-1, 1], [0.3, 0.3])
        np.testing.assert_allclose(found, [GAMMA, 1.0], atol=0.1)


def test_value_depends_on_what_is_seen() -> None:
    with learned(SeenReward()) as learner:
        np.testing.assert_allclose(q_values(learner.state, [-1, 1], [0, 0]), [-1, 1], atol=0.15)


def test_policy_finds_the_rewarded_action() -> None:
    with learned(ChosenReward()) as learner:
        np.testing.assert_allclose(learner.policy(np.ones((1, 1), np.float32)), 0.4, atol=0.15)
        found = q_values(learner.state, [1, 1], [0.4, -0.4])
        np.testing.assert_allclose(found, [0.0, -0.64], atol=0.15)


def test_policy_depends_on_what_is_seen() -> None:
    with learned(MatchingReward()) as learner:
        low, high = learner.policy(np.array([[-1], [1]], np.float32))[:, 0]
        assert low < -0.7
        assert high > 0.7
