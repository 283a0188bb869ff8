"""What each way to explore costs per step, relative to plain `td3` in the same run.

python benchmarks/explorers.py                       all of them, Hopper-v5
python benchmarks/explorers.py --agents td3-pink td3-gsde --rounds 5

A step is an action, the simulator's step and an update, as `learn` takes them. Processor time, over
all threads, because others on the machine do not change it; the agents take turns, and the figure
is the median over the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import jax

import adac
from adac.experiments.sweeps.suites import EXPLORERS

WARMUP = 300  # steps, so that learning has begun and everything is compiled


class Runner:
    def __init__(self, agent: str, env: str):
        settings = {"warmup": WARMUP // 2}
        self.learner = adac.Learner(env, agent, overrides=settings).learn(WARMUP)

    def milliseconds(self, steps: int) -> float:
        began = time.process_time()
        self.learner.learn(steps)
        jax.block_until_ready(self.learner.loop.running.arrays)
        return 1e3 * (time.process_time() - began) / steps


def measured(agents: Sequence[str], env: str, steps: int, rounds: int) -> dict[str, float]:
    """Milliseconds per step of each."""
    runners = {agent: Runner(agent, env) for agent in agents}
    taken: dict[str, list[float]] = {agent: [] for agent in agents}
    for _ in range(rounds):
        for agent, runner in runners.items():
            taken[agent].append(runner.milliseconds(steps))
    return {agent: statistics.median(values) for agent, values in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    named = [entrant.agent for entrant in EXPLORERS.entrants]
    parser.add_argument("--agents", nargs="+", default=named)
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    agents = list(dict.fromkeys(["td3", *options.agents]))
    found = measured(agents, options.env, options.steps, options.rounds)
    print("| agent | ms per step | of td3's |\n|---|--:|--:|")
    for agent, value in found.items():
        print(f"| `{agent}` | {value:.2f} | {value / found['td3']:.2f} |")


if __name__ == "__main__":
    main()
