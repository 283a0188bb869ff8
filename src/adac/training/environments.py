"""The environments of a run: scaled actions, seeded episodes, and a way back into a half-done one.

Each episode is reset with a seed derived from the run's seed, the environment's index and the
episode's number. With the actions since, that is enough to stand in the same place again.
"""

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adac import envs as tasks
from adac.errors import UserError
from adac.training import answers, infos
from adac.training.answers import Answer, Env, Floats, UnusableError


class Episode(NamedTuple):
    """A finished episode."""

    total: float
    length: int  # in environment steps
    bonus: float = 0.0  # the intrinsic reward collected in it
    told: infos.Told = {}  # noqa: RUF012  # by its last `info`


class Step(NamedTuple):
    reward: Floats  # [N]
    continues: Floats  # [N], 0 only after a termination
    next_obs: Floats  # [N, o], the last observation of an episode where it ended, never a reset's
    finished: list[Episode]


class Scaling(NamedTuple):
    """The task's action bounds; inside, actions are in [-1, 1]."""

    low: NDArray[Any]
    high: NDArray[Any]
    half: NDArray[Any]  # of the range

    def to_task(self, action: NDArray[Any]) -> NDArray[Any]:
        scaled = self.low + (action.astype(self.low.dtype) + 1) * self.half
        clipped: NDArray[Any] = np.minimum(np.maximum(scaled, self.low), self.high)
        return clipped

    def from_task(self, action: NDArray[Any]) -> NDArray[Any]:
        """Back to [-1, 1]; 0 where there is nothing to choose."""
        free = self.half > 0
        return np.where(free, (action - self.low) / np.where(free, self.half, 1) - 1, 0)


def check_spaces(env: Env, name: str) -> Scaling:
    """Refuse what the agents cannot learn on, naming what helps."""
    if hasattr(env, "num_envs") and not isinstance(env, gymnasium.Env):
        raise UserError(
            f"{name} is several environments in one: pass the id of the task, and num_envs"
        )
    obs, action = env.observation_space, env.action_space
    if not isinstance(action, gymnasium.spaces.Box):
        raise UserError(
            f"{name} has the action space {action}, but adac learns continuous actions: "
            "choose a task with a Box action space, or use gymnasium.wrappers.TransformAction"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        half = (action.high - action.low) / 2
    if not np.isfinite(half).all():
        raise UserError(
            f"{name} has an unbounded action space {action}: bound it with "
            "gymnasium.wrappers.TransformAction and a finite Box"
        )
    if len(action.shape) != 1 or not np.issubdtype(action.dtype, np.floating):
        raise UserError(
            f"{name} has the action space {action}, but a flat Box of floats is needed: "
            "wrap it in gymnasium.wrappers.TransformAction"
        )
    tasks.require_flattenable(obs, name)
    try:
        seen = gymnasium.spaces.flatten_space(obs).shape or ()
    except ValueError:  # a Dict or a Tuple with nothing in it
        seen = (0,)
    if 0 in (*action.shape, *seen):
        raise UserError(f"{name} has an empty observation or action space: {obs}, {action}")
    return Scaling(action.low, action.high, half)


EVALUATION = 1  # the domain of evaluation's seeds: no environment of a run has this number


def episode_seed(*numbers: int) -> int:
    """A seed from the run's seed and what it is for; 31 bits, because simulators want an int."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


class Environments:
    """N environments side by side, stepped as one; reset rows never leave it.

    A plain loop, because Gymnasium's SyncVectorEnv takes longer (docs/performance.md).
    """

    def __init__(self, envs: Sequence[Env], name: str, seed: int, model: Env | None = None):
        model = envs[0] if model is None else model
        self.name = name
        self.seed = seed
        self.scaling = check_spaces(model, name)
        self.observation_space = model.observation_space  # the task's own
        self.model = tasks.flattened(model)  # to look at: one of them, or like those elsewhere
        self.envs = [tasks.flattened(env) for env in envs]
        self._elsewhere = [env for env in envs if isinstance(env, tasks.Remote)]
        self.action_repeat = tasks.action_repeat_of(model)
        count = len(envs)
        self.steps = 0
        self.episodes = np.zeros(count, np.int64)  # the number of each environment's episode
        self.actions: list[list[NDArray[Any]]] = [[] for _ in envs]  # since its reset
        self.returns = np.zeros(count)
        self.lengths = np.zeros(count, np.int64)  # of the episodes so far, in environment steps
        self.first = np.ones(count, bool)
        self.obs: Floats = np.zeros((count, self.obs_dim), np.float32)
        self.infos: Sequence[Mapping[str, Any]] = [{} for _ in envs]  # of the latest step
        self.keywords: tuple[str, ...] = ()  # of `info` that are wanted of each episode
        self._missed: set[str] = set()

    @property
    def num_envs(self) -> int:
        return len(self.envs)

    @property
    def obs_dim(self) -> int:
        shape = self.envs[0].observation_space.shape
        assert shape is not None
        return int(shape[0])

    @property
    def action_dim(self) -> int:
        return len(self.scaling.low)

    def begin(self) -> None:
        self._open()
        self.obs = np.array([self._reset(i) for i in range(self.num_envs)])

    def _open(self) -> None:
        for env in self._elsewhere:  # all of them before the first is waited for
            env.open()

    def _reset(self, i: int) -> Floats:
        try:
            return answers.reset(self.envs[i], self._seed(i), self.obs_dim)
        except UnusableError as error:
            raise answers.blame(self.name, error, f"at the reset after step {self.steps}") from None

    def _seed(self, i: int) -> int:
        place = i if i < EVALUATION else i + 1
        return episode_seed(self.seed, place, int(self.episodes[i]))

    @property
    def stride(self) -> int:
        """Environment steps that one step of all of them takes."""
        return self.num_envs * self.action_repeat

    def step(self, action: Floats) -> Step:
        """Act [N, d] in [-1, 1]; afterwards `obs` and `first` are those of the next step."""
        scaled = self.scaling.to_task(action)
        step = self.steps + self.stride
        for env, one in zip(self._elsewhere, scaled, strict=False):
            env.start(one)  # all of them at once
        taken = [self._ask(env, one, step) for env, one in zip(self.envs, scaled, strict=True)]
        obs, rewards, terminated, truncated, counts, self.infos = zip(*taken, strict=True)
        next_obs, reward = np.array(obs), np.array(rewards)
        self.steps += sum(counts)
        self.lengths += counts
        self.returns += reward
        for log, one in zip(self.actions, scaled, strict=True):
            log.append(one)
        continues = np.array([not end for end in terminated], np.float32)
        done = np.array([a or b for a, b in zip(terminated, truncated, strict=True)], bool)
        self.obs, self.first = next_obs, done
        finished = self._restart(done) if done.any() else []
        return Step(reward.astype(np.float32), continues, next_obs, finished)

    def _ask(self, env: Env, action: NDArray[Any], step: int) -> Answer:
        try:  # a copy, because a task may change what it is given
            return answers.step(env, action.copy(), self.obs_dim)
        except UnusableError as error:
            raise answers.blame(self.name, error, f"at step {step}") from None

    def _restart(self, done: NDArray[np.bool_]) -> list[Episode]:
        finished, obs = [], self.obs.copy()
        for i in map(int, np.flatnonzero(done)):
            told = infos.told(self.infos[i], self.keywords)
            self._miss(told, self.infos[i])
            finished.append(Episode(float(self.returns[i]), int(self.lengths[i]), told=told))
            self.actions[i] = []
            self.returns[i], self.lengths[i] = 0.0, 0
            self.episodes[i] += 1
            obs[i] = self._reset(i)
        self.obs = obs
        return finished

    def _miss(self, told: infos.Told, info: Mapping[str, Any]) -> None:
        """Say once that a keyword is not there."""
        absent = {name for name in self.keywords if infos.column(name) not in told} - self._missed
        self._missed |= absent
        if absent:
            warnings.warn(
                f"the info of {self.name} has no number '{min(absent)}' at an episode's end; it "
                f"has {', '.join(sorted(map(str, info))) or 'nothing'}",
                stacklevel=2,
            )

    def snapshot(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays: dict[str, NDArray[Any]] = {"obs": self.obs, "first": self.first}
        for i, log in enumerate(self.actions):
            dtype = self.scaling.low.dtype
            arrays[f"actions.{i}"] = np.array(log, dtype).reshape(len(log), self.action_dim)
        facts = {
            "steps": self.steps,
            "episodes": self.episodes.tolist(),
            "returns": self.returns.tolist(),
            "lengths": self.lengths.tolist(),
        }
        return arrays, facts

    def restore(self, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> list[str]:
        """Stand where the snapshot was taken; returns a warning for each place not found again."""
        count, width = self.num_envs, self.action_dim
        self.steps = int(facts["steps"])
        self.episodes = np.array(facts["episodes"], np.int64)
        self.returns = np.array(facts["returns"], float)
        self.first = arrays["first"].astype(bool)
        self.obs = np.array(arrays["obs"], np.float32)
        logs = [arrays[f"actions.{i}"] for i in range(count)]
        lengths = facts.get("lengths", [len(log) for log in logs])  # as it once was
        self.lengths = np.array(lengths, np.int64)
        shapes = [a.shape for a in (self.episodes, self.returns, self.lengths, self.first)]
        if shapes != [(count,)] * 4 or self.obs.shape != (count, self.obs_dim):
            raise ValueError("its unfinished episodes are those of other environments")
        if (self.episodes < 0).any() or any(a.shape[1:] != (width,) for a in logs):
            raise ValueError("its unfinished episodes are not as they were written")
        self.actions = [list(log.astype(self.scaling.low.dtype)) for log in logs]
        self._open()
        return [
            self._abandon(i)
            for i in range(count)
            if not np.array_equal(self._replay(i), self.obs[i])
        ]

    def _replay(self, i: int) -> Floats:
        obs = self._reset(i)
        for action in self.actions[i]:
            obs = self._ask(self.envs[i], action, self.steps).obs
        return obs

    def _abandon(self, i: int) -> str:
        lost = len(self.actions[i])
        self.episodes[i] += 1
        self.actions[i], self.returns[i], self.first[i] = [], 0.0, True
        self.lengths[i] = 0
        self.obs[i] = self._replay(i)
        return (
            f"replaying the {lost} steps of the unfinished episode led elsewhere: this is not the "
            f"environment that the run was trained in, or {self.name} is not deterministic; a new "
            "episode starts, and the run differs from an uninterrupted one"
        )

    def close(self) -> None:
        for env in [*self.envs, self.model]:
            with contextlib.suppress(Exception):
                env.close()
