"""Counting: how often something was tried, what became of it, and what should not have."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """One attack. `outcomes` are words for what happened; `failures` break a promise."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def note(self, outcome: str, times: int = 1) -> None:
        self.outcomes[outcome] += times

    def fail(self, what: str) -> None:
        self.outcomes["FAILED"] += 1
        self.failures.append(" ".join(what.split())[:300])
        print(f"BROKEN: {self.failures[-1]}", flush=True)

    @property
    def tried(self) -> int:
        return sum(self.outcomes.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{word} {count:,}" for word, count in sorted(self.outcomes.items()))
        return f"{self.name}: {self.tried:,} ({parts})"
