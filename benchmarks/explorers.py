"""What each way to explore costs per step, relative to plain `td3` in the same run.

python benchmarks/explorers.py                       all of them, Hopper-v5
python benchmarks/explorers.py --agents td3-pink td3-gsde --rounds 5

A step is an action, the simulator's step and an update, as `learn` takes them. Processor time, over
all threads, because others on the machine do not change it. Each agent takes turns with `td3`, and
the figure is the median of the rounds' ratios.
"""

import argparse
import statistics
import time

import jax

import adac
from adac.experiments.sweeps.suites import EXPLORERS
from adac.training.compiled import compile_agent

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


def relative(agent: str, plain: Runner, env: str, steps: int, rounds: int) -> tuple[float, float]:
    """Milliseconds per step, and how many times td3's."""
    runner = Runner(agent, env)
    pairs = [(runner.milliseconds(steps), plain.milliseconds(steps)) for _ in range(rounds)]
    runner.learner.close()
    compile_agent.cache_clear()  # all agents' programs at once would be too many memory mappings
    return statistics.median(own for own, _ in pairs), statistics.median(o / p for o, p in pairs)


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
    plain = Runner("td3", options.env)
    print("| agent | ms per step | of td3's |\n|---|--:|--:|")
    for agent in options.agents:
        own, ratio = relative(agent, plain, options.env, options.steps, options.rounds)
        print(f"| `{agent}` | {own:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
