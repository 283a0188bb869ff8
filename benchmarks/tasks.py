"""Steps per second of the paper's tasks under random actions, one process, resets included.

python benchmarks/tasks.py            prints the table of docs/tasks.md
python benchmarks/tasks.py --write    puts it there
"""

import argparse
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from adac import envs

DOCS = Path(__file__).parent.parent / "docs" / "tasks.md"
BEGIN, END = "<!-- tasks: begin -->", "<!-- tasks: end -->"


def steps_per_second(task_id: str, seconds: float) -> float:
    """Of processor time, so that other work on the machine counts little."""
    env = envs.make(task_id)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(1000)]
    env.reset(seed=0)
    steps, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        for action in actions[:100]:
            *_, terminated, truncated, _ = env.step(action)
            steps += 1
            if terminated or truncated:
                env.reset()
        actions = actions[100:] + actions[:100]
    env.close()
    return steps / elapsed


def row(task: envs.Task, seconds: float, repeats: int) -> str:
    # The best of several: what else slows a run (caches, clock rates) is not the task's.
    rate = max(steps_per_second(task.id, seconds) for _ in range(repeats))
    env = envs.make(task.id)
    limit = env.spec.max_episode_steps if env.spec else None
    env.close()
    cells = (f"`{task.id}`", task.group, task.obs_dim, task.action_dim, task.extra, limit)
    return (
        "| "
        + " | ".join([*map(str, cells), f"{round(rate, -2 if rate > 2000 else -1):,.0f}"])
        + " |"
    )


def machine() -> str:
    simulators = ("gymnasium", "mujoco", "box2d", "pybullet", "numpy")
    versions = ", ".join(f"{name} {_version(name)}" for name in simulators)
    cpu = _cpu_name()
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return version("box2d-py") if name == "box2d" else "?"


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def table(seconds: float, repeats: int) -> str:
    lines = [
        "| id | group | observations | actions | extra | max steps | steps/s |",
        "|---|---|--:|--:|---|--:|--:|",
    ]
    for task in (*envs.SUITE, *envs.EXTRAS):
        lines.append(row(task, seconds, repeats))
        print(lines[-1], flush=True)
    note = (
        "Steps/s: one process, random actions, resets included, per second of processor time, "
        f"best of {repeats} runs of {seconds:g} s."
    )
    return "\n".join([*lines, "", f"{note} {machine()}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/tasks.md")
    settings = parser.parse_args()
    text = table(settings.seconds, settings.repeats)
    print("\n" + text)
    if settings.write:
        before, _, rest = DOCS.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
