"""What Ctrl-C and SIGTERM mean to a command that saves before it ends."""

import _thread
import signal
import sys
import threading
from types import FrameType
from typing import Any


class Stop:
    """Ctrl-C and SIGTERM ask the loop to end; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}
        self._again: threading.Timer | None = None

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._lost
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._unraisable
        if self._again is not None:
            self._again.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number

    def _lost(self, unraisable: Any) -> None:
        """Python drops what is raised inside of a destructor, with a traceback: a Ctrl-C that
        came there comes once more, when the destructor is over."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._unraisable(unraisable)
            return
        self._again = threading.Timer(0.01, _thread.interrupt_main)
        self._again.daemon = True
        self._again.start()

    def __call__(self) -> bool:
        return bool(self.signal)
