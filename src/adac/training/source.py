"""Where a run's environments come from: an id, what makes them, or some that are made already."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from gymnasium.vector import SyncVectorEnv, VectorEnv

from adac import envs
from adac.core.validation import named, whole
from adac.errors import UserError
from adac.training.answers import Env
from adac.training.environments import Environments, check_spaces
from adac.training.evaluation import SIDE_BY_SIDE
from adac.training.memory import require_countable

Factory = Callable[..., Env]  # a class is one
EnvSource = str | Env | Factory | Sequence[Env | Factory] | VectorEnv[Any, Any, Any]


class Source:
    """A task, and how one more of its environments is made, if that is known.

    `told`: `envs.make(id, **kwargs)` is all of it, as a run folder can say.
    """

    def __init__(self, env: EnvSource, kwargs: Mapping[str, Any] | None, name: str = "env"):
        self.kwargs = named("env_kwargs", kwargs)
        self.made: list[Env] = []
        self.factory: partial[Env] | None = None
        self.told = self.several = self.handed = False
        if isinstance(env, str):
            if env.endswith("Policy"):
                raise UserError(
                    f"{name} comes first, and there is no '{env}': Learner(env, agent), or "
                    "adac.sb3 for Stable-Baselines3's own signature"
                )
            self.id, self.told = env, True
            self.factory = partial(envs.make, env, **self.kwargs)
        elif _is_env(env):
            self._take([env])
        elif isinstance(env, SyncVectorEnv):
            self._take(list(env.envs))
        elif isinstance(env, VectorEnv) or hasattr(env, "num_envs"):
            raise UserError(
                f"{type(env).__name__} is several environments in one, which end and reset by "
                "themselves: pass the task's id or a function that makes one, with num_envs, and "
                "subprocesses=True to give each its own process"
            )
        elif isinstance(env, list | tuple) and env:
            self._take_list(list(env))
        elif callable(env):
            self._take_factory(env)
        else:
            raise UserError(
                f"{name} must be a task id, a Gymnasium environment, a function or class that "
                f"makes one, or a list of them; not {env!r}"
            )

    def _take(self, given: list[Env]) -> None:
        if self.kwargs:
            raise UserError("env_kwargs go with a task id or a function: this one is already made")
        if len({id(one.unwrapped) for one in given}) < len(given):
            raise UserError("a list of environments must hold different ones")
        found = [envs.describe(one) for one in given]
        same = all(one == found[0] for one in found)
        self.id, self.kwargs, self.told = found[0].id, found[0].kwargs, found[0].all and same
        self.made, self.several, self.handed = given, len(given) > 1, True
        if self.told:
            self.factory = partial(envs.make, self.id, **self.kwargs)

    def _take_list(self, given: list[Any]) -> None:
        if all(_is_env(one) for one in given):
            self._take(given)
        elif all(callable(one) for one in given):
            makers = [partial(one, **self.kwargs) for one in given]
            self._take_factory(given[0])
            self.made += [_made_by(maker) for maker in makers[1:]]
            self.several = len(given) > 1
        else:
            raise UserError(
                "a list must be of environments, or of functions that make them; of one task id, "
                "pass the id and num_envs"
            )

    def _take_factory(self, factory: Factory) -> None:
        """Its first environment says what the task is."""
        self.factory = partial(factory, **self.kwargs)
        self.made = [_made_by(self.factory)]
        found = envs.describe(self.made[0])
        self.id, self.told = found.id, found.all and not self.kwargs
        if self.told:
            self.kwargs = found.kwargs

    @property
    def is_factory(self) -> bool:
        """Whether a run folder cannot say it, but whoever loads it can hand it in again."""
        return self.factory is not None and not self.told

    def make(self, **more: Any) -> Env:
        self.require_makes("so another one cannot be made here: make it as you made that")
        assert self.factory is not None
        return _made_by(partial(self.factory, **more))

    def require_makes(self, advice: str) -> None:
        if self.factory is None:
            raise UserError(
                f"{self.id} was given as an environment with wrappers or settings that its id "
                f"does not tell, {advice}, or pass a function that makes it"
            )

    def take(self, count: int) -> list[Env]:
        """So many environments, those that were made first."""
        if self.several and count not in (1, len(self.made)):
            raise UserError(f"num_envs is {count}, but env is a list of {len(self.made)}")
        count = len(self.made) if self.several else count
        if count > 1 and self.factory is None and not self.several:
            raise UserError(
                "several environments at once need a task id or a function that makes one, not "
                "one environment"
            )
        made, self.made = self.made[:count], self.made[count:]
        return made + [self.make() for _ in range(count - len(made))]


def _made_by(factory: "partial[Env]") -> Env:
    try:
        env = factory()
    except TypeError as error:
        name = getattr(factory.func, "__name__", repr(factory.func))
        raise UserError(f"{name} makes no environment: {error}") from error
    if not _is_env(env):
        raise UserError(f"env must make a Gymnasium environment, and made {env!r}")
    return env


def _is_env(env: Any) -> TypeGuard[Env]:
    made = not isinstance(env, type) and hasattr(env, "reset") and hasattr(env, "action_space")
    return made and not hasattr(env, "num_envs")


class Tasks:
    """A learner's environments: those it trains in, and those it is evaluated in."""

    def __init__(
        self,
        env: EnvSource,
        kwargs: Mapping[str, Any] | None,
        eval_env: EnvSource | None,
        num_envs: int,
        *,
        subprocesses: bool,
    ):
        count = whole("num_envs", num_envs)
        require_countable(count, subprocesses=bool(subprocesses))
        self.source = Source(env, kwargs)
        self.subprocesses = bool(subprocesses)
        self._evaluation = None if eval_env is None else Source(eval_env, None, "eval_env")
        self._count = count
        self._lanes: list[Env] = []

    def training(self, seed: int) -> Environments:
        source = self.source
        if not self.subprocesses:
            environments = Environments(source.take(self._count), source.id, seed)
        else:
            environments = self._elsewhere(seed)
        if self._evaluation is not None:
            self._require_fitting(environments)
        return environments

    def _elsewhere(self, seed: int) -> Environments:
        """Each in a process of its own, and one here, which is only looked at."""
        source = self.source
        source.require_makes("so it cannot be made in a process of its own")
        assert source.factory is not None
        count = len(source.made) if source.several else self._count
        for spare in source.made[1:]:
            spare.close()
        model = source.made[0] if source.made else source.make()
        check_spaces(model, source.id)
        remotes = [envs.Remote(source.factory, model, source.id) for _ in range(count)]
        return Environments(remotes, source.id, seed, model)

    def _require_fitting(self, environments: Environments) -> None:
        """It plays other episodes of the same task, so it is another environment like the first."""
        assert self._evaluation is not None
        source = self._evaluation
        one = (source.made or [source.make()])[0]
        source.made = source.made or [one]
        if any(one.unwrapped is env.unwrapped for env in environments.envs):
            raise UserError("eval_env must be an environment of its own, not the one trained in")
        check_spaces(one, "eval_env")
        flat = envs.flattened(one)
        for name in ("observation_space", "action_space"):
            mine, other = getattr(environments.model, name), getattr(flat, name)
            if mine.shape != other.shape:
                raise UserError(f"eval_env has the {name} {other}, but the run has {mine}")

    def evaluation(self, episodes: int) -> list[Env]:
        """As many as play side by side; made when first needed, and kept."""
        source = self._evaluation or self.source
        if source is self._evaluation and source.handed:
            return source.made  # the caller's; it then plays alone
        self.require_evaluable()
        wanted = min(episodes, SIDE_BY_SIDE)
        while len(self._lanes) < wanted:
            own = source is self._evaluation and len(self._lanes) < len(source.made)
            self._lanes.append(source.made[len(self._lanes)] if own else source.make())
        return self._lanes[:wanted]

    @property
    def evaluable(self) -> bool:
        return self._evaluation is not None or self.source.factory is not None

    def require_evaluable(self) -> None:
        if self._evaluation is None:
            self.source.require_makes(
                "so evaluation needs one of its own: pass eval_env to Learner"
            )

    def close(self) -> None:
        mine = [] if self._evaluation is None else self._evaluation.made
        for env in {id(one): one for one in [*self._lanes, *mine]}.values():
            with contextlib.suppress(Exception):
                env.close()
