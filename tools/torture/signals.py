"""Processes ended from outside, by real signals at any moment.

A process that SIGTERM or Ctrl-C has stopped is asked again, as it has the agent compiled; after
SIGKILL there is a new one, and now and then a whole interpreter.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from torture import faults, kills
from torture.processes import INTERRUPTED, SLIM, Worker
from torture.tally import Tally

FAULT = "SIGKILL at a system call"
ENDS = (
    "SIGKILL", FAULT, "SIGSTOP, SIGCONT, SIGKILL",
    "SIGTERM", "SIGTERM", "SIGINT", "SIGINT", "SIGINT twice", "SIGINT twice",
)  # fmt: skip
INTERPRETERS = 12  # one in so many is a whole `python -m adac resume`
PATIENCE = 600.0
COLD = 10.0  # seconds that a new process needs about

Ended = tuple[int | None, str]


def resume(folder: Path, fault: int) -> Ended:
    """In a worker: its exit code and what it said."""
    with faults.dying_at(fault, faults.killed):
        return kills.resume(folder)


class Interpreter:
    """`python -m adac resume`, as the shell starts it."""

    def __init__(self, folder: Path, log: Path):
        self.log = log
        with open(log, "wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "adac", "resume", str(folder)],
                env=os.environ | SLIM,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def wait(self, seconds: float) -> Ended | None:
        try:
            return self._process.wait(seconds), self.log.read_text(errors="replace")
        except subprocess.TimeoutExpired:
            return None


class Warm:
    """A worker that resumes; another one once it is dead."""

    def __init__(self, worker: Worker):
        self._worker: Worker | None = worker
        self.cold = False

    def begin(self, folder: Path, fault: int) -> None:
        self.cold = self._worker is None
        self._worker = self._worker or Worker()
        self.pid = self._worker.pid
        self._worker.send(resume, folder, fault)

    def wait(self, seconds: float) -> Ended | None:
        assert self._worker is not None
        try:
            found = self._worker.answer(seconds)
        except EOFError:
            code, self._worker = self._worker.ended(), None
            return code, ""
        if found is None:
            return None
        good, answer = found
        if good:
            return answer[0], answer[1]
        return 130 if answer == INTERRUPTED else 1, str(answer)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()


def holds(folder: Path, pid: int) -> bool:
    try:
        return (folder / ".lock").read_text().strip() == str(pid)
    except OSError:
        return False


def end(pid: int, how: str, draw: random.Random) -> None:
    if how.startswith("SIGSTOP"):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(draw.uniform(0.0, 0.2))
        os.kill(pid, signal.SIGCONT)
        time.sleep(draw.uniform(0.0, 0.1))
        os.kill(pid, signal.SIGKILL)
    elif how == "SIGINT twice":
        os.kill(pid, signal.SIGINT)
        time.sleep(draw.uniform(0.0, 0.05))
        os.kill(pid, signal.SIGINT)
    else:
        os.kill(pid, getattr(signal, how))


class Victim:
    """One process after the other on one folder, which is begun anew if one finishes it."""

    def __init__(self, name: str, folder: Path, tally: Tally, draw: random.Random, warm: Warm):
        self.name, self.folder, self.tally, self.draw = name, folder, tally, draw
        self.run, self.log, self.warm = folder / "process", folder / "said", warm
        shutil.copytree(folder / "start", self.run)
        self.length = 1.0  # of a run by a process that has compiled

    def _begin(self, fault: int) -> tuple[Warm | Interpreter, float]:
        """The process, and how long it may take about."""
        if not fault and self.draw.randrange(INTERPRETERS) == 0:
            return Interpreter(self.run, self.log), COLD
        self.warm.begin(self.run, fault)
        return self.warm, COLD if self.warm.cold else self.length

    def kill(self) -> None:
        how = self.draw.choice(ENDS)
        fault = self.draw.randrange(1, kills.CALLS) if how == FAULT else 0
        process, length = self._begin(fault)
        ended = self._held(process)
        began = time.monotonic()
        if ended is None:
            ended = process.wait(PATIENCE if fault else self.draw.uniform(0.0, length))
        if ended is None:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                end(process.pid, how, self.draw)
            ended = process.wait(PATIENCE)
        code, said = ended or (None, "it did not end")
        if ended is None or "Traceback" in said or "--debug" in said or code in (1, 2):
            self.tally.fail(f"{self.name}: {how}: {code}: {said}")
        if code != 0:
            self.tally.note(how)
            self.tally.result("ended by signals from outside")
            return
        self._finished(code)
        if length != COLD:
            self.length = time.monotonic() - began

    def _held(self, process: Warm | Interpreter) -> Ended | None:
        while not holds(self.run, process.pid):
            if (ended := process.wait(0.01)) is not None:
                return ended
        return None

    def _finished(self, code: int | None) -> None:
        kills.compare(self.name, self.folder / "whole", self.run, code, self.tally)
        shutil.rmtree(self.run)
        shutil.copytree(self.folder / "start", self.run)

    def finish(self) -> None:
        self.warm.begin(self.run, 0)
        ended = self.warm.wait(PATIENCE)
        self._finished(ended[0] if ended else None)


def run_case(name: str, folder: Path, seed: str, times: int, worker: Worker) -> Tally:
    """Of the run that `kills.run_case` has left begun in folder/start, and whole beside it. Takes
    the worker over, which has compiled the agent."""
    tally, warm = Tally(), Warm(worker)
    victim = Victim(name, folder, tally, random.Random(seed), warm)
    try:
        for _ in range(3 * times):
            victim.kill()
            if tally.tried == times:
                break
        victim.finish()
    finally:
        warm.close()
    return tally
