"""Stable-Baselines3's own tests with adac's classes in the place of its TD3, SAC and DDPG.

    git clone https://github.com/DLR-RM/stable-baselines3
    python tools/sb3_suite.py stable-baselines3

Every case that builds one of the three is run, and is listed as passed, failed, skipped, or not
applicable: refused by adac in a sentence, which is the reason given. Nothing of those tests is in
this repository.

    --one       one class for each function (TD3 where it has the choice)
    --agent A   agent A in TD3's place, instead of adac's td3
    --control   Stable-Baselines3's own classes, to see what passes there
    --table F   the counts as a Markdown table, written to F
    -k WORDS    as pytest's
"""

import argparse
import inspect
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import pytest
import stable_baselines3 as sb3

from adac.errors import AdacError
from adac.sb3 import agent_class

OURS = ("TD3", "SAC", "DDPG")
OTHERS = {getattr(sb3, name) for name in ("A2C", "PPO", "DQN")}
TOO_LARGE = {"test_save_load_large_model"}  # needs gigabytes
OUTCOMES = ("passed", "failed", "not applicable", "skipped")


class Suite:
    """A pytest plugin: chooses the cases, and keeps what became of each."""

    def __init__(self, one: bool):
        self.one, self.found, self.reasons = one, dict[str, str](), dict[str, str]()
        self.classes = {name: getattr(sb3, name) for name in OURS}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        kept = [item for item in items if self._concerns(item)]
        if self.one:
            kept = self._one_class(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def _classes_of(self, item: Any) -> set[str]:
        """Ours among a case's parameters, which may also be a name in small letters."""
        spec = getattr(item, "callspec", None)
        values = list(spec.params.values()) if spec else []
        return {n for n, c in self.classes.items() if any(v is c or v == n.lower() for v in values)}

    def _concerns(self, item: Any) -> bool:
        if item.function.__name__ in TOO_LARGE:
            return False
        if self._classes_of(item):
            return True
        spec = getattr(item, "callspec", None)
        values = list(spec.params.values()) if spec else []
        if any(v in ("a2c", "ppo") or (isinstance(v, type) and v in OTHERS) for v in values):
            return False
        return bool(re.search(rf"\b({'|'.join(OURS)})\(", inspect.getsource(item.function)))

    def _one_class(self, items: Sequence[Any]) -> list[Any]:
        """Of a function with several of ours, the first of TD3, SAC, DDPG alone."""
        able: dict[Any, set[str]] = {}
        for item in items:
            able.setdefault(item.function, set()).update(self._classes_of(item))
        chosen = {f: next((n for n in OURS if n in names), None) for f, names in able.items()}
        return [
            item
            for item in items
            if not able[item.function] or chosen[item.function] in self._classes_of(item)
        ]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = (yield).get_result()
        if report.when != "call" and report.outcome == "passed":
            return
        outcome = report.outcome
        if call.excinfo is not None and outcome == "failed":
            self.reasons[item.nodeid] = str(call.excinfo.value).strip().split("\n")[0]
            if isinstance(call.excinfo.value, AdacError):
                outcome = "not applicable"
        elif outcome == "skipped" and isinstance(report.longrepr, tuple):
            self.reasons[item.nodeid] = report.longrepr[2].removeprefix("Skipped: ")
        self.found.setdefault(item.nodeid, outcome)
        if outcome != "passed":
            self.found[item.nodeid] = outcome


def table(found: dict[str, str]) -> str:
    """Markdown: a line for each file, and their sum."""
    files: dict[str, Counter[str]] = {}
    for name, outcome in found.items():
        files.setdefault(Path(name.split("::")[0]).name, Counter())[outcome] += 1
    lines = [f"| tests | {' | '.join(OUTCOMES)} |", f"|---|{'--:|' * len(OUTCOMES)}"]
    lines += [_line(f"`{file}`", count) for file, count in sorted(files.items())]
    return "\n".join([*lines, _line("all", Counter(found.values()))]) + "\n"


def _line(name: str, count: Counter[str]) -> str:
    return f"| {name} | {' | '.join(str(count[outcome]) for outcome in OUTCOMES)} |"


def listing(suite: Suite) -> str:
    lines = []
    for outcome in OUTCOMES[1:]:
        names = [name for name, what in suite.found.items() if what == outcome]
        lines += [f"\n{outcome}: {len(names)}"]
        lines += [f"  {name.split('/')[-1]}  {suite.reasons.get(name, '')}" for name in names]
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    # Compiling a tiny network well takes far longer than running it badly.
    jax.config.update("jax_disable_most_optimizations", True)
    folder = args.checkout / "tests"
    if not folder.is_dir():
        sys.exit(f"{args.checkout} has no tests/: name a checkout of Stable-Baselines3")
    if not args.control:
        for name, agent in zip(OURS, (args.agent, "sac", "ddpg"), strict=True):
            setattr(sb3, name, agent_class(agent, name))
    files = [str(p) for p in sorted(folder.glob("test_*.py")) if _mentions(p)]
    options = ["-q", "-x"] if args.first else ["-q"]
    options += ["-p", "no:cacheprovider", "--tb", args.tb, "--rootdir", str(args.checkout)]
    options += ["-c", str(args.checkout / "pyproject.toml")]
    suite = Suite(args.one)
    pytest.main([*options, *(["-k", args.words] if args.words else []), *files], plugins=[suite])
    print(listing(suite))
    print("\n" + table(suite.found))
    if args.table:
        args.table.write_text(table(suite.found))
    return int("failed" in suite.found.values())


def _mentions(path: Path) -> bool:
    """Files that build one of the three; `test_utils.py` needs Atari's package, and builds none."""
    return path.name != "test_utils.py" and bool(re.search(r"\b(TD3|SAC|DDPG)\b", path.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--agent", default="td3")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    parser.add_argument("--tb", default="no", help="pytest's tracebacks")
    parser.add_argument("--table", type=Path)
    parser.add_argument("-k", dest="words")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
