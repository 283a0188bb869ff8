"""An agent as an off-policy algorithm of Stable-Baselines3: its loop, our learning."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import ConstantSchedule
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from adac.core import presets
from adac.core.agent import Agent
from adac.core.bases import SAC, Temperature
from adac.errors import RunError, UserError
from adac.sb3 import buffers, saving
from adac.sb3.acting import Acting
from adac.sb3.arguments import (
    Exploration,
    begin,
    mirrored,
    updates_each,
    with_arguments,
    with_attributes,
)
from adac.sb3.files import FilePath
from adac.sb3.parameters import OPTIMIZERS, POLICY
from adac.sb3.policy import AgentPolicy
from adac.sb3.rates import ScheduledProgram
from adac.training import compilation_cache as cache
from adac.training.loop import UPDATE
from adac.training.memory import require_fitting


class Algorithm(OffPolicyAlgorithm):
    """Any agent of adac's, with the arguments of Stable-Baselines3's TD3 and SAC.

    `agent` is a name (`adac list agents`) or an `Agent`. What is left out is as the agent has it;
    settings that only adac knows go by their names, too: `particles=16`.
    """

    default_agent: ClassVar[str | Agent] = presets.DEFAULT
    policy_aliases: ClassVar[dict[str, type[Any]]] = {
        "MlpPolicy": AgentPolicy, "MultiInputPolicy": AgentPolicy,
    }  # fmt: skip
    policy: AgentPolicy

    def __init__(
        self,
        policy: str | type[AgentPolicy],
        env: Any,
        learning_rate: Any = None,
        buffer_size: int | None = None,
        learning_starts: int | None = None,
        batch_size: int | None = None,
        tau: float | None = None,
        gamma: float | None = None,
        train_freq: int | tuple[int, str] = 1,
        gradient_steps: int | None = None,
        action_noise: Any = None,
        replay_buffer_class: Any = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int | None = None,
        *,
        agent: str | Agent | None = None,
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        use_sde_at_warmup: bool = False,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: Any = "cpu",
        _init_setup_model: bool = True,
        **settings: Any,
    ):
        given = {
            "learning_rate": learning_rate, "buffer_size": buffer_size,
            "learning_starts": learning_starts, "batch_size": batch_size, "tau": tau,
            "gamma": gamma, "n_steps": n_steps, **settings,
        }  # fmt: skip
        self.agent = with_arguments(
            begin(self.default_agent if agent is None else agent),
            given,
            policy_kwargs or {},
            Exploration(action_noise, use_sde, sde_sample_freq, use_sde_at_warmup),
        )
        rate = mirrored(self.agent, "learning_rate") if learning_rate is None else learning_rate
        super().__init__(
            policy,
            env,
            rate,
            *(mirrored(self.agent, n) for n in ("buffer_size", "learning_starts", "batch_size")),
            *(mirrored(self.agent, n) for n in ("tau", "gamma")),
            train_freq=train_freq,
            gradient_steps=updates_each(self.agent) if gradient_steps is None else gradient_steps,
            action_noise=action_noise,
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            n_steps=self.agent.n_steps,
            policy_kwargs=policy_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            seed=seed,
            use_sde=use_sde,
            sde_sample_freq=sde_sample_freq,
            use_sde_at_warmup=use_sde_at_warmup,
            sde_support=False,
            supported_action_spaces=(spaces.Box,),
            support_multi_env=True,
        )
        if _init_setup_model:
            self._setup_model()

    def _get_policy_from_name(self, policy_name: str) -> type[Any]:
        if policy_name == "CnnPolicy":
            raise UserError(
                "adac has no convolutional networks: choose MlpPolicy, and a task whose "
                "observations are the state"
            )
        return super()._get_policy_from_name(policy_name)  # type: ignore[no-any-return]

    def _setup_model(self) -> None:
        if not (isinstance(self.policy_class, type) and issubclass(self.policy_class, AgentPolicy)):
            raise UserError(
                f"policy must be 'MlpPolicy' or 'MultiInputPolicy', not {self.policy_class}: a "
                "PyTorch policy has no part in what adac learns"
            )
        cache.enable()
        super()._setup_model()
        self.policy.edge.warn_of_pictures()
        self.agent = with_attributes(self.agent, vars(self))
        require_fitting("batch_size", self.agent.batch_size, 2 * self.policy.edge.size)
        if self.agent.n_steps > self.agent.replay_size:
            raise UserError(
                f"n_steps = {self.agent.n_steps:,} is more than the buffer's "
                f"{self.agent.replay_size:,}"
            )
        if self.agent.n_steps > 1:  # Stable-Baselines3 takes all of them for each of a batch
            require_fitting("n_steps", self.agent.n_steps, 8 * self.agent.batch_size)
        own_seed = np.random.randint(2**31) if self.seed is None else self.seed  # noqa: NPY002
        self.policy.begin(self.agent, own_seed, scheduled=self._scheduled)
        self.acting = Acting(self.policy, self.n_envs)

    @property
    def _scheduled(self) -> bool:
        return not isinstance(self.lr_schedule.value_schedule, ConstantSchedule)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """μ's action in the task's units, and in [-1, 1] for the buffer."""
        obs, _ = self.policy.edge(self._last_obs)
        scaled = self.acting(obs, self._last_episode_starts, self.num_timesteps)
        scaled = scaled.reshape((n_envs, *self.action_space.shape))
        if action_noise is not None:
            scaled = np.clip(scaled + action_noise(), -1.0, 1.0)
        return self.policy.scaling.to_task(scaled), scaled

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: NDArray[Any],
        new_obs: Any,
        reward: NDArray[Any],
        dones: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        if self.acting.watches:
            edge, count = self.policy.edge, len(dones)
            after = edge(_last_of_episodes(new_obs, dones, infos))[0]
            action = buffer_action.reshape(count, -1)
            self.acting.saw(edge(self._last_obs)[0], action, reward, after, dones)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._last_episode_starts = dones

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """`gradient_steps` updates; XLA computes them while the environment goes on."""
        self.policy.set_training_mode(True)
        rate = self.lr_schedule(self._current_progress_remaining)
        running = self.policy.running
        if isinstance(running.program, ScheduledProgram):
            running.program.rate = rate
        progress = np.float32(np.clip(1.0 - self._current_progress_remaining, 0.0, 1.0))
        for _ in range(gradient_steps):
            self._n_updates += 1
            running.update(
                self._draw(batch_size),
                self.policy.keys[UPDATE],
                np.int32(self._n_updates),
                progress,
                improve=self._n_updates % self.agent.base.policy_delay == 0,
            )
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/learning_rate", rate)

    def _draw(self, batch_size: int) -> NDArray[np.float32]:
        """A minibatch of the buffer, as VecNormalize shows it today."""
        program = self.policy.running.program
        sample = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
        return buffers.rows_of(sample, self.policy.edge, program, self.gamma)

    def dump_logs(self) -> None:
        """What the latest update reported is waited for only here."""
        for name, value in self.policy.running.metrics.items():
            if not np.isfinite(value):
                raise RunError(
                    f"{name} is {value} at step {self.num_timesteps}: learning has diverged; "
                    "a smaller learning rate or reward scale may help"
                )
            self.logger.record(f"train/{name}", float(value))
        super().dump_logs()

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> "Algorithm":
        """Train for so many more environment steps."""
        name = type(self).__name__ if tb_log_name is None else tb_log_name
        super().learn(
            int(total_timesteps), callback, log_interval, name, reset_num_timesteps, progress_bar
        )
        return self

    @property
    def actor(self) -> AgentPolicy:
        return self.policy.actor

    @property
    def critic(self) -> Any:
        return self.policy.critic

    @property
    def log_ent_coef(self) -> torch.Tensor | None:
        """The logarithm of a learned temperature; None of a fixed one, or of none."""
        aux, base = self.policy.running.state.aux, self.agent.base
        learned = isinstance(aux, Temperature) and isinstance(base, SAC) and base.temperature_lr > 0
        return torch.as_tensor(np.array(aux.log_alpha)) if learned else None

    @property
    def ent_coef_tensor(self) -> torch.Tensor:
        """The temperature."""
        return torch.as_tensor(np.exp(self.policy.running.state.aux.log_alpha))

    def get_parameters(self) -> dict[str, dict[str, Any]]:
        """Named tensors: the networks' weights, and what learning remembers beside them."""
        return {POLICY: self.policy.state_dict(), OPTIMIZERS: self.policy.optimizer_dict()}

    def set_parameters(
        self,
        load_path_or_dict: FilePath | Mapping[str, Any],
        exact_match: bool = True,
        device: Any = "auto",
    ) -> None:
        """From `get_parameters`, or from a file of `save`."""
        if not isinstance(load_path_or_dict, Mapping):
            saving.set_state(self, load_path_or_dict)
            return
        groups = (POLICY, OPTIMIZERS)
        unknown = sorted(load_path_or_dict.keys() - set(groups))
        if unknown or (exact_match and len(load_path_or_dict) < len(groups)):
            raise ValueError(f"parameters are of {groups}, not of {tuple(load_path_or_dict)}")
        for group, new in load_path_or_dict.items():
            self.policy.set_group(group, new, strict=exact_match)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return [POLICY, OPTIMIZERS], []

    def save(
        self,
        path: FilePath,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """A zip of JSON and safetensors: everything but the replay buffer."""
        saving.save(self, path, frozenset(exclude or ()) - frozenset(include or ()))

    @classmethod
    def load(
        cls,
        path: FilePath,
        env: Any = None,
        device: Any = "cpu",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> "Algorithm":
        """A model of `save`; no code in the file is run. `kwargs` change settings."""
        return saving.load(cls, path, env, device, custom_objects or {}, force_reset, kwargs)

    def save_replay_buffer(self, path: FilePath) -> None:
        """The same safe format; Stable-Baselines3's own is a pickle."""
        assert self.replay_buffer is not None, "there is no replay buffer"
        buffers.save(path, self.replay_buffer)

    def load_replay_buffer(self, path: FilePath, truncate_last_traj: bool = True) -> None:
        self.replay_buffer = self._empty_buffer()
        buffers.load(path, self.replay_buffer)
        self.replay_buffer.device = self.device
        if truncate_last_traj and isinstance(self.replay_buffer, HerReplayBuffer):
            self.replay_buffer.truncate_last_trajectory()

    def _empty_buffer(self) -> Any:
        kwargs = dict(self.replay_buffer_kwargs)
        if issubclass(self.replay_buffer_class, HerReplayBuffer):
            assert self.env is not None, "a HerReplayBuffer needs the environment: set_env first"
            kwargs["env"] = self.env
        return self.replay_buffer_class(
            self.buffer_size,
            self.observation_space,
            self.action_space,
            device=self.device,
            n_envs=self.n_envs,
            optimize_memory_usage=self.optimize_memory_usage,
            **kwargs,
        )


def _last_of_episodes(new_obs: Any, dones: NDArray[Any], infos: list[dict[str, Any]]) -> Any:
    """What a step led to: a VecEnv has begun the next episode where one is over."""
    keyed = isinstance(new_obs, dict)
    seen = {k: v.copy() for k, v in new_obs.items()} if keyed else new_obs.copy()
    for i in np.flatnonzero(dones):
        last = infos[i].get("terminal_observation")
        if last is None:
            continue
        if keyed:
            for name in seen:
                seen[name][i] = last[name]
        else:
            seen[i] = last
    return seen
