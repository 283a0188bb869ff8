"""Our baselines beside their published results: the last evaluation of each seed.

make parity                              runs what is missing (it resumes), then prints the table
python benchmarks/parity.py              prints the table of what is in results/parity

Published: TD3's authors' own curves (sfujim/TD3, learning_curves, -v1 tasks, ten seeds), SAC and
CrossQ from DAVIAN-Robotics/SimbaV2 (results/baseline/{sac,crossq}.csv, -v4 tasks, ten seeds). That
CrossQ is on SAC, with critics 2,048 wide; `crossq-td3` is on TD3, with critics 256 wide.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adac.experiments.analysis.results import read_results


class Published(NamedTuple):
    mean: float
    std: float
    low: float
    high: float


class Solved(NamedTuple):
    """A task that every published seed solves."""

    least: float
    published: str


PUBLISHED: dict[tuple[str, str], Published] = {
    ("td3", "Hopper-v4"): Published(659.5, 752.3, 25.2, 2789.9),
    ("td3", "HalfCheetah-v4"): Published(5513.5, 553.7, 4542.5, 6355.3),
    ("td3", "Walker2d-v4"): Published(770.1, 585.9, 155.5, 2320.4),
    ("td3", "Ant-v4"): Published(585.5, 185.0, 257.7, 974.1),
    ("sac", "Hopper-v4"): Published(1103.4, 367.8, 408.3, 1717.4),
    ("sac", "HalfCheetah-v4"): Published(6156.3, 699.8, 4985.8, 7509.7),
    ("sac", "Walker2d-v4"): Published(689.9, 240.8, 261.3, 1048.6),
    ("sac", "Ant-v4"): Published(747.2, 501.2, 65.7, 1601.5),
    ("crossq-td3", "Hopper-v4"): Published(2764.4, 781.0, 1369.0, 3599.8),
    ("crossq-td3", "HalfCheetah-v4"): Published(8112.4, 895.5, 5889.4, 8964.4),
    ("crossq-td3", "Walker2d-v4"): Published(3913.6, 1640.7, 236.4, 5296.1),
    ("crossq-td3", "Ant-v4"): Published(2299.4, 1277.9, 934.4, 4373.0),
}
SOLVED: dict[tuple[str, str], Solved] = {
    ("td3", "InvertedDoublePendulum-v4"): Solved(9_000.0, "9,311 to 9,318 at 20,000"),
    ("td3", "InvertedPendulum-v4"): Solved(1_000.0, "1,000 at 50,000"),
}


def line(agent: str, task: str, steps: int, last: list[float]) -> str:
    values, ours = np.array(last), ", ".join(f"{value:.0f}" for value in last)
    if (agent, task) in SOLVED:
        least, published = SOLVED[agent, task]
        verdict = f"{int((values >= least).sum())} of {len(values)} reach {least:,.0f}"
    else:
        mean, std, low, high = PUBLISHED[agent, task]
        published = f"{mean:.0f} ± {std:.0f} ({low:.0f} to {high:.0f})"
        inside = low <= values.mean() <= high or values.mean() > high
        verdict = "yes" if inside and values.mean() >= mean - std else "**no**"
    cells = (f"`{agent}`", task, f"{steps:,}", f"{values.mean():.0f}", ours, published, verdict)
    return f"| {' | '.join(cells)} |"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/parity")
    found: dict[tuple[str, str], list[tuple[int, int, float]]] = {}
    for run in read_results(folder).runs:
        row = (int(run.seed), run.last_step, run.returns[run.last_step])
        found.setdefault((run.agent_name, run.env), []).append(row)
    print("| agent | task | steps | mean | seeds | published | at that level |")
    print("|---|---|--:|--:|---|---|---|")
    for (agent, task), rows in sorted(found.items()):
        steps = {step for _, step, _ in rows}
        assert len(steps) == 1, f"runs of different lengths: {agent} on {task}"
        print(line(agent, task, steps.pop(), [value for _, _, value in sorted(rows)]))


if __name__ == "__main__":
    main()
