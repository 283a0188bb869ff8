"""Counting: how often something was tried, what became of it, and what should not have."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adac.runs.files import write_whole

KEPT = 40  # broken promises that are written out


@dataclass
class Tally:
    """One attack. `outcomes` are what was tried, by what happened; `failures` break a promise."""

    outcomes: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)  # seen besides, and not a trial itself
    failures: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)  # failures of an earlier state of the code

    def note(self, outcome: str, times: int = 1) -> None:
        self.outcomes[outcome] += times

    def result(self, what: str, times: int = 1) -> None:
        self.results[what] += times

    def fail(self, what: str) -> None:
        self.failures.append(" ".join(what.split())[:500])
        print(f"BROKEN: {self.failures[-1]}", flush=True)

    def add(self, other: "Tally") -> None:
        self.outcomes += other.outcomes
        self.results += other.results
        self.failures += other.failures

    @property
    def tried(self) -> int:
        return sum(self.outcomes.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "outcomes": dict(self.outcomes),
            "results": dict(self.results),
            "failures": self.failures,
            "mended": self.mended,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Tally":
        counters = Counter(data["outcomes"]), Counter(data["results"])
        return cls(*counters, list(data["failures"]), list(data["mended"]))

    def mend(self) -> None:
        """What was found so far has been mended, and is told as such."""
        self.mended, self.failures = self.mended + self.failures, []


@dataclass
class State:
    """All that was counted, in a file: who is stopped goes on counting from there."""

    path: Path
    tallies: dict[str, Tally] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)  # how often each agent had its turn
    seconds: float = 0.0

    @classmethod
    def open(cls, path: Path) -> "State":
        if not path.exists():
            return cls(path)
        data = json.loads(path.read_bytes())
        tallies = {name: Tally.from_json(one) for name, one in data["tallies"].items()}
        return cls(path, tallies, data["cases"], data["seconds"])

    def tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally())

    def save(self) -> None:
        tallies = {name: tally.to_json() for name, tally in self.tallies.items()}
        data = {"tallies": tallies, "cases": self.cases, "seconds": self.seconds}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, (json.dumps(data, indent=1) + "\n").encode())
