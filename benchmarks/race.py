"""How long until a policy is worth something: seconds of training to a return, beside SBX's.

make race                                       what is missing in race.jsonl, then the table
python benchmarks/race.py --task Hopper-v4 --entrant adac/crossq-td3     a part of it
python benchmarks/race.py --report              the table of what there is

Each entrant trains through its own `learn` with its own defaults, one process at a time on all
cores, and is evaluated every 2,500 steps over five episodes with the clock stopped. Nothing else
should run meanwhile. Hours: an entrant that does not arrive is stopped after --seconds.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import speed
import speed_report

RAW = Path(__file__).parent / "race.jsonl"
GOALS: dict[str, tuple[float, ...]] = {
    "Hopper-v4": (1_000.0, 2_000.0), "HalfCheetah-v4": (5_000.0,), "Walker2d-v4": (1_500.0,),
}  # fmt: skip
OURS = ("adac/td3", "adac/crossq-td3", "adac/adac-crossq")
PEERS = ("sbx/td3", "sbx/sac", "sbx/tqc", "sbx/crossq")
SEEDS = (100, 101, 102)
SLACK = 600.0  # seconds that evaluations may take

Key = tuple[str, str, int]  # entrant, task, seed
Found = dict[Key, speed.Result]


def job(entrant: str, task: str, seed: int) -> speed.Job:
    library, agent = entrant.split("/")
    arguments = ["race", "--env", task, "--agent", agent, "--seed", str(seed)]
    for goal in GOALS[task]:
        arguments += ["--goal", str(goal)]
    if library != "adac":
        arguments += ["--library", library]
    return speed.Job(f"race/{task}/{agent}/{library}", library, tuple(arguments))


def read(raw: Path = RAW) -> Found:
    rows = map(json.loads, raw.read_text().splitlines()) if raw.exists() else ()
    return {(row["entrant"], row["task"], row["seed"]): row for row in rows}


def run(keys: Sequence[Key], seconds: float) -> None:
    found = read()
    with tempfile.TemporaryDirectory(prefix="adac-race-") as cache:
        runner = speed.Runner(seconds, Path(cache), longest=seconds + SLACK)
        for key in keys:
            if key in found:
                continue
            busy = speed_report.Busy()
            entrant, task, seed = key
            result = runner.run(job(*key)) | {"limit": seconds, "others": round(busy.others(), 3)}
            facts = {"entrant": entrant, "task": task, "seed": seed, **result}
            with RAW.open("a") as file:
                print(json.dumps(facts), file=file)
            print(f"{entrant} on {task}, seed {seed}: {result['reached'] or 'did not arrive'}")


def cell(found: Found, entrant: str, task: str, goal: float) -> str:
    """The median over seeds; a seed that did not arrive counts as later than any that did."""
    rows = [row for (e, t, _), row in found.items() if (e, t) == (entrant, task)]
    if not rows:
        return "–"
    at = [row["reached"].get(f"{goal:g}", {}).get("seconds", float("inf")) for row in rows]
    median = statistics.median_high(at)
    said = f"{median:,.0f}" if median < float("inf") else f"> {rows[0]['limit']:,.0f}"
    return f"{said} ({len(rows)})"


def table(found: Found) -> list[str]:
    races = [(task, goal) for task, goals in GOALS.items() for goal in goals]
    heads = [f"{task} {goal:,.0f}" for task, goal in races]
    lines = [f"| seconds to (seeds) | {' | '.join(heads)} |", f"|---|{'--:|' * len(races)}"]
    for entrant in (*OURS, *PEERS):
        cells = [cell(found, entrant, *race) for race in races]
        library, agent = entrant.split("/")
        lines.append(f"| {speed_report.LIBRARIES[library]} `{agent}` | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", action="append", choices=GOALS)
    parser.add_argument("--entrant", action="append", choices=(*OURS, *PEERS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--seconds", type=float, default=1_800.0, help="of training at most")
    parser.add_argument("--report", action="store_true", help="from the results there are")
    options = parser.parse_args()
    if not options.report:
        if not speed.PEERS_PYTHON.exists():
            sys.exit(f"there is no {speed.PEERS_PYTHON}: run `make race`")
        entrants, tasks = options.entrant or (*OURS, *PEERS), options.task or GOALS
        keys = [(e, t, s) for s in options.seeds for t in tasks for e in entrants]
        run(keys, options.seconds)
    print("\n".join(table(read())))


if __name__ == "__main__":
    main()
