"""Two commits side by side: do their runs hold the same bits?

python tools/same_bits.py HEAD~1                      that commit against HEAD, everything
python tools/same_bits.py HEAD~1 . --agents td3 --envs Pendulum-v1 --steps 1500
python tools/same_bits.py v1 v2 --new-names           arrays that only v2 stores may pass

Each side is a commit, checked out beside this repository for the time being, or a folder with a
`src` in it (`.` is the work tree as it stands). Each trial is a process of its own. Compared are
the arrays of the last checkpoint by name, the replay rows, evaluations.csv and metrics.csv, all to
the bit but for timings. A newer commit may append columns to a row or to a CSV file. The exit code
is 1 if anything differs.
"""

import argparse
import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

REPOSITORY = Path(__file__).parents[1]
AGENTS = ("td3", "ddpg-ou-1.0", "sac", "adac-td3", "adac-ddpg", "adac-td3-vime", "td3-rnd")
ENVS = ("Pendulum-v1", "Hopper-v5")
TIMINGS = {"wall_seconds", "steps_per_second"}

Arrays = dict[str, NDArray[Any]]

# In a process of its own, with the side's own `adac`: an editable install may point elsewhere.
TRIAL = """
import json, sys
import adac
source, env, agent, seed, steps, out = json.loads(sys.argv[1])
assert adac.__file__.startswith(source), f"imported {adac.__file__}, not from {source}"
# K = 8 on Hopper, as the paper has it: once a matter of the agent, now of the benchmark's suite.
eight = {"particles": 8} if agent.startswith("adac") and env.startswith("Hopper") else {}
learner = adac.Learner(env, agent, seed=seed, overrides=eight)
learner.learn(steps, out=out, eval_every=1000, eval_episodes=3, log_every=500)
learner.close()
"""


@dataclass(frozen=True)
class Trial:
    env: str
    agent: str
    seed: int
    steps: int

    def run(self, tree: Path, out: Path) -> Path:
        """The run folder that the source tree makes of it."""
        source = str((tree / "src").resolve())
        arguments = json.dumps([source, self.env, self.agent, self.seed, self.steps, str(out)])
        done = subprocess.run(
            [sys.executable, "-c", TRIAL, arguments],
            env=os.environ | {"PYTHONPATH": source},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{self.agent} on {self.env} failed with {tree}:\n{done.stderr}")
        return out


@dataclass(frozen=True)
class Allowed:
    new_names: bool = False  # arrays that only the newer stores
    renamed: tuple[tuple[str, str], ...] = ()  # parts of the older's names


def compare(before: Path, after: Path, allowed: Allowed) -> dict[str, list[str]]:
    """What differs between two run folders, by what is compared."""
    ours, theirs = _checkpoint(before), _checkpoint(after)
    return {
        "arrays": _arrays(_rename(ours.arrays, allowed.renamed), theirs.arrays, allowed.new_names),
        "replay": _replay(ours.rows, theirs.rows),
        "evaluations": _table(before / "evaluations.csv", after / "evaluations.csv"),
        "metrics": _table(before / "metrics.csv", after / "metrics.csv"),
    }


@dataclass(frozen=True)
class _Checkpoint:
    arrays: Arrays
    rows: NDArray[Any]


def _checkpoint(run: Path) -> _Checkpoint:
    folder = run / "checkpoint"
    manifest = max(folder.glob("step-*.json"))
    body = json.loads(manifest.read_bytes())["body"]
    segments = [safetensors.numpy.load_file(folder / name)["rows"] for name, *_ in body["replay"]]
    return _Checkpoint(
        safetensors.numpy.load_file(folder / body["state"][0]), np.concatenate(segments)
    )


def _rename(arrays: Arrays, renamed: Sequence[tuple[str, str]]) -> Arrays:
    for old, new in renamed:
        arrays = {name.replace(old, new): array for name, array in arrays.items()}
    return arrays


def _arrays(before: Arrays, after: Arrays, new_names: bool) -> list[str]:
    found = [f"only before: {name}" for name in sorted(before.keys() - after.keys())]
    if not new_names:
        found += [f"only after: {name}" for name in sorted(after.keys() - before.keys())]
    both = sorted(before.keys() & after.keys())
    return found + [
        f"{name}: {difference}"
        for name in both
        if (difference := _difference(before[name], after[name]))
    ]


def _replay(before: NDArray[Any], after: NDArray[Any]) -> list[str]:
    difference = _difference(before, after[:, : before.shape[1]])
    return [f"rows: {difference}"] if difference else []


def _difference(before: NDArray[Any], after: NDArray[Any]) -> str:
    """In words; nothing where the bits are the same, so that NaN equals itself and 0 is not -0."""
    if before.shape != after.shape or before.dtype != after.dtype:
        return f"{before.dtype}{list(before.shape)} → {after.dtype}{list(after.shape)}"
    if before.tobytes() == after.tobytes():
        return ""
    with np.errstate(invalid="ignore"):
        largest = np.abs(np.subtract(after, before, dtype=float)).max()
    return f"differs in {np.sum(before != after):,} of {before.size:,}, by at most {largest:.3g}"


def _table(before: Path, after: Path) -> list[str]:
    older, newer = _read(before), _read(after)
    found = [] if len(older) == len(newer) else [f"{len(older)} → {len(newer)} rows"]
    gone = (older[0].keys() if older else set()) - (newer[0].keys() if newer else set())
    found += [f"only before: column {name}" for name in sorted(gone)]
    for left, right in zip(older, newer, strict=False):
        for name in left.keys() - TIMINGS - gone:
            if left[name] != right[name]:
                found.append(f"step {left['step']}, {name}: {left[name]} → {right[name]}")
    return found


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@contextlib.contextmanager
def _tree(side: str, beside: Path) -> Iterator[Path]:
    """The side's source tree: a folder as it is, or a commit checked out under `beside`."""
    if (Path(side) / "src").is_dir():
        yield Path(side)
        return
    git = ["git", "-C", str(REPOSITORY)]
    subprocess.run([*git, "worktree", "add", "--quiet", "--detach", beside, side], check=True)
    try:
        yield beside
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", beside], check=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="a commit, or a folder with a src in it")
    parser.add_argument("after", nargs="?", default="HEAD", help="the other; HEAD")
    parser.add_argument("--agents", nargs="+", default=AGENTS, metavar="NAME")
    parser.add_argument("--envs", nargs="+", default=ENVS, metavar="ID")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time")
    parser.add_argument("--most", type=int, default=8, help="differences shown of each trial")
    parser.add_argument("--new-names", action="store_true", help="arrays only after may pass")
    parser.add_argument(
        "--rename", nargs=2, action="append", default=[], metavar=("OLD", "NEW"),
        help="a part of the names of arrays before",
    )  # fmt: skip
    parser.add_argument("--keep", type=Path, help="a folder for the runs; else they are deleted")
    return parser.parse_args()


def _line(cells: Sequence[object]) -> str:
    return "  ".join(f"{cell!s:<13}" for cell in cells).rstrip()


def main() -> None:
    chosen = _options()
    allowed = Allowed(chosen.new_names, tuple((old, new) for old, new in chosen.rename))
    trials = [
        Trial(env, agent, chosen.seed, chosen.steps)
        for env in chosen.envs
        for agent in chosen.agents
    ]
    with contextlib.ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trees = [
            stack.enter_context(_tree(side, temporary / name))
            for side, name in ((chosen.before, "before"), (chosen.after, "after"))
        ]
        runs = chosen.keep or temporary

        def both(trial: Trial) -> dict[str, list[str]]:
            folder = runs.resolve() / f"{trial.env}-{trial.agent}"
            sides = [
                trial.run(tree, folder / name)
                for tree, name in zip(trees, ("before", "after"), strict=True)
            ]
            return compare(*sides, allowed)

        jobs = stack.enter_context(ThreadPoolExecutor(chosen.jobs))
        differs = _report(trials, jobs.map(both, trials), chosen.most)
    sys.exit(differs)


def _report(trials: list[Trial], results: Iterator[dict[str, list[str]]], most: int) -> bool:
    """A line for each trial as it ends; whether anything differs."""
    print(_line(("task", "agent", "arrays", "replay", "evaluations", "metrics")), flush=True)
    anything = False
    for trial, found in zip(trials, results, strict=True):
        cells = ["differ" if lines else "equal" for lines in found.values()]
        print(_line((trial.env, trial.agent, *cells)), flush=True)
        lines = [f"{what}: {line}" for what, some in found.items() for line in some]
        for line in lines[:most]:
            print(f"    {line}", flush=True)
        if len(lines) > most:
            print(f"    and {len(lines) - most} more", flush=True)
        anything |= bool(lines)
    return anything


if __name__ == "__main__":
    main()
