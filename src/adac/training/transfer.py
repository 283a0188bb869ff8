"""From one run to another: its weights as a beginning, its settings changed on the way."""

import dataclasses
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
from numpy.typing import NDArray

from adac.core import agent as core
from adac.core import presets, settings
from adac.core.agent import Agent, AgentState
from adac.errors import UserError
from adac.runs.checkpoint import Store, flatten, unflatten
from adac.runs.files import place
from adac.runs.folder import read_config, require_essence
from adac.training.loop import Loop


class Origin(NamedTuple):
    """Another run, as its last checkpoint has it."""

    folder: Path
    config: dict[str, Any]
    step: int
    arrays: dict[str, NDArray[Any]]

    def facts(self) -> dict[str, Any]:
        """What the new run's config.json says of it."""
        names = ("env", "agent_name", "seed")
        where = {"folder": str(self.folder), "step": self.step}
        return where | {name: self.config[name] for name in names}


def read_origin(folder: str | Path) -> Origin:
    folder = place("start_from", folder)
    config = read_config(folder)
    contents = Store(folder / "checkpoint").load(None)
    require_essence(folder, config, contents.facts.get("config"))
    return Origin(folder, config, contents.step, contents.arrays)


def choose(agent: str | Agent | None, origin: Origin | None) -> tuple[str, Agent]:
    """The agent that was asked for, else the origin's, else the default; and its name.

    After weights that have learned, no random steps: as many are taken with them before the first
    update instead, so that it does not learn from a handful of transitions. What was trained
    without the task's reward goes on with it.
    """
    if agent is None and origin is not None:
        name, chosen = origin.config["agent_name"], settings.from_json(origin.config["agent"])
    elif agent is None or isinstance(agent, str):
        name, chosen = agent or presets.DEFAULT, presets.make(agent or presets.DEFAULT)
    else:
        name, chosen = "custom", agent
    if not isinstance(chosen, Agent):
        raise UserError(f"agent must be a name (`adac list agents`) or an Agent, not {agent!r}")
    if origin is not None:
        wait = max(chosen.learn_after, chosen.warmup)
        chosen = dataclasses.replace(chosen, warmup=0, learn_after=wait, reward_free=False)
    return name, chosen


def start(loop: Loop, origin: Origin, *, optimisers: bool) -> None:
    """The origin's weights in a run that has not begun."""
    mine = flatten({"agent": loop.state})
    fresh = []
    for part in AgentState._fields:
        names = [name for name in mine if name.startswith(f"['agent'].{part}")]
        wanted = [name for name in names if optimisers or ".opts" not in name]
        if all(_fits(mine[name], origin.arrays.get(name)) for name in wanted):
            mine |= {name: origin.arrays[name] for name in wanted}
        elif part == "actor":
            raise UserError(
                f"the policy of {origin.folder}, {origin.config['agent_name']} on "
                f"{origin.config['env']}, does not fit here: observations, actions and layers must "
                f"have its sizes; this task has {loop.obs_dim} and {loop.action_dim}"
            )
        else:
            fresh.append(part)
    if fresh:
        warnings.warn(
            f"{origin.folder} has no {' and no '.join(fresh)} that fits this agent: begun anew",
            stacklevel=3,
        )
    loop.running.state = unflatten({"agent": loop.state}, mine)["agent"]
    loop.require_finite()


def _fits(mine: NDArray[Any], other: NDArray[Any] | None) -> bool:
    return other is not None and mine.shape == other.shape and mine.dtype == other.dtype


def require_same_state(then: Agent, changes: Mapping[str, Any], loop: Loop) -> None:
    """Refuse settings that a stored run cannot go on with."""
    now = loop.agent
    shapes = [
        jax.eval_shape(partial(core.init, agent, loop.obs_dim, loop.action_dim), jax.random.key(0))
        for agent in (then, now)
    ]
    memories = [core.init_memory(agent, 1, loop.obs_dim, loop.action_dim) for agent in (then, now)]
    same = _outline(shapes[0]) == _outline(shapes[1])
    if not same or _outline(memories[0]) != _outline(memories[1]):
        raise UserError(
            f"{', '.join(changes)} would change what the run has stored: begin a new one with its "
            "weights, `adac train ENV --from RUN` or Learner(env, start_from=folder)"
        )
    if then.replay_size != now.replay_size:
        raise UserError("replay_size cannot be changed on the way: load with_replay=False")


def _outline(tree: Any) -> dict[str, tuple[Any, str]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): (leaf.shape, str(leaf.dtype)) for path, leaf in leaves}
