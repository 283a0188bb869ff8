"""python -m torture --minutes 60: attack adac's promises, count, and write docs/reliability.md."""

import argparse
import random
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from torture import crashes, damage, kills, words
from torture.matrix import Case, cases
from torture.page import write_page
from torture.tally import Tally

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
SHARES = {"kills": 0.5, "crashes": 0.1, "damage": 0.3, "words": 0.1}  # of the time


class Attack:
    """Cases in turn until the time is over; several threads may share one tally."""

    def __init__(self, tally: Tally, seconds: float, seed: int):
        self.tally, self.seed = tally, seed
        self.end = time.monotonic() + seconds
        self.waiting = list(cases())
        random.Random(seed).shuffle(self.waiting)
        self.done: set[str] = set()
        self._lock = threading.Lock()

    def _next(self) -> Case | None:
        with self._lock:
            if time.monotonic() >= self.end:
                return None
            case = self.waiting.pop(0)
            self.waiting.append(case)  # again when all have had their turn
            return case

    def go(self, one: Callable[[Case, Path, random.Random], None]) -> None:
        number = 0
        while (case := self._next()) is not None:
            number += 1
            draw = random.Random(f"{self.seed}-{case.name}-{number}")
            with tempfile.TemporaryDirectory(prefix="adac-torture-") as folder:
                try:
                    one(case, Path(folder), draw)
                except Exception as error:
                    self.tally.fail(f"{case.name}: {type(error).__name__}: {error}")
            self.done.add(case.name)
            print(self.tally, flush=True)


def attack_kills(attack: Attack, jobs: int) -> None:
    def one(case: Case, folder: Path, draw: random.Random) -> None:
        kills.run_case(case, folder, attack.tally, draw, kills=8)

    threads = [threading.Thread(target=attack.go, args=(one,)) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def attack_words(tally: Tally, seconds: float, seed: int) -> None:
    draw, end = random.Random(seed), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="adac-torture-") as folder:
        while time.monotonic() < end:
            words.run(Path(folder), tally, draw, 200)
    print(tally, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2, help="processes that are killed at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seconds = {name: 60.0 * options.minutes * share for name, share in SHARES.items()}
    tallies = {name: Tally(name) for name in SHARES}
    covered: dict[str, int] = {}

    attack = Attack(tallies["kills"], seconds["kills"], options.seed)
    attack_kills(attack, options.jobs)
    covered["kills"] = len(attack.done)
    attack = Attack(tallies["crashes"], seconds["crashes"], options.seed)
    attack.go(lambda case, folder, draw: crashes.run_case(case, folder, attack.tally))
    covered["crashes"] = len(attack.done)
    attack = Attack(tallies["damage"], seconds["damage"], options.seed)
    attack.go(lambda case, folder, draw: damage.run_case(case, folder, attack.tally, draw, 200))
    covered["damage"] = len(attack.done)
    attack_words(tallies["words"], seconds["words"], options.seed)
    write_page(options.page, tallies, covered, len(attack.waiting), options.minutes)
    failures = sum(len(tally.failures) for tally in tallies.values())
    raise SystemExit(min(failures, 1))


if __name__ == "__main__":
    main()
