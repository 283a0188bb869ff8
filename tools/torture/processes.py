"""Processes that work or are killed, forked from one that has imported adac but not started JAX.

That saves the seconds of an interpreter's start, and one that lives on saves those of compiling.
"""

import functools
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

CACHE = Path(tempfile.gettempdir()) / "adac-torture-jax"
SLIM = {
    # Fusions are emitted in the older way, which compiles an agent in less than half the time.
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
INTERRUPTED = "KeyboardInterrupt"


@functools.cache
def server() -> ForkServerContext:
    os.environ.update(SLIM)  # what it inherits when it starts
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torture.preload"])
    return context


def _answer(target: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, target(*arguments)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def _serve(pipe: Connection) -> None:
    """In a child: answer until nobody asks. Ctrl-C ends what is asked, and never the child."""
    answer: tuple[bool, Any] | None = None
    while True:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if answer is not None:
                pipe.send(answer)
            target, arguments = pipe.recv()
            answer = False, INTERRUPTED
            signal.signal(signal.SIGINT, signal.default_int_handler)
            answer = _answer(target, arguments)
        except EOFError:
            return
        except KeyboardInterrupt:
            continue


class Worker:
    """A process that does one thing after another, and keeps what it has compiled."""

    def __init__(self) -> None:
        self._pipe, there = server().Pipe()
        self._process = server().Process(target=_serve, args=(there,), daemon=True)  # ends with us
        self._process.start()
        there.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def send(self, target: Callable[..., Any], *arguments: Any) -> None:
        self._pipe.send((target, arguments))

    def answer(self, seconds: float) -> tuple[bool, Any] | None:
        """Whether all went well, and what was returned or said; None if it takes longer.
        EOFError if the process has ended."""
        try:
            return self._pipe.recv() if self._pipe.poll(seconds) else None
        except ConnectionResetError:
            raise EOFError from None

    def ask(self, target: Callable[..., Any], *arguments: Any, seconds: float = 900.0) -> Any:
        """What a function returns there; RuntimeError if it does not."""
        self.send(target, *arguments)
        try:
            found = self.answer(seconds)
        except EOFError:
            raise RuntimeError(f"{target.__name__} ended with {self.ended()}") from None
        if found is None:
            raise RuntimeError(f"{target.__name__} took more than {seconds:g} seconds")
        good, answer = found
        if not good:
            raise RuntimeError(f"{target.__name__}: {answer}")
        return answer

    def ended(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def close(self) -> None:
        self._pipe.close()
        self._process.join(5.0)
        if self._process.exitcode is None:  # it is still at something
            self._process.kill()
            self._process.join()


def ask(target: Callable[..., Any], *arguments: Any, seconds: float = 900.0) -> Any:
    """The same in a process of its own."""
    worker = Worker()
    try:
        return worker.ask(target, *arguments, seconds=seconds)
    finally:
        worker.close()
