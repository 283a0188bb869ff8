"""Runs ended at random moments: every finished one must equal the uninterrupted one.

Most are ended inside of a process that goes on (see `faults`), which costs a tenth of a new one.
"""

import contextlib
import io
import json
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from adac.cli.main import main
from adac.runs.csv_table import read_table
from adac.runs.folder import BEST
from torture import faults, matrix
from torture.tally import Tally

STEPS = 160
FIRST_CALLS = 45  # about as many as there are until a new run has its config.json
CALLS = 70  # about as many as a resumed run makes before it ends
CLOCKS = ("steps_per_second", "wall_seconds")
FAULT = "death at a system call"
BEGINNING = "death at a system call of the beginning"
ENDS = (BEGINNING, "death at a moment", FAULT, "SIGTERM", "SIGINT", "SIGINT twice")


def rows(path: Path) -> list[dict[str, str]]:
    found = read_table(path)
    for row in found:
        for name in CLOCKS:
            row.pop(name, None)
    return found


def facts(folder: Path) -> dict[str, Any]:
    newest = sorted((folder / "checkpoint").glob("step-*.json"))[-1]
    body: dict[str, Any] = json.loads(newest.read_text())["body"]
    for clock in ("wall_seconds", "tables"):  # the tables' checksums are over clocks, too
        del body["facts"][clock]
    return body


def differences(whole: Path, other: Path) -> list[str]:
    """The manifest carries the checksums of weights, optimisers, random states and replay."""
    found = [] if facts(whole) == facts(other) else ["checkpoint"]
    tables = ("metrics.csv", "evaluations.csv")
    found += [name for name in tables if rows(whole / name) != rows(other / name)]
    files = (BEST, Path("config.json"))
    return found + [
        str(name) for name in files if (whole / name).read_bytes() != (other / name).read_bytes()
    ]


def compare(name: str, whole: Path, other: Path, code: int | None, tally: Tally) -> None:
    differing = differences(whole, other) if code == 0 else [f"its exit code {code}"]
    if differing:
        tally.fail(f"{name}: the run differs in {', '.join(differing)}")
    else:
        tally.result("runs finished, equal to the byte")


def resume(folder: Path) -> tuple[int | None, str]:
    """`adac resume` in this process: its exit code, None if it died, and what it said."""
    said = io.StringIO()
    code: int | None = None
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(["resume", str(folder)])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        except faults.DeathError:
            code = None
        except KeyboardInterrupt:  # as it leaves a program
            code = 130
    return code, said.getvalue()


class Victim:
    """A run that is ended again and again; begun anew if it finishes before that."""

    def __init__(self, name: str, folder: Path, tally: Tally, draw: random.Random):
        self.name, self.tally, self.draw = name, tally, draw
        self.start, self.whole, self.run = (folder / n for n in ("start", "whole", "victim"))
        matrix.start(name, self.start, STEPS)
        for copy in (self.whole, self.run):
            shutil.copytree(self.start, copy)
        began = time.monotonic()
        code, said = resume(self.whole)
        self.length = time.monotonic() - began
        if code != 0:
            raise RuntimeError(f"the uninterrupted run ended with {code}: {said}")

    def _begun(self) -> tuple[int | None, str]:
        """A new run that dies at once; the same command begins it anew if it has left none."""
        shutil.rmtree(self.run)
        code: int | None = 0
        with faults.dying_at(self.draw.randrange(1, FIRST_CALLS)):
            try:
                matrix.start(self.name, self.run, STEPS)
            except faults.DeathError:
                code = None
        if not (self.run / "config.json").exists():
            matrix.start(self.name, self.run, STEPS)
        return code, ""

    def _ended(self, how: str) -> tuple[int | None, str]:
        if how == BEGINNING:
            return self._begun()
        if how == FAULT:
            with faults.dying_at(self.draw.randrange(1, CALLS)):
                return resume(self.run)
        moment, again = self.draw.uniform(0.0, self.length), [how == "SIGINT twice"]
        with faults.dying_at(0) as counter:

            def act() -> float:
                if not how.startswith("SIG"):
                    counter.now()
                number = signal.SIGTERM if how == "SIGTERM" else signal.SIGINT
                if signal.getsignal(number) is signal.SIG_DFL:  # which ends a process
                    counter.now()
                next_ = self.draw.uniform(1e-4, 0.05) if again[0] else 0.0
                again[0] = False
                signal.setitimer(signal.ITIMER_REAL, next_)
                signal.raise_signal(number)
                return next_

            with faults.at_a_moment(moment, act):
                return resume(self.run)

    def kill(self) -> bool:
        """Whether it was alive to be killed."""
        how = self.draw.choice(ENDS)
        began = time.monotonic()
        code, said = self._ended(how)
        if "Traceback" in said or "--debug" in said or code in (1, 2):
            self.tally.fail(f"{self.name}: {how}: {code}: {said}")
        if code != 0:
            self.tally.note(how)
            return True
        if how == BEGINNING:
            return False
        self.length = time.monotonic() - began  # it finished first
        compare(self.name, self.whole, self.run, code, self.tally)
        shutil.rmtree(self.run)
        shutil.copytree(self.start, self.run)
        return False

    def finish(self) -> None:
        compare(self.name, self.whole, self.run, resume(self.run)[0], self.tally)


def run_case(name: str, folder: Path, seed: str, kills: int) -> Tally:
    """Leaves the uninterrupted run in folder/whole, and one just begun in folder/start."""
    tally = Tally()
    victim = Victim(name, folder, tally, random.Random(seed))
    sent = 0
    for _ in range(3 * kills):
        sent += victim.kill()
        if sent == kills:
            break
    victim.finish()
    return tally
