"""Two source trees, interleaved: did a change make it faster?

git worktree add /tmp/before HEAD~1
python benchmarks/compare.py /tmp/before/src src --agent td3 --agent "adac-td3 --particles 8"
python benchmarks/compare.py /tmp/before/src src --measure update

Every measurement is a process of its own (ours.py); ratios are taken within a pair, and every
second pair runs backwards. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HIGHER_IS_BETTER = {"rate": "steps_per_second", "update": "of_limit"}


def measure(tree: Path, what: str, task: str, agent: str, seconds: float) -> float:
    command = [sys.executable, str(HERE / "ours.py"), what, "--env", task]
    command += ["--agent", *agent.split(), "--seconds", str(seconds)]
    environment = os.environ | {"PYTHONPATH": str(tree.resolve())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])[HIGHER_IS_BETTER[what]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs=2, type=Path, help="src folders: before, after")
    parser.add_argument("--measure", choices=HIGHER_IS_BETTER, default="rate")
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--agent", action="append", help="with options of ours.py; again for more")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.0)
    chosen = parser.parse_args()
    for agent in chosen.agent or ["td3"]:
        pairs = []
        for number in range(chosen.pairs):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            pair = {
                side: measure(chosen.trees[side], chosen.measure, chosen.env, agent, chosen.seconds)
                for side in order
            }
            pairs.append((pair[0], pair[1]))
        ratios = sorted(after / before for before, after in pairs)
        before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(
            f"{agent}: {HIGHER_IS_BETTER[chosen.measure]} {before:.4g} → {after:.4g}, "
            f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
