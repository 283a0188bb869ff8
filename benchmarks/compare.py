"""Two commits, interleaved: did a change make it faster?

python benchmarks/compare.py HEAD~1 HEAD --agent td3 --agent "adac-td3 --particles 8"
python benchmarks/compare.py HEAD~1 . --measure update                 . is the files as they are
python benchmarks/compare.py v1 . --agent "td3 | td3 --set batch_size=100"     before | after

Every measurement is a process of its own (ours.py of these files, with the sources of either
commit); ratios are taken within a pair, and every second pair runs backwards. Nothing else should
run meanwhile: the spread of the ratios says how much that matters.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
HIGHER_IS_BETTER = {"rate": "steps_per_second", "update": "of_limit"}


@contextlib.contextmanager
def sources(commit: str) -> Iterator[Path]:
    """The src folder of a commit, checked out beside; or of a folder."""
    if (Path(commit) / "src").is_dir():
        yield Path(commit).resolve() / "src"
        return
    git = ["git", "-C", str(HERE), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def measure(tree: Path, what: str, task: str, agent: str, seconds: float) -> float:
    command = [sys.executable, str(HERE / "ours.py"), what, "--env", task]
    command += ["--agent", *agent.split(), "--seconds", str(seconds)]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])[HIGHER_IS_BETTER[what]])


def compare(trees: tuple[Path, Path], agent: str, chosen: argparse.Namespace) -> str:
    before, _, after = (side.strip() for side in agent.partition("|"))
    agents, pairs = (before, after or before), []
    for number in range(chosen.pairs):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        pair = {
            side: measure(trees[side], chosen.measure, chosen.env, agents[side], chosen.seconds)
            for side in order
        }
        pairs.append((pair[0], pair[1]))
    ratios = sorted(new / old for old, new in pairs)
    old, new = (statistics.median(side) for side in zip(*pairs, strict=True))
    return (
        f"{agent}: {HIGHER_IS_BETTER[chosen.measure]} {old:.4g} → {new:.4g}, "
        f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", nargs=2, help="before, after; a folder will do")
    parser.add_argument("--measure", choices=HIGHER_IS_BETTER, default="rate")
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--agent", action="append", help="with options of ours.py; again for more")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.0)
    chosen = parser.parse_args()
    with sources(chosen.commits[0]) as before, sources(chosen.commits[1]) as after:
        for agent in chosen.agent or ["td3"]:
            print(compare((before, after), agent, chosen), flush=True)


if __name__ == "__main__":
    main()
