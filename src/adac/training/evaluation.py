"""Evaluation: whole episodes of a policy on tasks of its own, seeded and apart from training."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adac import envs as tasks
from adac.errors import UserError
from adac.training import answers, infos
from adac.training.answers import Env, Floats, UnusableError
from adac.training.environments import EVALUATION, check_spaces, episode_seed

PolicyFunction = Callable[[Floats], Floats]  # obs [n, o] → action [n, d]
Frame = Callable[[Any, int, float], None]  # a picture, its episode's number, the return so far
SIDE_BY_SIDE = 10  # environments at most; one call of the policy costs more than most steps
ENDLESS = 100_000  # steps of an episode, after which one asks whether it will ever end


class StoppedError(Exception):
    """An evaluation was told to stop before it had a result."""


class Evaluation(NamedTuple):
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    states: Floats = np.zeros((0, 0), np.float32)  # [n, o], all that were seen after a step
    told: infos.Told = {}  # noqa: RUF012  # means over what the episodes' last `info` said

    def summary(self) -> dict[str, float]:
        return {
            "mean_return": float(self.returns.mean()),
            "std_return": float(self.returns.std()),
            "episodes": len(self.returns),
            "min_return": float(self.returns.min()),
            "max_return": float(self.returns.max()),
            "mean_length": float(self.lengths.mean()),
        } | self.told


def evaluate(
    policy: PolicyFunction,
    envs: Env | Sequence[Env],
    episodes: int,
    seed: int,
    *,
    salt: int = 0,
    name: str = "the task",
    frame: Frame | None = None,
    stop: Callable[[], bool] | None = None,
    keywords: Sequence[str] = (),
) -> Evaluation:
    """Returns of `episodes` episodes; `salt` tells one evaluation of a run from the next.

    Several environments play side by side, each its next episode when one is over, so that the
    policy is asked once for all of them. `frame` is shown the first one's picture before each step,
    and `stop` is asked: if it says so, StoppedError is raised. `keywords` of each episode's last
    `info` are kept.
    """
    if episodes < 1:
        raise UserError(f"episodes must be at least 1, not {episodes}")
    if seed < 0:
        raise UserError(f"seed must not be negative, and is {seed}")
    lanes = [envs] if isinstance(envs, gymnasium.Env) else list(envs)[:episodes]
    scaling = check_spaces(lanes[0], name)
    lanes = [tasks.flattened(lane) for lane in lanes]
    play = _Play(lanes, name, (seed, EVALUATION, salt), episodes, keywords)
    while play.playing:
        if stop is not None and stop():
            raise StoppedError
        if frame is not None:
            episode = play.playing.get(0, play.begun - 1)
            frame(_picture(lanes[0], name), episode + 1, float(play.returns[episode]))
        play.step(scaling.to_task(policy(play.obs)))
    told = infos.means(play.told)
    return Evaluation(play.returns, play.lengths, np.stack(play.states), told)


class _Play:
    """Episodes going on in their lanes."""

    def __init__(
        self,
        lanes: Sequence[Env],
        name: str,
        seeds: tuple[int, ...],
        episodes: int,
        keywords: Sequence[str],
    ):
        self.lanes, self.name, self.seeds, self.episodes = lanes, name, seeds, episodes
        self.keywords = keywords
        self.told: list[infos.Told] = []
        shape = lanes[0].observation_space.shape
        assert shape is not None
        self.size, self.action_repeat = shape[0], tasks.action_repeat_of(lanes[0])
        self.returns, self.lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
        self.states: list[Floats] = []
        self.begun = len(lanes)
        self.playing = {lane: lane for lane in range(self.begun)}  # lane: its episode's number
        self.obs: Floats = np.stack([self._begin(lane, lane) for lane in self.playing])

    def _begin(self, lane: int, episode: int) -> Floats:
        try:
            return answers.reset(self.lanes[lane], episode_seed(*self.seeds, episode), self.size)
        except UnusableError as error:
            when = f"at the reset of an evaluation's episode {episode + 1}"
            raise answers.blame(self.name, error, when) from None

    def step(self, actions: NDArray[Any]) -> None:
        for lane, episode in list(self.playing.items()):
            self.lengths[episode] += 1
            answer = self._ask(lane, episode, actions[lane])
            self.lengths[episode] += answer.steps - 1
            self.obs[lane] = answer.obs
            self.states.append(answer.obs)
            self.returns[episode] += answer.reward
            if answer.terminated or answer.truncated:
                self.told.append(infos.told(answer.info, self.keywords))
                del self.playing[lane]
                self._go_on(lane)

    def _ask(self, lane: int, episode: int, action: NDArray[Any]) -> answers.Answer:
        if 0 <= self.lengths[episode] - ENDLESS < self.action_repeat:
            warnings.warn(
                f"an episode of {self.name} goes on after {ENDLESS:,} steps of an evaluation: if "
                "it never ends, give the task a time limit, max_episode_steps",
                stacklevel=2,
            )
        try:
            return answers.step(self.lanes[lane], action, self.size)
        except UnusableError as error:
            when = f"at step {self.lengths[episode]} of an evaluation's episode {episode + 1}"
            raise answers.blame(self.name, error, when) from None

    def _go_on(self, lane: int) -> None:
        if self.begun < self.episodes:
            self.playing[lane] = self.begun
            self.obs[lane] = self._begin(lane, self.begun)
            self.begun += 1


def _picture(env: Env, name: str) -> Any:
    try:
        return env.render()
    except NotImplementedError:
        raise UserError(f"{name} does not render: no video can be made of it") from None
