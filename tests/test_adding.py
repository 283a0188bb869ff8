"""Transitions from elsewhere: demonstrations, another program's data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adac.core.explorers import GaussianNoise
from adac.errors import UserError
from adac.training.learner import Learner
from helpers import TD3, MadeUp, assert_same_bits, stored, tiny

AGENT = tiny(TD3, GaussianNoise(), MadeUp(), replay_size=40, warmup=10)


def some(count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    draw = np.random.default_rng(seed)
    return {
        "obs": draw.normal(size=(count, 3)),
        "action": draw.uniform(-2.0, 2.0, (count, 1)),  # Pendulum's own units
        "reward": draw.normal(size=count),
        "next_obs": draw.normal(size=(count, 3)),
        "terminated": draw.random(count) < 0.3,
        "truncated": draw.random(count) < 0.3,
    }


def test_what_was_added_is_stored_in_the_agent_s_units_with_its_bonus() -> None:
    learner = Learner("Pendulum-v1", AGENT)
    learner.add(**(given := some(9)))
    found = stored(learner)
    assert (len(learner.replay), learner.step) == (9, 0)
    np.testing.assert_allclose(found.obs, given["obs"], rtol=1e-6)
    np.testing.assert_allclose(found.action, given["action"] / 2.0, rtol=1e-6)
    np.testing.assert_allclose(found.reward, given["reward"], rtol=1e-6)
    np.testing.assert_allclose(found.next_obs, given["next_obs"], rtol=1e-6)
    np.testing.assert_array_equal(found.continues, ~given["terminated"])
    wanted = (given["next_obs"] ** 2).sum(1) + (given["action"] ** 2).sum(1) / 4.0
    np.testing.assert_allclose(found.bonus, wanted, rtol=1e-5)


def test_lists_will_do_and_nothing_need_be_truncated() -> None:
    learner = Learner("Pendulum-v1", AGENT)
    plain = {name: column.tolist() for name, column in some(4).items() if name != "truncated"}
    learner.add(**plain)
    assert len(learner.replay) == 4


def test_a_step_whose_bonus_is_still_being_computed_gets_it() -> None:
    plain, mixed = (Learner("Pendulum-v1", AGENT).learn(3, log_every=0) for _ in range(2))
    mixed.add(**some(2))
    np.testing.assert_array_equal(stored(plain).bonus, stored(mixed).bonus[:3])


def test_training_goes_on_and_is_continued_to_the_bit(tmp_path: Path) -> None:
    def begun() -> Learner:
        learner = Learner("Pendulum-v1", AGENT)
        learner.add(**some(15))
        learner.learn(20)
        learner.add(**some(30, seed=1))
        return learner

    whole = begun()
    begun().save(tmp_path)
    resumed = Learner.load(tmp_path)
    for learner in (whole, resumed):
        learner.learn(20)
    assert whole.replay.inserted == 85
    assert_same_bits((whole.state, stored(whole)), (resumed.state, stored(resumed)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"obs": np.zeros((5, 2))}, r"\(5, 2\)"),
        ({"obs": np.zeros((4, 3))}, r"\(4, .*not \(5,"),
        ({"action": np.zeros(5)}, r"action .*\(5, 1\), not \(5,\)"),
        ({"next_obs": np.zeros(3)}, "next_obs must be a batch"),
        ({"terminated": np.zeros((5, 1), bool)}, r"terminated .*\(5,\), not \(5, 1\)"),
        ({"truncated": np.zeros(6, bool)}, r"truncated .*\(5,\), not \(6,\)"),
        ({"reward": np.array([0.0, 1.0, np.nan, 0.0, 0.0])}, "reward must be finite"),
        ({"obs": np.full((5, 3), np.inf)}, "observation must be finite"),
        ({"action": np.full((5, 1), 2.1)}, r"action .*task's units.*\[-2"),
    ],
)
def test_what_does_not_fit_is_one_sentence_and_adds_nothing(
    change: dict[str, Any], words: str
) -> None:
    learner = Learner("Pendulum-v1", AGENT)
    with pytest.raises(UserError, match=words):
        learner.add(**(some(5) | change))
    assert len(learner.replay) == 0
