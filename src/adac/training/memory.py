"""Agents too large for the machine, refused before anything is allocated."""

from adac.core.agent import Agent
from adac.errors import UserError
from adac.runs.machine import memory_bytes

MOST_ENVS = 4_096  # environments are Python objects, stepped one after another
MOST_PROCESSES = 256  # a run folder may ask for them, and each is a Python of its own


def require_room(agent: Agent, row: int, state: int) -> None:
    """The replay buffer, one layer of a minibatch and what is learned.

    `row` is the numbers of a transition, `state` those of the networks and their optimisers.
    """
    widest = max(row, *agent.networks.actor_hidden, *agent.networks.critic_hidden)
    require_fitting("replay_size", agent.replay_size, row)
    require_fitting("batch_size", agent.batch_size, widest)
    particles = getattr(agent.explorer, "particles", 1)
    require_fitting("particles", particles, agent.batch_size * widest)
    there = memory_bytes()
    if there is not None and 4 * state > there:
        raise UserError(
            f"the networks are too large: with their optimisers they take {4 * state / 2**30:,.0f} "
            f"GB, where this machine has {there / 2**30:,.0f}; choose smaller layers or fewer"
        )


def require_fitting(name: str, count: int, numbers: int) -> None:
    """So many of them, each of so many numbers in single precision."""
    there = memory_bytes()
    if there is not None and 4 * numbers * count > there:
        raise UserError(
            f"{name} = {count:,} is too large: it takes {4 * numbers * count / 2**30:,.0f} GB "
            f"here, where this machine has {there / 2**30:,.0f}; "
            f"at most {there // (4 * numbers):,} would fit"
        )


def require_countable(num_envs: int, *, subprocesses: bool) -> None:
    most = MOST_PROCESSES if subprocesses else MOST_ENVS
    if not 1 <= num_envs <= most:
        where = " in processes of their own" if subprocesses else ""
        raise UserError(f"num_envs must be between 1 and {most:,}{where}, not {num_envs}")
