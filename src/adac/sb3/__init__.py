"""adac's agents as classes of Stable-Baselines3 (extra `sb3`).

    from adac.sb3 import ADAC

    model = ADAC("MlpPolicy", "Pendulum-v1", verbose=1).learn(20_000)

They are off-policy algorithms there, with its callbacks, vector environments, buffers and loggers;
what they learn with is `adac.core.agent.update`.
"""

from adac.errors import missing_extra

try:
    import stable_baselines3 as _  # noqa: F401
except ImportError:
    raise missing_extra("adac.sb3", "sb3") from None

from adac.sb3.algorithm import Algorithm
from adac.sb3.classes import ADAC, DDPG, SAC, TD3, agent_class
from adac.sb3.policy import AgentPolicy

__all__ = ["ADAC", "DDPG", "SAC", "TD3", "AgentPolicy", "Algorithm", "agent_class"]
