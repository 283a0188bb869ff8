"""What Ctrl-C and SIGTERM mean to a command that saves before it ends."""

import signal
from types import FrameType
from typing import Any


class Stop:
    """Ctrl-C and SIGTERM ask the loop to end; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number

    def __call__(self) -> bool:
        return bool(self.signal)
