"""Death at the n-th system call that writes, or at a moment: real, or as an exception.

The exception leaves on the disk what SIGKILL would: after it every call that writes dies as well,
so that no handler on its way can mend anything. A process survives it, with its compiled agents,
and looks at what is left.
"""

import builtins
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any

import adac

CALLS = ("open", "fsync", "replace", "unlink", "mkdir", "rmdir", "ftruncate")


class DeathError(BaseException):
    """No handler may run after a kill: every later call dies as well."""


class Counter:
    """Counts the calls; at the number-th and ever after, `die` is called instead. 0: never."""

    def __init__(self, number: int, die: Callable[[], None]):
        self.number, self.die, self.calls = number, die, 0

    def now(self) -> None:
        """From this moment on."""
        self.number = max(self.calls, 1)
        self.die()

    def due(self) -> bool:
        self.calls += 1
        return bool(self.number) and self.calls >= self.number

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if self.due():
                self.die()
            return call(*arguments, **options)

        return wrapper

    def opening(self, call: Callable[..., IO[Any]]) -> Callable[..., Any]:
        """`open`, whose files die in the middle of a write, with half of it on the disk."""

        def opened(*arguments: Any, **options: Any) -> Any:
            file = call(*arguments, **options)
            mode = str(options.get("mode", arguments[1] if len(arguments) > 1 else "r"))
            return file if set(mode) <= set("rbt") else HalfWritten(file, self)

        return opened


class HalfWritten:
    def __init__(self, file: IO[Any], counter: Counter):
        self._file, self._counter = file, counter

    def write(self, data: Any) -> Any:
        if self._counter.due():
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            self._counter.die()
        return self._file.write(data)

    def __enter__(self) -> "HalfWritten":
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _install(counter: Counter) -> Callable[[], None]:
    from adac.runs import csv_table, files  # the modules that open files to write

    real = {name: getattr(os, name) for name in CALLS}
    for name, call in real.items():
        setattr(os, name, counter.wrapped(call))
    modules: tuple[Any, ...] = (csv_table, files)
    for module in modules:
        module.open = counter.opening(builtins.open)

    def undo() -> None:
        for name, call in real.items():
            setattr(os, name, call)
        for module in modules:
            del module.open

    return undo


def killed() -> None:
    """This process, really."""
    os.kill(os.getpid(), signal.SIGKILL)


def died() -> None:
    """As if killed, for a process that is to look at what is left."""
    raise DeathError


@contextlib.contextmanager
def dying_at(number: int, die: Callable[[], None] = died) -> Iterator[Counter]:
    """At the number-th call; 0 counts only."""
    counter = Counter(number, die)
    undo = _install(counter)
    try:
        yield counter
    finally:
        undo()


SOURCE = str(Path(adac.__file__).parent)


@contextlib.contextmanager
def at_a_moment(seconds: float, act: Callable[[], float]) -> Iterator[None]:
    """Call `act` once so much time has passed and adac's own code is being run; if it returns a
    number, again after that many seconds."""

    def alarm(number: int, frame: FrameType | None) -> None:
        if frame is None or not frame.f_code.co_filename.startswith(SOURCE):
            signal.setitimer(signal.ITIMER_REAL, 2e-4)  # inside of a library: a little later
            return
        if again := act():
            signal.setitimer(signal.ITIMER_REAL, again)

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-4))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
