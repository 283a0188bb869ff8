"""What an environment may answer: training and evaluation refuse the same, and name the step."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Tuple

from adac.errors import RunError, UserError
from adac.training import evaluation
from adac.training.environments import Environments, check_spaces
from adac.training.evaluation import StoppedError, evaluate
from hostile import misbehaving


class Walk(gymnasium.Env[Any, Any]):
    """x moves by the action, for ten steps."""

    def __init__(self) -> None:
        self.observation_space = Box(-np.inf, np.inf, (2,))
        self.action_space = Box(-1.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left, self.x = 10, float(self.np_random.normal())
        return np.array([self.x, 0.0]), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        self.x += float(action[0])
        return np.array([self.x, 1.0]), self.x, self.left == 0, False, {}


class Endless(Walk):
    def step(self, action: Any) -> Any:
        self.left = 9
        return super().step(action)


BROKEN = misbehaving(Walk)
STILL = np.zeros((1, 1), np.float32)


def stay(obs: Any) -> Any:
    return np.zeros((len(obs), 1), np.float32)


def play(run: Environments, steps: int) -> Environments:
    run.begin()
    for _ in range(steps):
        run.step(STILL)
    return run


@pytest.mark.parametrize("kind", BROKEN)
def test_training_names_task_and_step(kind: str) -> None:
    with pytest.raises(RunError, match=r"^Walk-v9 gave .*at (step 2|the reset after step 0)$"):
        play(Environments([BROKEN[kind]()], "Walk-v9", 0), 3)


@pytest.mark.parametrize("kind", BROKEN)
def test_an_evaluation_refuses_what_training_refuses(kind: str) -> None:
    with pytest.raises(RunError, match=r"^Walk-v9 gave .*(step 2 of|reset of) an evaluation's"):
        evaluate(stay, BROKEN[kind](), 1, seed=0, name="Walk-v9")


def test_an_evaluation_can_be_stopped() -> None:
    asked = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) == 3

    with pytest.raises(StoppedError):
        evaluate(stay, Endless(), 1, seed=0, stop=stop)
    assert len(asked) == 3


def test_an_episode_that_does_not_end_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "ENDLESS", 10)
    calls = []
    with (
        pytest.warns(UserWarning, match=r"episode of Walk-v9 goes on.*max_episode_steps"),
        pytest.raises(StoppedError),
    ):
        evaluate(
            stay,
            Endless(),
            1,
            seed=0,
            name="Walk-v9",
            stop=lambda: calls.append(1) or len(calls) > 30,
        )


class Drawing(Walk):
    """Its noise comes from its own spaces, as in Stable-Baselines3's IdentityEnvBox."""

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action + self.action_space.sample())
        return obs, *rest


def test_a_task_that_draws_from_its_own_spaces_repeats() -> None:
    seen = []
    for _ in range(2):
        run = play(Environments([Drawing()], "Drawing", 3), 15)
        seen.append(run.obs.tolist())
        arrays, facts = run.snapshot()
    assert seen[0] == seen[1]
    assert Environments([Drawing()], "Drawing", 3).restore(arrays, facts) == []
    space = Box(-1.0, 1.0, (1,))  # the wrapper's own, so that the task's is not the one seen
    wrapped = gymnasium.wrappers.TransformAction(Drawing(), lambda action: action, space)
    first, second = (evaluate(stay, wrapped, 3, seed=1).returns.tolist() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "change",
    [
        {"episodes": [0, 0]},
        {"episodes": [-1]},
        {"returns": []},
        {"lengths": [[]]},
        {"obs": np.zeros((1, 3), np.float32)},
        {"first": np.zeros(2, bool)},
        {"actions.0": np.zeros((4, 2), np.float32)},
        {"actions.0": np.zeros(4, np.float32)},
    ],
)
def test_the_unfinished_episodes_of_another_run_are_refused(change: dict[str, Any]) -> None:
    run = Environments([Walk()], "Walk", 0)
    run.begin()
    arrays, facts = run.snapshot()
    for name, value in change.items():
        (arrays if name in arrays else facts)[name] = value
    with pytest.raises(ValueError, match="its unfinished episodes"):
        Environments([Walk()], "Walk", 0).restore(arrays, facts)


class Several:
    num_envs = 3
    observation_space, action_space = Box(-1, 1, (2,)), Box(-1, 1, (1,))


def spaced(obs: Any, action: Any) -> Walk:
    env = Walk()
    env.observation_space, env.action_space = obs, action
    return env


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Several(), "num_envs"),
        (gymnasium.make_vec("Pendulum-v1", num_envs=2), "num_envs"),
        (spaced(Box(0, 255, (84, 84, 3), np.uint8), Box(-1, 1, (1,))), "no convolutional"),
        (spaced(Box(-1, 1, (0,)), Box(-1, 1, (1,))), "empty observation or action space"),
        (
            spaced(Dict({"a": Box(-1, 1, (2,)), "b": Dict({})}), Box(-1, 1, (1,))),
            "empty observation or action space",
        ),
        (spaced(Tuple(()), Box(-1, 1, (1,))), "empty observation or action space"),
        (spaced(Box(-1, 1, (2,)), Box(-1, 1, (0,))), "empty observation or action space"),
    ],
)
def test_spaces_that_can_not_be_learned_on(env: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        check_spaces(env, "Odd")
