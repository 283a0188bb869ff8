"""What a run is doing, for whoever watches it."""

from adac.core.agent import Agent
from adac.runs.progress import COMPILING, NOT_LEARNING, TRAINING, WARMUP


def phase(agent: Agent, step: int, begun: int, at_once: int) -> str:
    """What the next step of a run that began or went on at step `begun` does.

    XLA compiles an action when it is first asked for, by the random policy and by the explorer, and
    an update when it is first done, without and with that of the policy; several environments take
    `at_once` steps together.
    """
    firsts = {begun: at_once, agent.warmup: at_once}
    if agent.updates_per_step:
        updates = (agent.base.policy_delay + 1) / min(agent.updates_per_step, 1.0)
        firsts[max(begun, agent.learn_after)] = at_once + int(updates)
    if any(first <= step < first + long for first, long in firsts.items() if first >= begun):
        return COMPILING
    if step < agent.learn_after:
        return NOT_LEARNING
    return WARMUP if step < agent.warmup else TRAINING
