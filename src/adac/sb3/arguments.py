"""Stable-Baselines3's arguments as settings of an agent, through the table of synonyms."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor

from adac.core import presets
from adac.core.agent import Agent
from adac.core.bases import SAC
from adac.core.explorers import (
    ColouredNoise,
    GaussianNoise,
    OrnsteinUhlenbeck,
    OwnPolicy,
    RepeatedNoise,
    StateDependentNoise,
)
from adac.core.settings import names, override
from adac.core.synonyms import SEVERAL, SYNONYMS
from adac.errors import UserError

# Arguments of Stable-Baselines3 that are settings here and attributes there.
MIRRORED = (
    "learning_rate", "buffer_size", "learning_starts", "batch_size", "tau", "gamma", "n_steps",
)  # fmt: skip
NOISE = (GaussianNoise, OrnsteinUhlenbeck, ColouredNoise, RepeatedNoise)  # on the action of π
FOREVER = 10**9  # steps: gSDE's matrix stays until it is told to change
# What needs nothing here: a network's parts that adac's networks do not have.
WITHOUT_EFFECT = ("share_features_extractor", "features_extractor_kwargs", "clip_mean")
# Settings of adac's own buffer, which Stable-Baselines3's takes the place of; what to do instead.
OF_OUR_BUFFER = {
    "hindsight": "pass replay_buffer_class=HerReplayBuffer, whose n_sampled_goal it is",
    "priority_alpha": "train with adac.Learner, whose buffer can draw by priority",
    "priority_beta": "train with adac.Learner, whose buffer can draw by priority",
}
ELSEWHERE = ("normalize_images", "use_sde", "use_expln", "log_std_init")  # read where they matter


@dataclass(frozen=True)
class Exploration:
    """What Stable-Baselines3 says of exploration outside of an agent's settings."""

    action_noise: Any = None
    use_sde: bool = False
    sde_sample_freq: int = -1
    use_sde_at_warmup: bool = False


def mirrored(agent: Agent, name: str) -> Any:
    """The agent's value of an argument of Stable-Baselines3."""
    ours = SEVERAL.get(name, (SYNONYMS.get(name, name),))[-1]
    return names(agent)[ours]


def begin(agent: str | Agent) -> Agent:
    chosen = presets.make(agent) if isinstance(agent, str) else agent
    if not isinstance(chosen, Agent):
        raise UserError(f"agent must be a name (`adac list agents`) or an Agent, not {agent!r}")
    return chosen


def with_arguments(
    agent: Agent,
    given: Mapping[str, Any],
    policy_kwargs: Mapping[str, Any],
    exploration: Exploration,
) -> Agent:
    """The agent that these arguments describe; what is None is left as it is."""
    changed = {name: at_first(value) for name, value in given.items() if value is not None}
    _require_heeded({*changed, *policy_kwargs})
    if agent.priority_alpha > 0:
        remedy = OF_OUR_BUFFER["priority_alpha"]
        warnings.warn(f"this agent's priority_alpha has no effect here: {remedy}", stacklevel=4)
    temperature = {name: changed.pop(name) for name in ("ent_coef",) if name in changed}
    changed |= _entropy(changed)
    agent = override(agent, changed)
    agent = _with_networks(agent, policy_kwargs)
    agent = _with_exploration(agent, exploration, policy_kwargs)
    if "learning_rate" in changed and isinstance(agent.base, SAC):
        agent = override(agent, {"temperature_lr": changed["learning_rate"]})
    if agent.intrinsic is not None:  # the buffers there have no column for it
        agent = override(agent, {"fresh_bonus": True})
    return _with_temperature(agent, temperature.get("ent_coef", "auto"))


def _require_heeded(given: set[str]) -> None:
    for name in given:
        remedy = OF_OUR_BUFFER.get(SYNONYMS.get(name, name))
        if remedy is not None:
            raise UserError(f"{name} has no effect on Stable-Baselines3's buffers: {remedy}")


def updates_each(agent: Agent) -> int:
    """Updates after each step, of which there are whole numbers there."""
    updates = agent.updates_per_step
    if updates < 1 or updates != int(updates):
        raise UserError(
            f"updates_per_step = {updates:g} is no whole number of gradient steps: say train_freq "
            "and gradient_steps (an update in every second step is train_freq=2, gradient_steps=1)"
        )
    return int(updates)


def at_first(value: Any) -> Any:
    """A schedule's value at the start of the training; half-way, of one that starts at 0."""
    return float(value(1.0) or value(0.5)) if callable(value) else value


def with_attributes(agent: Agent, attributes: Mapping[str, Any]) -> Agent:
    """The agent after a program has set some of the mirrored attributes, as at a load."""
    new = {name: at_first(attributes[name]) for name in MIRRORED}
    changed = {name: value for name, value in new.items() if value != mirrored(agent, name)}
    learned = isinstance(agent.base, SAC) and agent.base.temperature_lr > 0
    if learned and "learning_rate" in changed:
        changed["temperature_lr"] = changed["learning_rate"]
    return override(agent, changed)


def _entropy(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"target_entropy": None} if given.get("target_entropy") == "auto" else {}


def _with_temperature(agent: Agent, ent_coef: Any) -> Agent:
    """A number is a fixed temperature; "auto" and "auto_0.1" are where a learned one begins."""
    if ent_coef == "auto":
        return agent
    if isinstance(ent_coef, str):
        _, _, start = ent_coef.partition("_")
        return override(agent, {"ent_coef": start})
    return override(agent, {"ent_coef": ent_coef, "temperature_lr": 0.0})


def _with_networks(agent: Agent, policy_kwargs: Mapping[str, Any]) -> Agent:
    rest = {k: v for k, v in policy_kwargs.items() if k not in (*WITHOUT_EFFECT, *ELSEWHERE)}
    net_arch = rest.pop("net_arch", None)
    layers = {} if net_arch is None else _layers(net_arch, agent)
    layers |= _optimiser(rest.pop("optimizer_class", None), rest.pop("optimizer_kwargs", None))
    layers |= _activation(rest.pop("activation_fn", None))
    _require_no_extractor(rest.pop("features_extractor_class", None))
    return override(agent, layers | rest)


def _layers(net_arch: Any, agent: Agent) -> dict[str, Any]:
    """[64, 64] for both, or {"pi": …, "qf": …}. Where ξ joins a policy network, it joins before
    the last of these layers, so that there are as many as in a plain one."""
    both = isinstance(net_arch, Mapping)
    if both and set(net_arch) != {"pi", "qf"}:
        raise UserError("net_arch must be a list of layers, or name those of 'pi' and of 'qf'")
    actor, critic = (net_arch["pi"], net_arch["qf"]) if both else (net_arch, net_arch)
    actor_name, critic_name = SEVERAL["net_arch"]
    found = {actor_name: list(actor), critic_name: list(critic)}
    if agent.networks.latent and actor:
        found |= {actor_name: list(actor[:-1] or actor), "latent_hidden": list(actor[-1:])}
    return found


def _optimiser(kind: Any, kwargs: Any) -> dict[str, Any]:
    """Adam, or AdamW with its weight decay."""
    known, extra = (None, torch.optim.Adam, torch.optim.AdamW), dict(kwargs or {})
    decay = extra.pop("weight_decay", 0.01 if kind is torch.optim.AdamW else 0.0)
    if kind not in known or extra or (decay and kind is not torch.optim.AdamW):
        raise UserError(
            "adac's optimisers are Adam and AdamW with weight_decay: leave out optimizer_class and "
            "other optimizer_kwargs (Adam's β₁ is the setting adam_b1)"
        )
    return {} if kind is None else {"weight_decay": decay}


def _activation(kind: Any) -> dict[str, Any]:
    """torch.nn.Tanh by its name; the setting says which there are."""
    return {} if kind is None else {"activation": getattr(kind, "__name__", str(kind)).lower()}


def _require_no_extractor(extractor: Any) -> None:
    if extractor not in (None, FlattenExtractor, CombinedExtractor):
        raise UserError(
            f"{extractor.__name__} is a PyTorch network, and adac learns with JAX: build the "
            "features in a wrapper of the environment, or a kind of adac.core.networks.Networks"
        )


def _with_exploration(agent: Agent, wanted: Exploration, policy_kwargs: Mapping[str, Any]) -> Agent:
    if wanted.use_sde:
        every = wanted.sde_sample_freq if wanted.sde_sample_freq > 0 else FOREVER
        explorer = StateDependentNoise(_deviation(policy_kwargs), every)
        agent = replace(agent, explorer=explorer)
        return replace(agent, warmup=0) if wanted.use_sde_at_warmup else agent
    if wanted.action_noise is not None and isinstance(agent.explorer, NOISE):
        return replace(agent, explorer=OwnPolicy())  # noise that is given takes its place
    return agent


def _deviation(policy_kwargs: Mapping[str, Any]) -> float:
    """σ from its logarithm, which `use_expln` bends where it is positive."""
    log_std = float(policy_kwargs.get("log_std_init", -3.0))
    if policy_kwargs.get("use_expln") and log_std > 0:
        return math.log1p(log_std) + 1.0
    return math.exp(log_std)
