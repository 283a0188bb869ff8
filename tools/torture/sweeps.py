"""Sweeps whose processes are killed: no finished trial is lost, and every one ends as alone."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from adac.experiments.sweeps.trials import execute, is_done
from adac.experiments.sweeps.workers import SINGLE_THREAD
from torture.driver import trials
from torture.kills import rows
from torture.processes import SLIM, ask
from torture.tally import Tally

TRIALS = {trial.id: trial for trial in trials()}
OURS = {"raylet": "raylet/raylet", "head": "gcs/gcs_server"}  # Ray's processes, by their programs
# Killed at one moment. A driver that is started anew costs more than all else here.
LOCAL = (
    ("worker",), ("worker", "worker"), ("worker", "driver"), ("driver",),
    ("raylet",), ("worker", "raylet"), ("worker", "head"),
)  # fmt: skip
FAR = (("worker", "worker"), ("worker", "driver"), ("node",), ("worker", "node"))
PATIENCE = 600.0
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}


def references(folder: Path) -> None:
    os.environ.update(SINGLE_THREAD)  # as a sweep's own processes are: other flags, other bits
    for name, trial in TRIALS.items():
        execute(trial, folder / name)


def parents() -> dict[int, int]:
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(process.name)] = int(
                (process / "stat").read_text().rpartition(")")[2].split()[1]
            )
    return found


def descendants(pid: int) -> list[int]:
    above = parents()

    def below(one: int) -> bool:
        while one in above and one != pid:
            one = above[one]
        return one == pid

    return [one for one in above if below(one)]


def listening(pids: list[int]) -> set[str]:
    """The addresses, in hexadecimal, on which one of these processes listens."""
    inodes = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                inodes[f"socket:[{fields[9]}]"] = fields[1].partition(":")[0]
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
            found |= {inodes[link] for link in links if link in inodes}
    return found


def wait_for(what: Callable[[], object], why: str) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(f"{why} in {PATIENCE:g} seconds")
        time.sleep(0.2)


class Nodes:
    """The cluster of `torture.nodes`, or none: then each sweep has a Ray of its own."""

    def __init__(self, folder: Path, wanted: bool):
        self.address: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        if wanted:
            command = [sys.executable, "-m", "torture.nodes"]
            with open(folder / "nodes.log", "wb") as log:
                self._process = subprocess.Popen(
                    command,
                    env=os.environ | SLIM,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            self.address = [self._answer()]

    def _answer(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        print("kill", file=self._process.stdin, flush=True)
        self._answer()

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                self._process.communicate(timeout=60)
            self._process.kill()


class Victim:
    def __init__(self, place: Path, tally: Tally, draw: random.Random, *, far: bool):
        self.folder, self.alone, self.log = place / "sweep", place / "alone", place / "log"
        self.tally, self.draw = tally, draw
        self.nodes = Nodes(place, far)
        self.ends = FAR if far else LOCAL
        self.driver: subprocess.Popen[bytes] | None = None
        self.finished: dict[str, int] = {}
        self.hit: set[int] = set()

    def start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "torture.driver", str(self.folder), *self.nodes.address]
        with open(self.log, "wb") as log:
            return subprocess.Popen(command, env=os.environ | SLIM, stdout=log, stderr=log)

    def running(self) -> list[str]:
        """Trials that a worker is at."""
        places = [self.folder / name for name in TRIALS]
        begun = [p.name for p in places if not is_done(p) and (p / ".lock").exists()]
        return [name for name in begun if alive(self._worker(name))]

    def _worker(self, name: str) -> int:
        text = (self.folder / name / ".lock").read_text().strip()
        return int(text or 0)

    def kill(self) -> None:
        if self.driver is None or self.driver.poll() is not None:
            self.driver = self.start()
        driver = self.driver
        wait_for(lambda: self.running() or driver.poll() is not None, "no trial began")
        if driver.poll() is not None:
            self._over(driver)
            return
        time.sleep(self.draw.uniform(0.0, 2.0))
        self._look()
        together = self.draw.choice(self.ends)
        for how in together:
            if self._end(how, driver):
                self.tally.note(f"{how} killed")
        if {"driver", *OURS}.intersection(together):
            driver.wait(PATIENCE)
        self._look()

    def _end(self, how: str, driver: "subprocess.Popen[bytes]") -> bool:
        if how == "node":
            self.nodes.kill()
            return True
        if how == "driver":
            victims = [driver.pid]
        elif how == "worker":
            victims = [self._worker(name) for name in self.running()]
        else:
            victims = [pid for pid in descendants(driver.pid) if OURS[how] in program(pid)]
        for pid in victims:
            if pid not in self.hit:  # and on its way out
                self.hit.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
        return False

    def _look(self) -> None:
        """What was finished is finished still, and was not run again."""
        for name, when in self.finished.items():
            mark = self.folder / name / "done.json"
            if not mark.exists() or mark.stat().st_mtime_ns != when:
                self.tally.fail(f"the finished trial {name} was lost")
        for name in TRIALS:
            if is_done(self.folder / name):
                when = (self.folder / name / "done.json").stat().st_mtime_ns
                self.finished.setdefault(name, when)
        if self.driver is not None and not self.nodes.address:
            heard = listening(descendants(self.driver.pid))
            self.tally.result("times it listened on loopback only", int(bool(heard)))
            if not heard <= LOOPBACK:
                self.tally.fail(f"a sweep listens on {sorted(heard - LOOPBACK)}")

    def _over(self, driver: "subprocess.Popen[bytes]") -> None:
        """All is done, or something failed twice: then it is run again."""
        self._look()
        if driver.returncode == 0:
            self.compare()
            shutil.rmtree(self.folder)
            self.finished = {}

    def finish(self) -> None:
        for _ in range(6):
            if self.driver is None or self.driver.poll() is not None:
                self.driver = self.start()
            if self.driver.wait(2 * PATIENCE) == 0:
                self._over(self.driver)
                return
        self.tally.fail(f"a sweep did not end: {self.log.read_text(errors='replace')[-300:]}")

    def compare(self) -> None:
        for name in TRIALS:
            for table in ("metrics.csv", "evaluations.csv"):
                one, other = (rows(folder / name / table) for folder in (self.folder, self.alone))
                if one != other:
                    self.tally.fail(f"{name}: {table} is not that of a trial that ran alone")
        self.tally.result("sweeps finished, every trial as if alone")

    def close(self) -> None:
        if self.driver is not None:
            self.driver.kill()
            self.driver.wait()
        self.nodes.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def run(place: Path, seed: str, times: int, *, far: bool) -> Tally:
    tally, draw = Tally(), random.Random(seed)
    ask(references, place / "alone")
    victim = Victim(place, tally, draw, far=far)
    try:
        while tally.tried < times:
            victim.kill()
        victim.finish()
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        tally.fail(f"{error}: {victim.log.read_text(errors='replace')[-300:]}")
    finally:
        victim.close()
    return tally
