"""What Stable-Baselines3 calls a policy: an agent's networks, and how they act.

It is a `torch.nn.Module` by its type only: the numbers live in JAX, and tensors are made of them
where somebody asks for some.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from adac.core import settings
from adac.core.agent import Agent
from adac.core.explorers import StateDependentNoise
from adac.core.normalise import normalise
from adac.sb3 import files
from adac.sb3.files import FilePath
from adac.sb3.observations import Edge, Floats
from adac.sb3.parameters import OPTIMIZERS, POLICY, Tensors, tensors, with_tensors
from adac.sb3.rates import program_of
from adac.training.behaviour import sample
from adac.training.compiled import RunningAgent
from adac.training.environments import Scaling
from adac.training.loop import INIT, PREDICT, run_keys


class AgentPolicy(BasePolicy):
    """MlpPolicy and MultiInputPolicy: observations of any kind are flattened before they are read.

    `predict(deterministic=True)` is the target policy π with the weights that learn, as there;
    False is the behaviour policy μ.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Box,
        lr_schedule: Any = None,
        **policy_kwargs: Any,
    ):
        super().__init__(observation_space, action_space, squash_output=True)
        self.edge = Edge(observation_space, policy_kwargs.get("normalize_images", True))
        low, high = action_space.low, action_space.high
        self.scaling = Scaling(low, high, (high - low) / 2)
        self.running: RunningAgent
        self.critic = Critics(self)
        self._predictions = 0
        self.noise_is_old = True  # gSDE's: a new matrix is due

    def begin(self, agent: Agent, seed: int, *, scheduled: bool = False) -> None:
        """Networks of their own, as a `Learner` of this seed starts with."""
        self.agent, self.seed, self.keys = agent, seed, run_keys(seed)
        action_dim = int(np.prod(self.action_space.shape))
        program = program_of(agent, self.edge.size, action_dim, scheduled=scheduled)
        self.running = RunningAgent(program, self.keys[INIT])

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions in the task's units for one observation or a batch of them, and `state`."""
        self.set_training_mode(False)
        if isinstance(observation, tuple):
            raise ValueError(
                "an observation is not a tuple: you are mixing Gym API, obs, info = env.reset(), "
                "with that of a VecEnv, obs = env.reset()"
            )
        rows, several = self.edge(observation)
        if deterministic:
            action = np.asarray(self.running.online(rows))
        else:
            self._predictions += 1
            key = self.keys[PREDICT]
            action, state = sample(self.running, rows, state, episode_start, key, self._predictions)
        actions = self.to_task(action)
        return (actions if several else actions[0]), state

    def to_task(self, action: Floats) -> NDArray[Any]:
        """From [-1, 1], [n, d], to the task's units and shape."""
        shape = (len(action), *(self.action_space.shape or ()))
        return self.scaling.to_task(action.reshape(shape))

    def forward(self, obs: Any, deterministic: bool = True) -> torch.Tensor:
        """Tensors to tensors, in [-1, 1]: π(s)."""
        return torch.as_tensor(np.array(self.running.online(self.edge.of_buffer(obs))))

    def _predict(self, observation: Any, deterministic: bool = False) -> torch.Tensor:
        return self.forward(observation, deterministic)

    @property
    def actor(self) -> "AgentPolicy":
        """Who acts: one network is read by π and μ, so this is the policy itself."""
        return self

    @property
    def uses_sde(self) -> bool:
        return isinstance(self.agent.explorer, StateDependentNoise)

    def reset_noise(self, batch_size: int = 1) -> None:
        """A new matrix of gSDE's, for every environment."""
        self.noise_is_old = True

    def get_std(self) -> torch.Tensor:
        """gSDE's σ, which is not learned here."""
        explorer = self.agent.explorer
        assert isinstance(explorer, StateDependentNoise), "use_sde=True gives a policy its noise"
        return torch.tensor(explorer.weight_noise)

    def state_dict(self, *args: Any, **kwargs: Any) -> Tensors:
        """Every network's weights; copies."""
        return tensors(self.running.state, POLICY)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> None:
        self.set_group(POLICY, state_dict, strict=strict)

    def optimizer_dict(self) -> Tensors:
        """The rest of what is learned: optimisers, temperature, a bonus's own networks."""
        return tensors(self.running.state, OPTIMIZERS)

    def set_group(self, group: str, new: Mapping[str, Any], *, strict: bool) -> None:
        self.running.state = with_tensors(self.running.state, group, new, strict=strict)

    def parameters_to_vector(self) -> NDArray[np.float32]:
        return np.concatenate([np.ravel(t.numpy()) for t in self.state_dict().values()])

    def load_from_vector(self, vector: NDArray[Any]) -> None:
        own = self.state_dict()
        ends = np.cumsum([tensor.numel() for tensor in own.values()])
        parts = np.split(np.asarray(vector, np.float32), ends[:-1])
        pairs = zip(own.items(), parts, strict=True)
        self.load_state_dict({name: part.reshape(old.shape) for (name, old), part in pairs})

    def save(self, path: FilePath) -> None:
        """The policy alone, in the same safe format as a model."""
        facts = {"agent": settings.to_json(self.agent), "seed": self.seed} | files.spaces_of(self)
        files.write(path, facts, files.flat({"agent": self.running.state}), suffix="zip")

    @classmethod
    def load(cls, path: FilePath, device: Any = "auto") -> "AgentPolicy":
        facts, arrays = files.read(path, suffix="zip")
        files.require_facts(facts, "agent", "seed", *files.SPACES)
        policy = cls(*files.read_spaces(facts))
        agent = settings.from_json(facts["agent"])
        files.require_state(agent, policy.edge.size, policy.action_space, arrays)
        policy.begin(agent, files.counted(facts, "seed", files.MOST_SEED))
        policy.running.state = files.unflat(policy.running.state, arrays)
        return policy


class Critics:
    """The task's critics as one function of tensors: (s, a) → one [n, 1] for each."""

    def __init__(self, policy: AgentPolicy):
        self._policy = policy

    def __call__(self, obs: Any, actions: Any) -> tuple[torch.Tensor, ...]:
        policy = self._policy
        state = policy.running.state
        rows = normalise(state.statistics, jnp.asarray(policy.edge.of_buffer(obs)))
        action = jnp.asarray(torch.as_tensor(actions).detach().cpu().numpy())
        found = [policy.agent.critic.at(net, rows)(action) for net in state.critic.params[0]]
        return tuple(torch.as_tensor(np.array(q).reshape(-1, 1)) for q in found)
