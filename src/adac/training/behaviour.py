"""Asking the behaviour policy μ for actions, from outside a run's loop."""

from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from adac.core.explorers import Explorer, Sizes
from adac.errors import UserError
from adac.training.answers import Floats
from adac.training.compiled import RunningAgent


def fresh_memory(running: RunningAgent, explorer: Explorer, count: int) -> Any:
    """What an explorer remembers of `count` environments before its first step in them."""
    program = running.program
    latent = program.agent.networks.latent
    return explorer.init_memory(count, Sizes(program.obs_dim, program.action_dim, latent))


def sample(
    running: RunningAgent,
    obs: Floats,
    memory: Any,
    episode_start: NDArray[Any] | None,
    key: Array,
    number: int,
) -> tuple[Floats, Any]:
    """Actions [n, d] in [-1, 1] for obs [n, o], and what μ remembers; None begins anew."""
    count, explorer = len(obs), running.program.agent.explorer
    first = np.ravel(False if episode_start is None else episode_start).astype(bool)
    sizes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(memory)} | {first.shape} - {(1,)}
    if sizes - {(count,)}:
        raise UserError(
            f"state and episode_start must be those of these {count} observations: "
            "pass None to start again"
        )
    first = np.broadcast_to(first, count)
    if memory is None:
        first = np.ones(count, bool)
        memory = fresh_memory(running, explorer, count)
    action, memory = running.act(obs, memory, first, key, np.int32(number), explorer=explorer)
    return np.asarray(action), memory
