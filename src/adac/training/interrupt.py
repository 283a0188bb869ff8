"""Ctrl-C in a program that trains into a folder: the step is finished and saved first."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class Interrupt:
    """Asked before every step whether to stop.

    The first Ctrl-C ends the training between two steps, so that what is saved can be continued to
    the same bits, and is raised afterwards; the second is raised at once. Whoever has a handler of
    their own keeps it.
    """

    def __init__(self, stop: Callable[[], bool], *, saves: bool):
        self._stop, self._saves = stop, saves
        self._seen = self._installed = False

    def __call__(self) -> bool:
        return self._seen or self._stop()

    def __enter__(self) -> "Interrupt":
        main = threading.current_thread() is threading.main_thread()
        if self._saves and main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._seen:
            raise KeyboardInterrupt
        self._seen = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._seen and error is None:
            raise KeyboardInterrupt
