"""Processes ended at random moments: every finished run must equal the uninterrupted one."""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from torture.matrix import Case, begin
from torture.tally import Tally

STEPS = 1_500
CLOCKS = {"steps_per_second", "wall_seconds"}
ENDS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT", "SIGINT twice", "SIGSTOP, then SIGKILL")
SLIM = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}


def resume(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "adac", "resume", str(folder)],
        env=os.environ | SLIM,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def holds(folder: Path, process: "subprocess.Popen[str]") -> bool:
    try:
        return (folder / ".lock").read_text().strip() == str(process.pid)
    except OSError:
        return False


def end(process: "subprocess.Popen[str]", how: str, draw: random.Random) -> None:
    if how.startswith("SIGSTOP"):
        process.send_signal(signal.SIGSTOP)
        time.sleep(draw.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
    elif how == "SIGINT twice":
        process.send_signal(signal.SIGINT)
        time.sleep(draw.uniform(0.0, 0.05))
        process.send_signal(signal.SIGINT)
    else:
        process.send_signal(getattr(signal, how))


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return [{k: v for k, v in row.items() if k not in CLOCKS} for row in csv.DictReader(file)]


def facts(folder: Path) -> dict[str, Any]:
    newest = sorted((folder / "checkpoint").glob("step-*.json"))[-1]
    body: dict[str, Any] = json.loads(newest.read_text())["body"]
    del body["facts"]["wall_seconds"]
    return body


def differences(whole: Path, other: Path) -> list[str]:
    """The manifest carries the checksums of weights, optimisers, random states and replay."""
    found = [] if facts(whole) == facts(other) else ["checkpoint"]
    tables = ("metrics.csv", "evaluations.csv")
    return found + [name for name in tables if rows(whole / name) != rows(other / name)]


class Victim:
    """A run that is killed again and again; begun anew if it ends before that."""

    def __init__(self, case: Case, folder: Path, tally: Tally, draw: random.Random):
        self.case, self.folder, self.tally, self.draw = case, folder, tally, draw
        self.start, self.whole, self.run = (folder / n for n in ("start", "whole", "victim"))
        begin(case, self.start, STEPS)
        for copy in (self.whole, self.run):
            shutil.copytree(self.start, copy)
        process = self._resume(self.whole)
        started = time.monotonic()
        process.communicate()
        self.length = time.monotonic() - started
        self.sound = process.returncode == 0

    def _resume(self, folder: Path) -> "subprocess.Popen[str]":
        process = resume(folder)
        while not holds(folder, process) and process.poll() is None:
            time.sleep(0.01)
        return process

    def kill(self) -> bool:
        """Whether it was alive to be killed."""
        process = self._resume(self.run)
        try:
            process.wait(self.draw.uniform(0.0, self.length))
        except subprocess.TimeoutExpired:
            how = self.draw.choice(ENDS)
            end(process, how, self.draw)
            _, said = process.communicate(timeout=120)
            self.tally.note(how)
            if "Traceback" in said or "--debug" in said:
                self.tally.fail(f"{self.case.name}: {how}: {said}")
            return True
        process.communicate()
        self.length /= 2  # compiled by now, so faster than the first
        self.compare(process.returncode)
        shutil.rmtree(self.run)
        shutil.copytree(self.start, self.run)
        return False

    def finish(self) -> None:
        process = self._resume(self.run)
        process.communicate()
        self.compare(process.returncode)

    def compare(self, code: int | None) -> None:
        differing = differences(self.whole, self.run) if code == 0 else [f"its exit code {code}"]
        if differing:
            self.tally.fail(f"{self.case.name}: the run differs in {', '.join(differing)}")
        else:
            self.tally.note("runs finished, equal to the byte")


def run_case(case: Case, folder: Path, tally: Tally, draw: random.Random, kills: int) -> None:
    victim = Victim(case, folder, tally, draw)
    if not victim.sound:
        tally.fail(f"{case.name}: the uninterrupted run did not end well")
        return
    sent = 0
    for _ in range(3 * kills):
        sent += victim.kill()
        if sent == kills:
            break
    victim.finish()
