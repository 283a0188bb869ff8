"""Agents too large for the machine, refused before anything is allocated."""

from adac.core.agent import Agent
from adac.errors import UserError
from adac.runs.machine import memory_bytes

MOST_ENVS = 4_096  # environments are Python objects, stepped one after another


def require_room(agent: Agent, row: int) -> None:
    """The replay buffer, and one layer of a minibatch; `row` is the numbers of a transition."""
    there = memory_bytes()
    if there is None:
        return
    widest = max(row, *agent.networks.actor_hidden, *agent.networks.critic_hidden)
    wanted = {"replay_size": row, "batch_size": widest}
    for name, numbers in wanted.items():
        count = getattr(agent, name)
        if 4 * numbers * count > there:
            raise UserError(
                f"{name} = {count:,} is too large: it takes {4 * numbers * count / 2**30:,.0f} GB "
                f"here, where this machine has {there / 2**30:,.0f}; "
                f"at most {there // (4 * numbers):,} would fit"
            )


def require_countable(num_envs: int) -> None:
    if not 1 <= num_envs <= MOST_ENVS:
        raise UserError(f"num_envs must be between 1 and {MOST_ENVS:,}, not {num_envs}")
