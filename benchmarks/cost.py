"""What the paper's whole Table 2 would cost here, in hours of one core.

python benchmarks/cost.py                        six agents, fourteen tasks; some minutes

Processor time, so that others on the machine do not change it. An agent's own part of a step is
measured on Hopper and taken for every task: wider observations cost a little more. A simulator's
part is measured on each task under random actions, and counted twice, because evaluations play up
to as many steps as training does (ten episodes of a thousand in every 10,000).
"""

import argparse
import time
from collections.abc import Mapping

import gymnasium

from adac import envs
from adac.core.presets import AGENTS
from adac.experiments.sweeps.suites import PAPER, Suite
from explorers import Runner

HOPPER = "Hopper-v4"
STEPS = 1_000_000
SEEDS = 20
HOUR = 3.6e6  # milliseconds


def simulator(task: str, steps: int) -> float:
    """Milliseconds per step under random actions."""
    env: gymnasium.Env = envs.make(task)
    env.action_space.seed(0)
    env.reset(seed=0)
    began = time.process_time()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    taken = 1e3 * (time.process_time() - began) / steps
    env.close()
    return taken


def learners(agents: list[str], steps: int, sim: float) -> dict[str, float]:
    """Milliseconds per step of each agent without its simulator, the best of three stretches."""
    found = {}
    for agent in agents:
        runner = Runner(agent, HOPPER)
        found[agent] = min(runner.milliseconds(steps) for _ in range(3)) - sim
        runner.learner.close()
    return found


def report(own: Mapping[str, float], sims: Mapping[str, float]) -> str:
    lines = [
        "| agent | its part of a step, ms | 14 tasks × 20 seeds, core-hours |",
        "|---|--:|--:|",
    ]
    total = 0.0
    for agent, cost in own.items():
        hours = sum(cost + 2.0 * sim for sim in sims.values()) * STEPS * SEEDS / HOUR
        total += hours
        lines.append(f"| `{agent}` | {cost:.1f} | {hours:,.0f} |")
    lines.append(f"| all of them | | {total:,.0f} |")
    ordered = sorted(sims.items(), key=lambda pair: pair[1])
    (fast, least), (slow, most) = ordered[0], ordered[-1]
    lines.append(f"\nA step of the simulator: {least:.2f} ms ({fast}) to {most:.2f} ms ({slow}).")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=400, help="of each measurement")
    chosen = parser.parse_args()
    suite: Suite = PAPER["benchmark"]
    agents = [e.agent for e in suite.entrants if e.agent in AGENTS]
    sims = {task: simulator(task, chosen.steps) for task in suite.tasks}
    sim = simulator(HOPPER, chosen.steps)
    print(report(learners(agents, chosen.steps, sim), sims))


if __name__ == "__main__":
    main()
