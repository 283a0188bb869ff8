"""The target policy alone: loaded without the replay buffer, asked without JAX."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from adac import envs
from adac.core import agent as core
from adac.core import explorers, settings
from adac.core.agent import Agent, AgentState
from adac.core.plain import NotPlainPolicyError, PlainPolicy, plain
from adac.errors import UserError
from adac.runs.checkpoint import Store, unflatten
from adac.runs.export.facts import Facts
from adac.runs.export.policy_file import read_policy, write_policy
from adac.runs.files import refuse_links
from adac.runs.folder import BEST, read_config, require_essence
from adac.training import compilation_cache as cache
from adac.training.environments import Scaling, check_spaces
from adac.training.folders import task_settings
from adac.training.inputs import observations
from adac.training.source import EnvSource, Source


class TargetPolicy:
    """π of a run: `predict` as a Learner's, and nothing that learns. Called `adac.Policy` outside.

    `observation_space` is the task's own; without it, observations are vectors.
    """

    def __init__(
        self,
        plain: PlainPolicy,
        facts: Facts,
        observation_space: gymnasium.Space[Any] | None = None,
    ):
        self.plain, self.facts = plain, facts
        vector = gymnasium.spaces.Box(-np.inf, np.inf, (plain.obs_dim,), np.float32)
        self.observation_space = vector if observation_space is None else observation_space
        size = gymnasium.spaces.flatdim(self.observation_space)
        if size != plain.obs_dim:
            raise UserError(
                f"the policy reads {plain.obs_dim} numbers, but {self.observation_space} has "
                f"{size}: pass the observation_space of {facts.env}"
            )

    @classmethod
    def of(
        cls,
        agent: Agent,
        policy: explorers.Policy,
        scaling: Scaling,
        facts: Facts,
        observation_space: gymnasium.Space[Any],
    ) -> "TargetPolicy":
        try:
            numbers = plain(agent, policy, scaling.low, scaling.high)
        except NotPlainPolicyError as error:
            raise UserError(f"the policy of {facts.agent} cannot be exported: {error}") from None
        return cls(numbers, facts, observation_space)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.float32], Any]:
        """Actions in the task's units for one observation or a batch of them, and `state`."""
        if not deterministic:
            raise UserError(
                "a policy file holds the target policy alone: say deterministic=True, or load the "
                "whole run with adac.Learner.load"
            )
        obs, several = observations(observation, self.observation_space)
        action = self.plain(obs)
        return (action if several else action[0]), state

    def worth(self, mean_return: float) -> "TargetPolicy":
        """The same, with what an evaluation of it returned."""
        facts = replace(self.facts, mean_return=mean_return)
        return TargetPolicy(self.plain, facts, self.observation_space)

    def save(self, file: str | Path) -> None:
        """One small file, of safetensors."""
        write_policy(self.plain, self.facts, Path(file))

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        best: bool = False,
        env: EnvSource | None = None,
        agent: Agent | None = None,
        observation_space: gymnasium.Space[Any] | None = None,
    ) -> "TargetPolicy":
        """From a file of `save`, or from a run folder: its last checkpoint, or its best evaluation.

        A run on an environment of your own needs `env`, and one with classes of your own `agent`,
        as in `Learner.load`. A file's observations are vectors unless you pass the task's
        `observation_space`.
        """
        source = Path(source)
        if not source.exists():
            raise UserError(f"{source} does not exist: name a run folder or a policy file")
        if not source.is_dir():
            if best:
                raise UserError(f"{source} is one policy: `best` goes with a run folder")
            return cls(*read_policy(source), observation_space)
        if best:
            return cls(*read_policy(best_file(source)), observation_space)
        return _last(cls, source, env, agent)


def best_file(folder: Path) -> Path:
    """Of a run that was trained with save_best."""
    path = folder / BEST
    refuse_links(folder)
    if not path.is_file():
        raise UserError(f"{folder} has no best policy: train with --save-best, or use the last one")
    return path


def _last(
    kind: type[TargetPolicy], folder: Path, env: EnvSource | None, like: Agent | None
) -> TargetPolicy:
    cache.enable()
    config = read_config(folder)
    kwargs = task_settings(folder, config, given=env is not None)
    source = Source(config["env"] if env is None else env, kwargs)
    task = source.made[0] if source.made else source.make()
    try:
        scaling, space = check_spaces(task, config["env"]), task.observation_space
    finally:
        if task is not env:
            task.close()
    agent = settings.from_json(config["agent"], like=like)
    contents = Store(folder / "checkpoint").load(None)
    require_essence(folder, config, contents.facts.get("config"))
    begin = partial(core.init, agent, gymnasium.spaces.flatdim(space), len(scaling.low))
    shape = jax.eval_shape(begin, jax.random.key(0))
    actor = shape.actor._replace(opts=())
    needed = AgentState(actor, (), (), (), (), shape.statistics)  # type: ignore[arg-type]
    state = unflatten({"agent": needed}, contents.arrays)["agent"]
    flat = not envs.is_vector(space)
    facts = Facts(config["env"], config["agent_name"], config["seed"], contents.step, flat)
    return kind.of(agent, core.target_policy(agent, state), scaling, facts, space)
