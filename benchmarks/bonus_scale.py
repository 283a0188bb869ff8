"""Is a bonus of the size it claims? The mean bonus of collected steps over η, per thousand steps.

python benchmarks/bonus_scale.py                         both bonuses on the four sparse tasks
python benchmarks/bonus_scale.py --bonus vime --steps 8000 --task adac/PendulumSparse-v0

A bonus that keeps its word stays between 0.3 and 3 after 5,000 steps. Small networks: what is
looked at is the scale, not the return.
"""

import argparse

import numpy as np

import adac

TASKS = (
    "MountainCarContinuous-v0", "adac/AcrobotContinuous-v0", "adac/PendulumSparse-v0",
    "adac/CartPoleSwingUpSparse-v0",
)  # fmt: skip
SMALL = {"net_arch": (64, 64), "batch_size": 100}
BLOCK = 1_000


def ratios(agent: str, task: str, steps: int, seed: int) -> list[float]:
    """Mean stored bonus of each block of steps, over η."""
    learner = adac.Learner(task, agent, seed=seed, overrides=SMALL).learn(steps)
    eta = learner.agent.intrinsic.eta  # type: ignore[union-attr]
    replay = learner.replay
    bonus = replay.rows[: len(replay), replay.spec.columns["bonus"]].ravel() / eta
    learner.close()
    return [float(np.mean(bonus[i : i + BLOCK])) for i in range(0, steps, BLOCK)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bonus", action="append", help="of td3-BONUS (default: vime and rnd)")
    parser.add_argument("--task", action="append")
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    blocks = [f"{i // 1000}k" for i in range(BLOCK, options.steps + 1, BLOCK)]
    print(f"| bonus | task | {' | '.join(blocks)} | keeps its word |")
    print(f"|---|---|{'--:|' * len(blocks)}---|")
    for bonus in options.bonus or ["vime", "rnd"]:
        for task in options.task or TASKS:
            found = ratios(f"td3-{bonus}", task, options.steps, options.seed)
            late = [value for block, value in enumerate(found, 1) if block > 5]
            verdict = "yes" if all(0.3 <= value <= 3.0 for value in late) else "**no**"
            cells = " | ".join(f"{value:.2f}" for value in found)
            print(f"| {bonus} | {task} | {cells} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
