"""How fast adac trains, side by side with Stable-Baselines3 and SBX, in one run: `make bench`.

python benchmarks/speed.py                        three rounds of everything, about 35 minutes
python benchmarks/speed.py --only rate update --out /tmp/part    some measurements only
python benchmarks/speed.py --report               results.md and results.png anew, nothing measured

Every measurement is a process of its own, one at a time, adac's in the Python that runs this file
and the peers' in .venv-bench. A round has every measurement once, those that are compared next to
each other; the order turns round from one round to the next.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import speed_report

HERE = Path(__file__).parent
RAW = HERE / "results.jsonl"
PEERS_PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
TASKS = ("Hopper-v5", "Pendulum-v1")
MEASURES = ("rate", "update", "startup", "memory", "trials")
LONGEST = 900  # seconds that one measurement may take
FAILURES = (RuntimeError, OSError, subprocess.TimeoutExpired)

Result = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One process, or for `trials` several at once; `name` is how the report finds it."""

    name: str
    library: str  # adac, sbx or sb3
    arguments: tuple[str, ...]
    copies: int = 0  # of a trial with one thread and one core; 0: an ordinary process
    cold: bool = False  # with an empty compilation cache

    @property
    def measure(self) -> str:
        return self.name.partition("/")[0]


def jobs() -> Iterator[Job]:
    for task in TASKS:
        for agent in ("td3", "sac"):
            for library in ("adac", "sbx", "sb3"):
                yield _job("rate", library, task, agent)
        for agent in ("adac-td3", "crossq-td3", "adac-crossq"):
            yield _job("rate", "adac", task, agent)
    yield _job("rate", "adac", TASKS[0], "adac-td3-vime")
    yield _job("update", "adac", TASKS[0], "td3")
    yield _job("update", "adac", TASKS[0], "sac")
    yield _job("update", "adac", TASKS[0], "crossq-td3")
    for particles in (8, 32):
        yield _job("update", "adac", TASKS[0], "adac-td3", particles)
    for library in ("adac", "sbx", "sb3"):
        yield _job("startup", library, TASKS[1], "td3")
    yield _job("startup", "adac", TASKS[1], "adac-td3")
    cold = _job("startup", "adac", TASKS[1], "adac-td3")
    yield Job(cold.name + "/cold", "adac", cold.arguments, cold=True)
    for library in ("adac", "sbx", "sb3"):
        yield _job("memory", library, TASKS[0], "td3")
    for copies in (1, 2):
        single = _job("rate", "adac", TASKS[0], "td3")
        yield Job(f"trials/{copies}", "adac", (*single.arguments, "--gate"), copies=copies)


def _job(measure: str, library: str, task: str, agent: str, particles: int = 0) -> Job:
    name = f"{measure}/{task}/{agent}"
    arguments: tuple[str, ...] = (measure, "--env", task, "--agent", agent)
    if particles:
        name += f"-{particles}"
        arguments += ("--particles", str(particles))
    if library != "adac":
        arguments += ("--library", library)
    return Job(f"{name}/{library}", library, arguments)


class Runner:
    """Runs jobs. `cache` stays for the whole benchmark, so compilation caches are warm in it."""

    def __init__(self, seconds: float, cache: Path, longest: float = LONGEST):
        self.seconds, self.cache, self.longest = seconds, cache, longest

    def run(self, job: Job) -> Result:
        with tempfile.TemporaryDirectory() as scratch:
            count = max(job.copies, 1)
            processes = [self._start(job, i, Path(scratch)) for i in range(count)]
            try:
                if job.copies:
                    _release_together(processes)
                results = [_collect(process, self.longest) for process in processes]
            except RuntimeError as failure:
                said = "".join(path.read_text() for path in Path(scratch).glob("errors-*"))
                raise RuntimeError(f"{failure}: {said.strip()[-300:]}") from None
            finally:
                for process in processes:
                    process.kill()  # does nothing to one that has ended
                    process.wait()
        if job.copies:
            return {"steps_per_second": sum(r["steps_per_second"] for r in results)}
        return results[0]

    def _start(self, job: Job, index: int, scratch: Path) -> "subprocess.Popen[str]":
        ours = job.library == "adac"
        python = sys.executable if ours else str(PEERS_PYTHON)
        command = [python, str(HERE / ("ours.py" if ours else "peers.py")), *job.arguments]
        command += ["--seconds", str(self.seconds)]
        cache = scratch / "cache" if job.cold else self.cache
        environment = os.environ | {"XDG_CACHE_HOME": str(cache), "JAX_PLATFORMS": "cpu"}
        if job.copies:
            environment |= _one_thread()
            command += ["--core", str(_cores()[index])]
        if job.measure == "startup":
            command += ["--out", str(scratch / "run")] if ours else []
            command += ["--began", str(time.monotonic())]
        pipe = subprocess.PIPE
        with (scratch / f"errors-{index}").open("w") as errors:
            return subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment
            )


def _one_thread() -> dict[str, str]:
    """What a sweep sets for the trials that it runs side by side."""
    from adac.experiments.sweeps.workers import SINGLE_THREAD

    return SINGLE_THREAD


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]


def _release_together(processes: Sequence["subprocess.Popen[str]"]) -> None:
    """Timing starts when the slowest has warmed up."""
    for process in processes:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "ready\n":
                break
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def _collect(process: "subprocess.Popen[str]", longest: float) -> Result:
    output, _ = process.communicate(timeout=longest)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        raise RuntimeError(f"exit status {process.returncode}")
    result: Result = json.loads(lines[-1])
    return result


def measure(settings: argparse.Namespace, keep: Callable[[Result], None]) -> None:
    chosen = [job for job in jobs() if job.measure in settings.only]
    chosen = [job for job in chosen if all(part in job.name for part in settings.match)]
    with tempfile.TemporaryDirectory(prefix="adac-bench-") as cache:
        runner = Runner(settings.seconds, Path(cache))
        for job in chosen:
            if job.measure == "startup" and not job.cold:
                with contextlib.suppress(*FAILURES):  # told below, in the first round
                    runner.run(job)  # fills the compilation cache, and the system's file cache
        for number in range(settings.rounds):
            for job in chosen if number % 2 == 0 else reversed(chosen):
                busy = speed_report.Busy()
                try:
                    result = runner.run(job)
                except FAILURES as failure:
                    result = {"error": str(failure)}
                others = round(busy.others(), 3)
                print(f"round {number + 1}  {job.name:40s} {_brief(result)}", flush=True)
                keep({"round": number, "job": job.name, "others": others, **result})


def _brief(result: Result) -> str:
    return "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in result.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of timing per measurement")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--match", nargs="+", default=(), help="parts of a measurement's name")
    parser.add_argument("--report", action="store_true", help="from the results there are")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    settings = parser.parse_args()
    partial = settings.match or len(settings.only) < len(MEASURES)
    if partial and settings.out == HERE and not settings.report:
        sys.exit("a part would overwrite the whole: give --out with --only or --match")
    raw = settings.out / RAW.name
    if not settings.report:
        if not PEERS_PYTHON.exists():
            sys.exit(f"there is no {PEERS_PYTHON}: run `make bench`")
        settings.out.mkdir(parents=True, exist_ok=True)
        facts = speed_report.machine(PEERS_PYTHON) | {"seconds": settings.seconds}
        with raw.open("w") as file:

            def keep(record: Result) -> None:
                print(json.dumps(record), file=file, flush=True)

            keep(facts)
            measure(settings, keep)
    speed_report.write(raw, settings.out)


if __name__ == "__main__":
    main()
