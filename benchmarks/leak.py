"""How far a bonus moves the target policy through the weights that it shares with μ.

python benchmarks/leak.py                         three seeds, a few minutes
python benchmarks/leak.py --seeds 5 --updates 5000

`adac-td3-vime` collects transitions with their bonus. Then fresh agents learn from this fixed data,
in the same order and with the same random keys, and differ in one thing alone: the factor on the
bonus. The change of π is the mean |π(s) − π₀(s)| over the collected states, where π₀ has learned
without any bonus. Another random key for the same updates, also without bonus, says how far chance
alone moves π.
"""

import argparse
from dataclasses import replace

import jax
import numpy as np
from numpy.typing import NDArray

from adac import Learner
from adac.core import settings
from adac.core.agent import Agent
from adac.core.explorers import Analogous
from adac.core.presets import make
from adac.training.compiled import RunningAgent, compile_agent

TASK = "adac/PendulumSparse-v0"
SMALL = {"actor_hidden": (64, 64), "critic_hidden": (64, 64), "particles": 8, "warmup": 500}
Rows = NDArray[np.float32]


def collect(agent: Agent, transitions: int, seed: int) -> Learner:
    learner = Learner(TASK, agent, seed=seed)
    return learner.learn(transitions, horizon=transitions)


def learned_policy(
    agent: Agent, seen: Learner, updates: int, factor: float, key: int
) -> NDArray[np.float32]:
    """π at the collected states, after `updates` on the collected rows with their bonus scaled."""
    rows, columns = seen.replay.rows[: len(seen.replay)].copy(), seen.replay.spec.columns
    rows[:, columns["bonus"]] *= factor
    program = compile_agent(agent, seen.obs_dim, seen.action_dim)
    running = RunningAgent(program, jax.random.key(seen.seed))
    order = np.random.default_rng(seen.seed)
    for number in range(1, updates + 1):
        batch = rows[order.integers(0, len(rows), agent.batch_size)]
        improve = number % agent.base.policy_delay == 0
        progress = np.float32(number / updates)
        running.update(batch, jax.random.key(key), np.int32(number), progress, improve=improve)
    return np.asarray(running.greedy(rows[:, columns["obs"]]))


def measure(transitions: int, updates: int, seed: int) -> dict[str, float]:
    shared = settings.override(make("adac-td3-vime"), SMALL)
    assert isinstance(shared.explorer, Analogous)
    apart = replace(shared, explorer=replace(shared.explorer, co_training=False))
    seen = collect(shared, transitions, seed)
    without = learned_policy(shared, seen, updates, 0.0, key=1)
    without_apart = learned_policy(apart, seen, updates, 0.0, key=1)

    def change(agent: Agent, base: NDArray[np.float32], factor: float, key: int = 1) -> float:
        return float(np.abs(learned_policy(agent, seen, updates, factor, key) - base).mean())

    return {
        "the bonus": change(shared, without, 1.0),
        "ten times the bonus": change(shared, without, 10.0),
        "no bonus, another random key": change(shared, without, 0.0, key=2),
        "the bonus, without co-training": change(apart, without_apart, 1.0),
        "standard deviation of π over the states": float(without.std()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--transitions", type=int, default=3_000)
    parser.add_argument("--updates", type=int, default=2_000)
    options = parser.parse_args()
    found = [measure(options.transitions, options.updates, s) for s in range(options.seeds)]
    for name in found[0]:
        values = [one[name] for one in found]
        print(f"{name:42s} {np.mean(values):.4f}   {'  '.join(f'{v:.4f}' for v in values)}")


if __name__ == "__main__":
    main()
