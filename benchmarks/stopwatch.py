"""What ours.py and peers.py share: the same steps are timed in the same way.

The standard library only, because it runs in the virtual environments of both.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Learning starts after so many random steps, and timing some updates later: by then everything is
# compiled, the row of metrics at step 1,000 included.
LEARNING_STARTS = 900
TIMING_STARTS = 1_100

FOREVER = 1_000_000  # steps; the stopwatch ends every run long before
ROWS = 1_000_000  # of the replay buffer
EVALUATE_EVERY, EPISODES = 2_500, 5  # of a race


class Stopwatch:
    """Fed the step number after every step; `tick` returns whether to go on."""

    def __init__(
        self, seconds: float, *, gate: bool = False, finish: Callable[[], Any] = lambda: None
    ):
        self.seconds = seconds
        self.gate = gate
        self.finish = finish  # waits until the work dispatched so far is done
        self._began = 0.0
        self._first = self._last = 0

    def tick(self, step: int) -> bool:
        if step < TIMING_STARTS:
            return True
        if not self._first:
            self.finish()
            if self.gate:
                _wait_for_the_others()
            self._first, self._began = step, time.perf_counter()
        self._last = step
        return time.perf_counter() - self._began < self.seconds

    def result(self) -> dict[str, float]:
        """To be called as soon as `tick` has returned False."""
        self.finish()
        elapsed = time.perf_counter() - self._began
        steps = self._last - self._first
        return {"steps": steps, "seconds": elapsed, "steps_per_second": steps / elapsed}


class Race:
    """Fed the step number after every step, until π's return has reached every goal.

    The clock runs from the first step, compilation included, and stands still while π is evaluated.
    """

    def __init__(
        self,
        goals: Sequence[float],
        seconds: float,
        evaluate: Callable[[], float],
        finish: Callable[[], Any] = lambda: None,
    ):
        self.goals, self.seconds = goals, seconds
        self.evaluate, self.finish = evaluate, finish
        self.reached: dict[str, dict[str, float]] = {}
        self.spent, self._resumed, self._last = 0.0, time.perf_counter(), 0

    def tick(self, step: int) -> bool:
        if step < self._last + EVALUATE_EVERY:
            return True
        self.finish()
        self.spent += time.perf_counter() - self._resumed
        value, self._last = self.evaluate(), step
        for goal in self.goals:
            if value >= goal:
                now = {"seconds": self.spent, "steps": step, "return": value}
                self.reached.setdefault(f"{goal:g}", now)
        self._resumed = time.perf_counter()
        return len(self.reached) < len(self.goals) and self.spent < self.seconds

    def result(self) -> dict[str, Any]:
        return {"reached": self.reached, "seconds": self.spent, "steps": self._last}


def _wait_for_the_others() -> None:
    """Say that the warm-up is over, and start when told."""
    print("ready", flush=True)
    sys.stdin.readline()


def resident_megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) / 1024
    raise OSError("this system does not tell the memory of a process")


def report(result: dict[str, Any]) -> None:
    print(json.dumps(result), flush=True)
