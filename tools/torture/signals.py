"""Processes of their own, ended by real signals: fewer, as each costs seconds to start."""

import contextlib
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from torture import faults, kills
from torture.processes import SLIM, command, spawn
from torture.tally import Tally

FAULT = "SIGKILL at a system call"
ENDS = (
    "SIGKILL", FAULT, "SIGTERM", "SIGINT", "SIGINT twice", "SIGSTOP, SIGCONT, SIGKILL",
)  # fmt: skip
INTERPRETERS = 8  # one in so many is a whole `python -m adac resume`
PATIENCE = 600.0

Wait = Callable[[float], int | None]


def resume(folder: Path, log: Path, *, fault: int, whole: bool) -> tuple[int, Wait]:
    """Its process, and a function that waits for its exit code."""
    words = ["resume", str(folder)]
    if whole:
        return _interpreter(words, log)
    prepare = functools.partial(faults.kill_at, fault) if fault else _nothing
    process = spawn(command, words, log, prepare)
    return process.pid or 0, functools.partial(_join, process)


def _nothing() -> None:
    pass


def _join(process: BaseProcess, seconds: float) -> int | None:
    process.join(seconds)
    return process.exitcode


def _interpreter(words: list[str], log: Path) -> tuple[int, Wait]:
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "adac", *words],
            env=os.environ | SLIM,
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        )

    def wait(seconds: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(seconds)
        return None

    return process.pid, wait


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
    """A process after the other on one folder; begun anew if one finishes it."""

    def __init__(self, name: str, folder: Path, tally: Tally, draw: random.Random):
        self.name, self.folder, self.tally, self.draw = name, folder, tally, draw
        self.run, self.log = folder / "process", folder / "said"
        shutil.copytree(folder / "start", self.run)
        self.length = 10.0

    def _resume(self, fault: int = 0) -> tuple[int, Wait]:
        whole = not fault and self.draw.randrange(INTERPRETERS) == 0
        pid, wait = resume(self.run, self.log, fault=fault, whole=whole)
        while not holds(self.run, pid) and wait(0.01) is None:
            pass
        return pid, wait

    def kill(self) -> bool:
        how = self.draw.choice(ENDS)
        fault = self.draw.randrange(1, kills.CALLS) if how == FAULT else 0
        began = time.monotonic()
        pid, wait = self._resume(fault)
        code = wait(PATIENCE if fault else self.draw.uniform(0.0, self.length))
        if code is None:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                end(pid, how, self.draw)
            code = wait(PATIENCE)
        said = self.log.read_text(errors="replace")
        if code is None or "Traceback" in said or "--debug" in said or code in (1, 2):
            self.tally.fail(f"{self.name}: {how}: {code}: {said}")
        if code != 0:
            self.tally.note(how)
            return True
        self.length = time.monotonic() - began
        kills.compare(self.name, self.folder / "whole", self.run, code, self.tally)
        shutil.rmtree(self.run)
        shutil.copytree(self.folder / "start", self.run)
        return False

    def finish(self) -> None:
        _, wait = self._resume()
        kills.compare(self.name, self.folder / "whole", self.run, wait(PATIENCE), self.tally)


def run_case(name: str, folder: Path, seed: str, times: int) -> Tally:
    """Of the run that `kills.run_case` has left begun in folder/start, and whole beside it."""
    tally = Tally()
    victim = Victim(name, folder, tally, random.Random(seed))
    for _ in range(times):
        victim.kill()
    victim.finish()
    return tally
