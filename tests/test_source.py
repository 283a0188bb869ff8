"""Environments wherever they come from: ids, factories, classes, lists, vectors, processes."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward

from adac.core.explorers import GaussianNoise
from adac.errors import RunError, UserError
from adac.training.learner import Learner
from adac.training.policy import TargetPolicy
from helpers import TD3, MatchingReward, Toy, assert_same_bits, stored, tiny

AGENT = tiny(TD3, GaussianNoise(), warmup=10)
PENDULUM = "Pendulum-v1"


class Walk(Toy):
    """A random walk that is drawn from the environment's own generator and from its space."""

    length = 6
    truncates = True

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def proceed(self) -> float:
        drawn = float(self.np_random.normal()) + float(self.action_space.sample()[0])
        return float(np.clip(self.scale * drawn, -2.0, 2.0))

    def react(self, seen: float, action: float) -> float:
        return seen * action


def learner(env: Any, **options: Any) -> Learner:
    return Learner(env, AGENT, **options)


@pytest.fixture(scope="module")
def alone() -> Learner:
    return learner(Walk, num_envs=3).learn(60)


@pytest.mark.parametrize("make", [lambda: Walk(), lambda: [Walk, Walk, Walk],
                                  lambda: [Walk(), Walk(), Walk()],
                                  lambda: gymnasium.vector.SyncVectorEnv([Walk] * 3)])  # fmt: skip
def test_every_way_to_hand_in_environments_gives_the_same_run(
    make: Callable[[], Any], alone: Learner
) -> None:
    handed = make()
    made = learner(Walk if isinstance(handed, Walk) else handed, num_envs=3).learn(60)
    assert_same_bits(stored(made), stored(alone))
    assert_same_bits(made.state, alone.state)
    assert made.config()["num_envs"] == 3


def test_a_list_needs_no_number(alone: Learner) -> None:
    assert learner([Walk(), Walk()]).config()["num_envs"] == 2
    with pytest.raises(UserError, match="num_envs is 3, but env is a list of 2"):
        learner([Walk(), Walk()], num_envs=3)
    one = Walk()
    with pytest.raises(UserError, match="different ones"):
        learner([one, one])


def test_a_factory_serves_training_evaluation_and_load(tmp_path: Path) -> None:
    def make(scale: float = 1.0) -> Any:
        return TransformReward(Walk(scale), lambda reward: reward + 1.0)

    made = learner(make, num_envs=2, env_kwargs={"scale": 0.5})
    made.learn(20, out=tmp_path / "run", eval_every=10, eval_episodes=3)
    assert len({id(env.unwrapped) for env in made.tasks.evaluation(3)}) == 3
    assert made.make_env().unwrapped.scale == 0.5
    loaded = Learner.load(tmp_path / "run", env=make)
    assert [env.unwrapped.scale for env in loaded.loop.environments.envs] == [0.5, 0.5]
    assert_same_bits(loaded.learn(20).state, made.learn(20).state)
    with pytest.raises(UserError, match="or what makes it"):
        Learner.load(tmp_path / "run")
    assert TargetPolicy.load(tmp_path / "run", env=make).predict([0.1])[0].shape == (1,)


def test_what_an_id_tells_is_loaded_without_the_factory(tmp_path: Path) -> None:
    learner(lambda: gymnasium.make(PENDULUM, g=9.0)).save(tmp_path / "told")
    assert Learner.load(tmp_path / "told").env_kwargs == {"g": 9.0}


def test_evaluation_can_have_a_factory_of_its_own() -> None:
    made = learner(Walk(), eval_env=lambda: TransformReward(Walk(), lambda _: 1.0))
    assert made.evaluate(3).returns.tolist() == [6.0] * 3
    with pytest.raises(UserError, match="eval_env has the observation_space"):
        learner(Walk, eval_env=PENDULUM)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (lambda: 3, "must make a Gymnasium environment"),
        (lambda missing: Walk(), "makes no environment"),
        (3, "a function or class that makes one"),
        ([], "a function or class that makes one"),
        ([PENDULUM, PENDULUM], "pass the id and num_envs"),
        ([Walk(), Walk], "pass the id and num_envs"),
    ],
)
def test_what_makes_no_environment_is_refused(env: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        learner(env)


def test_one_environment_cannot_become_several() -> None:
    with pytest.raises(UserError, match="a function that makes one"):
        learner(Walk(), num_envs=2)
    with pytest.raises(UserError, match="process of its own"):
        learner(Walk(), subprocesses=True)


# -- processes -----------------------------------------------------------------------------------


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., Learner]]:
    made: list[Learner] = []

    def make(env: Any, **options: Any) -> Learner:
        made.append(learner(env, subprocesses=True, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_processes_give_the_same_run_and_resume_to_the_bit(
    tmp_path: Path, alone: Learner, elsewhere: Callable[..., Learner]
) -> None:
    half = elsewhere(lambda: Walk(), num_envs=3)
    half.learn(33)
    half.save(tmp_path / "half")
    half.close()
    loaded = Learner.load(tmp_path / "half", env=Walk)
    try:
        loaded.learn(27)
        assert loaded.loop.environments.envs[0].unwrapped is not alone.loop.environments.envs[0]
        assert_same_bits(stored(loaded), stored(alone))
        assert_same_bits(loaded.state, alone.state)
    finally:
        loaded.close()


class Failing(MatchingReward):
    """Fails, or ends its process, at the second step."""

    dies = False

    def react(self, seen: float, action: float) -> float:
        self.count = getattr(self, "count", 0) + 1
        if self.count > 1 and self.dies:
            os._exit(7)
        if self.count > 1:
            raise ArithmeticError("the simulator is unstable")
        return 0.0


class Dying(Failing):
    dies = True


@pytest.mark.parametrize(
    ("env", "said"),
    [(Failing, "failed in its process: ArithmeticError: the simulator is unstable"),
     (Dying, "ended by itself, with exit code 7")],
)  # fmt: skip
def test_what_happens_in_a_process_is_told(
    env: type[Failing], said: str, elsewhere: Callable[..., Learner]
) -> None:
    with pytest.raises(RunError, match=said):
        elsewhere(env).learn(5)


def test_a_signal_to_all_processes_is_for_the_one_who_saves(
    elsewhere: Callable[..., Learner], tmp_path: Path
) -> None:
    """As schedulers send SIGTERM, and a terminal Ctrl-C: the simulators must outlive it."""
    made = elsewhere(Walk)

    def signalled(learner: Learner) -> None:
        (env,) = learner.loop.environments.envs
        for number in (signal.SIGTERM, signal.SIGINT):
            env.unwrapped._process.send_signal(number)

    made.learn(5, callback=signalled)
    made.save(tmp_path / "run")
    assert made.step == 5
