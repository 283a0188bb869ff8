"""Where the reward is always 0, Q is flat and exp(Q/β) uniform: do μ and π stay off the bound?

python benchmarks/flat_q.py --seeds 0-4                  20,000 steps each
python benchmarks/flat_q.py --agent td3 --seeds 0

Pendulum-v1 with every reward replaced by 0. Wide is a spread above 0.5 (uniform: 0.577); at the
bound is |a| > 0.98.
"""

import argparse
from typing import Any

import gymnasium

import adac
from adac.experiments.sweeps.suites import parse_seeds


class NoReward(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return 0.0


def after(agent: str, steps: int, seed: int) -> dict[str, float]:
    env = NoReward(gymnasium.make("Pendulum-v1"))
    learner = adac.Learner(env, agent, seed=seed).learn(steps)
    seen = learner.diagnose()
    learner.close()
    return {name: seen[name] for name in ("spread", "saturation_mu", "saturation_pi", "q")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", default="adac-td3")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=parse_seeds, default=parse_seeds("5"))
    options = parser.parse_args()
    print(f"`{options.agent}`, {options.steps:,} steps")
    print("| seed | spread | μ at the bound | π at the bound | Q |\n|--:|--:|--:|--:|--:|")
    for seed in options.seeds:
        found = after(options.agent, options.steps, seed)
        print(f"| {seed} | {' | '.join(f'{value:.3f}' for value in found.values())} |", flush=True)


if __name__ == "__main__":
    main()
