"""The small tasks: rewards by hand, at the boundaries that the paper names."""

import math

import gymnasium
import numpy as np
import pytest

from adac import envs


def act(value: float) -> np.ndarray:
    return np.array([value], np.float32)


class TestCartPoleContinuous:
    """r = -0.1|a| - 0.05a^2 + 0.1, or - 1 where the episode ends by falling."""

    def pushes(self, value: float, count: int = 200) -> set[int]:
        """The directions (signs of the cart's new speed) that an action leads to, from rest."""
        env = envs.make("adac/CartPoleContinuous-v0").unwrapped
        env.reset(seed=0)
        seen = set()
        for _ in range(count):
            env.cartpole.state = np.zeros(4)
            observation, *_ = env.step(act(value))
            seen.add(int(np.sign(observation[1])))
        return seen

    @pytest.mark.parametrize("value", [-1.0, -0.51, np.nextafter(np.float32(-0.5), -1)])
    def test_left(self, value: float) -> None:
        assert self.pushes(value) == {-1}

    @pytest.mark.parametrize("value", [1.0, 0.51, np.nextafter(np.float32(0.5), 1)])
    def test_right(self, value: float) -> None:
        assert self.pushes(value) == {1}

    @pytest.mark.parametrize("value", [-0.5, -0.2, 0.0, 0.5])
    def test_between_and_at_the_boundaries_it_is_a_fair_coin(self, value: float) -> None:
        env = envs.make("adac/CartPoleContinuous-v0").unwrapped
        env.reset(seed=1)
        right = 0
        for _ in range(1000):
            env.cartpole.state = np.zeros(4)
            right += env.step(act(value))[0][1] > 0
        assert abs(right - 500) < 80  # five standard deviations

    @pytest.mark.parametrize(
        ("value", "reward"), [(0.0, 0.1), (0.5, 0.0375), (-1.0, -0.05), (0.25, 0.071875)]
    )
    def test_reward_while_up(self, value: float, reward: float) -> None:
        env = envs.make("adac/CartPoleContinuous-v0")
        env.reset(seed=0)
        _, got, terminated, *_ = env.step(act(value))
        assert not terminated
        assert got == pytest.approx(reward, abs=1e-7)

    @pytest.mark.parametrize("state", [(0.0, 0.0, 0.3, 0.0), (2.5, 0.0, 0.0, 0.0)])
    def test_reward_of_a_fall(self, state: tuple[float, ...]) -> None:
        env = envs.make("adac/CartPoleContinuous-v0")
        env.reset(seed=0)
        env.unwrapped.cartpole.state = np.array(state)
        _, reward, terminated, truncated, _ = env.step(act(-1.0))
        assert (terminated, truncated) == (True, False)
        assert reward == pytest.approx(-1.15, abs=1e-7)

    def test_dynamics_are_cartpoles(self) -> None:
        ours, theirs = envs.make("adac/CartPoleContinuous-v0"), gymnasium.make("CartPole-v1")
        observation, _ = ours.reset(seed=7)
        expected, _ = theirs.reset(seed=7)
        np.testing.assert_array_equal(observation, expected)
        for direction in (1, 0, 0, 1, 1, 0, 1, 0):
            observation, *_ = ours.step(act(2.0 * direction - 1.0))
            expected, *_ = theirs.step(direction)
            np.testing.assert_array_equal(observation, expected)


class TestAcrobotContinuous:
    """[-1, -1/3) is the old action 0, [-1/3, 1/3) is 1, [1/3, 1] is 2."""

    @pytest.mark.parametrize(
        ("value", "old"),
        [
            (-1.0, 0),
            (np.nextafter(np.float32(-1 / 3), -1), 0),
            (-1 / 3, 1),
            (0.0, 1),
            (np.nextafter(np.float32(1 / 3), 0), 1),
            (1 / 3, 2),
            (1.0, 2),
        ],
    )
    def test_thirds(self, value: float, old: int) -> None:
        ours, theirs = envs.make("adac/AcrobotContinuous-v0"), gymnasium.make("Acrobot-v1")
        ours.reset(seed=0)
        theirs.reset(seed=0)
        for _ in range(3):
            observation, reward, terminated, *_ = ours.step(act(value))
            expected, old_reward, old_terminated, *_ = theirs.step(old)
            np.testing.assert_array_equal(observation, expected)
            assert (reward, terminated) == (old_reward, old_terminated) == (-1.0, False)

    def test_the_goal_ends_it_at_no_cost(self) -> None:
        env = envs.make("adac/AcrobotContinuous-v0")
        env.reset(seed=0)
        env.unwrapped.state = np.array([math.pi, 0.0, 0.0, 0.0])  # both links straight up
        _, reward, terminated, truncated, _ = env.step(act(0.0))
        assert (reward, terminated, truncated) == (0.0, True, False)


class TestPendulumSparse:
    """10 while cos(theta) > 0.95 in the state in which the action is taken."""

    EDGE = math.acos(0.95)

    @pytest.mark.parametrize(
        ("theta", "reward"),
        [
            (0.0, 10.0),
            (EDGE - 1e-9, 10.0),
            (-EDGE + 1e-9, 10.0),
            (EDGE + 1e-9, 0.0),
            (-EDGE - 1e-9, 0.0),
            (2 * math.pi, 10.0),
            (math.pi, 0.0),
        ],
    )
    def test_reward(self, theta: float, reward: float) -> None:
        env = envs.make("adac/PendulumSparse-v0")
        env.reset(seed=0)
        env.unwrapped.state = np.array([theta, 0.0])
        assert env.step(act(0.7))[1] == reward

    def test_exactly_the_threshold_pays_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        env = envs.make("adac/PendulumSparse-v0")
        env.reset(seed=0)
        env.unwrapped.state = np.array([0.0, 0.0])
        monkeypatch.setattr("adac.envs.classic.np.cos", lambda _: 0.95)
        assert env.step(act(0.0))[1] == 0.0

    def test_dynamics_are_pendulums_at_twice_the_action(self) -> None:
        ours, theirs = envs.make("adac/PendulumSparse-v0"), gymnasium.make("Pendulum-v1")
        ours.reset(seed=3)
        theirs.reset(seed=3)
        for value in (1.0, -0.25, 0.5, -1.0):
            observation, *_ = ours.step(act(value))
            expected, *_ = theirs.step(act(2 * value))
            np.testing.assert_array_equal(observation, expected)


class TestMountainCarPaper:
    """100 at the goal, less |a|."""

    @pytest.mark.parametrize(("value", "cost"), [(0.0, 0.0), (0.5, 0.5), (-1.0, 1.0)])
    def test_on_the_way(self, value: float, cost: float) -> None:
        env = envs.make("adac/MountainCarContinuousPaper-v0")
        env.reset(seed=0)
        _, reward, terminated, *_ = env.step(act(value))
        assert (reward, terminated) == (-cost, False)

    def test_at_the_goal(self) -> None:
        env = envs.make("adac/MountainCarContinuousPaper-v0")
        env.reset(seed=0)
        env.unwrapped.state = np.array([0.449, 0.05])
        _, reward, terminated, *_ = env.step(act(0.5))
        assert (reward, terminated) == (99.5, True)

    def test_gymnasiums_own_costs_a_tenth_of_the_square(self) -> None:
        env = envs.make("MountainCarContinuous-v0")
        env.reset(seed=0)
        assert env.step(act(0.5))[1] == pytest.approx(-0.025)
