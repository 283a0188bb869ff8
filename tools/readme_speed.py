"""The tables of speed in README and docs/performance.md, written from benchmarks/results.jsonl.

python tools/readme_speed.py           writes both anew; `make bench` does it at its end
python tools/readme_speed.py --check   are they what the file says? exit code 1 if not
"""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import written_tables

RAW = written_tables.ROOT / "benchmarks" / "results.jsonl"
sys.path.append(str(RAW.parent))

import speed_report  # noqa: E402  beside the file that it reads

PEERS = ("sbx", "sb3")
TASKS = ("Hopper-v5", "Pendulum-v1")


def rates(found: speed_report.Values, tasks: Sequence[str]) -> list[str]:
    """Steps per second beside the peers', and how many times theirs that is."""
    names = [speed_report.LIBRARIES[peer] for peer in PEERS]
    lines = [
        f"| training, steps per second | adac | {' | '.join(names)} |",
        f"|---|{'--:|' * (1 + len(PEERS))}",
    ]
    for agent in ("td3", "sac"):
        for task in tasks:
            job = f"rate/{task}/{agent}"
            cells = [_rate(found, f"{job}/adac"), *(_beside(found, job, peer) for peer in PEERS)]
            lines.append(f"| `{agent}`, {task} | {' | '.join(cells)} |")
    return lines


def _rate(found: speed_report.Values, job: str) -> str:
    said = speed_report.per_round(found, job, "steps_per_second")
    return f"{statistics.median(said.values()):.0f}" if said else "–"


def _beside(found: speed_report.Values, job: str, peer: str) -> str:
    ratio = speed_report.Target("", f"{job}/adac", f"{job}/{peer}", 0.0).values(found)
    rate = _rate(found, f"{job}/{peer}")
    return f"{rate} (ours\N{NO-BREAK SPACE}{statistics.median(ratio):.1f}×)" if ratio else rate


def origin(facts: speed_report.Facts, found: speed_report.Values) -> str:
    rounds = max((len(said) for said in found.values()), default=0)
    return (
        f"Version {speed_report.version(facts)}, {facts['date']}, {facts['cores']} cores of"
        f" {facts['cpu']}, medians of {rounds} rounds."
    )


def ratios(found: speed_report.Values) -> Sequence[str]:
    """Every ratio with its target, as benchmarks/results.md has them."""
    met, of = speed_report.met(found)
    return [*speed_report.targets_table(found), f"{met} of {of} targets are met."]


def pages(raw: Path = RAW) -> dict[str, str]:
    facts, found = speed_report.read(raw)
    said = origin(facts, found)
    return {
        "README.md": "\n".join(["", *rates(found, TASKS[:1]), "", said]),
        "docs/performance.md": "\n".join([said, "", *rates(found, TASKS), "", *ratios(found)]),
    }


if __name__ == "__main__":
    written_tables.main("speed", pages())
