"""The classes that one imports: one for each agent that has a name of its own there."""

import re
from typing import ClassVar

from adac.core import presets
from adac.core.agent import Agent
from adac.sb3.algorithm import Algorithm


class ADAC(Algorithm):
    """ADAC on TD3, or any agent by its name: `agent="adac-sac"`."""

    default_agent: ClassVar[str | Agent] = presets.DEFAULT


class TD3(Algorithm):
    """adac's TD3, with the name and the arguments of Stable-Baselines3's."""

    default_agent: ClassVar[str | Agent] = "td3"


class SAC(Algorithm):
    """adac's SAC, with the name and the arguments of Stable-Baselines3's."""

    default_agent: ClassVar[str | Agent] = "sac"


class DDPG(Algorithm):
    """adac's DDPG, with the name and the arguments of Stable-Baselines3's."""

    default_agent: ClassVar[str | Agent] = "ddpg"


def agent_class(agent: str | Agent, name: str | None = None) -> type[Algorithm]:
    """A class whose agent is this one: for programs that want a class, as RL Zoo does."""
    if isinstance(agent, str):
        presets.make(agent)
    words = re.findall(r"[A-Za-z0-9]+", agent if isinstance(agent, str) else "custom")
    return type(name or "_".join(words).upper(), (Algorithm,), {"default_agent": agent})
