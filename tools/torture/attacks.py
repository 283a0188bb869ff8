"""`python -m torture`: attack adac's promises until the targets are met, and count.

It can be stopped at any time and goes on from where it was: `--state` keeps the counts.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torture import crashes, damage, kills, matrix, page, signals, sweeps, words
from torture.processes import Worker, ask
from torture.tally import State, Tally

ROOT = Path(__file__).parents[2]
TARGETS = {"kills": 1_000, "damage": 10_000, "words": 10_000, "sweeps": 100}
PER_CASE = {"kills": 36, "damage": 420}
SIGNALS = 9  # from outside, on each of the agents that have every kind between them
WORDS, SWEEPS = 500, 16


def scratch() -> str | None:
    """In memory where that is possible: a busy disk makes everything wait, and shows no more."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def case(name: str, folder: Path, seed: str) -> dict[str, Tally]:
    """All that is done to one agent in one process, so that it is compiled once."""
    return {
        "kills": kills.run_case(name, folder, seed, PER_CASE["kills"]),
        "crashes": crashes.run_case(name, folder),
        "damage": damage.run_case(name, folder, seed, PER_CASE["damage"]),
    }


def attack_case(state: State) -> None:
    name, turns = matrix.least_done(state.cases).name, state.cases
    seed = f"{name} {turns[name]}"
    place = Path(tempfile.mkdtemp(prefix="adac-torture-", dir=scratch()))
    worker = Worker()
    try:
        found: dict[str, Tally] = worker.ask(case, name, place, seed, seconds=3_600.0)
        if name in {case.name for case in matrix.first()}:
            found["kills"].add(signals.run_case(name, place, seed, SIGNALS, worker))
        for kind, tally in found.items():
            state.now.tally(kind).add(tally)
    except Exception as error:
        state.now.tally("kills").fail(f"{name}: {type(error).__name__}: {error}")
    finally:
        worker.close()
        shutil.rmtree(place, ignore_errors=True)
    state.now.cases[name] += 1


def attack_words(state: State) -> None:
    seed = f"words {state.total('words').tried}"
    state.now.tally("words").add(ask(words.run, seed, WORDS))


def attack_sweeps(state: State) -> None:
    done = state.total("sweeps").tried
    far = done // SWEEPS % 2 == 1
    place = Path(tempfile.mkdtemp(prefix="adac-torture-"))
    try:
        state.now.tally("sweeps").add(sweeps.run(place, f"sweeps {done}", SWEEPS, far=far))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def program() -> str:
    """The last commit that changed the program itself: others do not make its counts old."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", "-C", str(ROOT), *words], text=True).strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("log", "-1", "--format=%h", "--", "src") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


ATTACKS: dict[str, Callable[[State], None]] = {
    "kills": attack_case, "damage": attack_case, "words": attack_words, "sweeps": attack_sweeps,
}  # fmt: skip


def furthest_behind(state: State, only: list[str], *, on: bool = False) -> str | None:
    """The attack with the smallest part of its target; None when all are met, unless `on`."""
    parts = {name: state.total(name).tried / TARGETS[name] for name in only}
    name = min(parts, key=lambda name: parts[name])
    return name if on or parts[name] < 1.0 else None


def go(state: State, minutes: float, path: Path, only: list[str], *, on: bool = False) -> None:
    end = time.monotonic() + 60.0 * minutes
    while (name := furthest_behind(state, only, on=on)) and time.monotonic() < end:
        began = time.monotonic()
        ATTACKS[name](state)
        state.now.seconds += time.monotonic() - began
        state.save()
        page.write(path, state, TARGETS)
        print(page.line(state), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="at most")
    parser.add_argument("--state", type=Path, default=ROOT / "results" / "reliability.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "reliability.md")
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--on", action="store_true", help="also when the targets are met")
    parser.add_argument("--mended", action="store_true", help="what was found so far is mended")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is begun is cleared away
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    state = State.open(options.state, program())
    if options.mended:
        state.mend()
        state.save()
    go(state, options.minutes, options.page, options.only, on=options.on)
    page.write(options.page, state, TARGETS)
    raise SystemExit(any(state.total(name).failures for name in page.TITLES))
