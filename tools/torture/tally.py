"""Counting: how often something was tried, what became of it, and what should not have."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adac.runs.files import write_whole

FOLDERS = re.compile(r"(?:/[\w.+-]+){2,}/(?=[\w.+-])")  # of this machine, before a file's name


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
        self.failures.append(FOLDERS.sub("", " ".join(what.split()))[:500])
        print(f"BROKEN: {self.failures[-1]}", flush=True)

    def add(self, other: "Tally") -> None:
        self.outcomes += other.outcomes
        self.results += other.results
        self.failures += other.failures
        self.mended += other.mended

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
class Batch:
    """What was counted of one state of the program."""

    program: str  # the last commit that changed it
    tallies: dict[str, Tally] = field(default_factory=dict)
    cases: Counter[str] = field(default_factory=Counter)  # how often each agent had its turn
    seconds: float = 0.0

    def tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally())

    def to_json(self) -> dict[str, Any]:
        return {
            "program": self.program,
            "seconds": round(self.seconds),
            "cases": dict(self.cases),
            "tallies": {name: tally.to_json() for name, tally in self.tallies.items()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Batch":
        tallies = {name: Tally.from_json(one) for name, one in data["tallies"].items()}
        return cls(data["program"], tallies, Counter(data["cases"]), data["seconds"])


@dataclass
class State:
    """All that was counted, in a file: who is stopped goes on counting from there."""

    path: Path
    batches: list[Batch]  # the last is being counted

    @classmethod
    def open(cls, path: Path, program: str) -> "State":
        data = json.loads(path.read_bytes())["batches"] if path.exists() else []
        batches = [Batch.from_json(one) for one in data if one["program"] != program]
        mine = [Batch.from_json(one) for one in data if one["program"] == program]
        return cls(path, batches + (mine or [Batch(program)]))

    @property
    def now(self) -> Batch:
        return self.batches[-1]

    def total(self, name: str) -> Tally:
        found = Tally()
        for batch in self.batches:
            found.add(batch.tally(name))
        return found

    @property
    def cases(self) -> Counter[str]:
        return sum((batch.cases for batch in self.batches), Counter())

    @property
    def seconds(self) -> float:
        return sum(batch.seconds for batch in self.batches)

    def mend(self) -> None:
        for batch in self.batches:
            for tally in batch.tallies.values():
                tally.mend()

    def save(self) -> None:
        data = {"batches": [batch.to_json() for batch in self.batches]}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, (json.dumps(data, indent=1) + "\n").encode())
