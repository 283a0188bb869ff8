"""Processes to be killed, forked from one that has imported adac but not yet started JAX.

That saves the seconds of an interpreter's start; from there on the child is `adac resume` itself.
"""

import contextlib
import functools
import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

CACHE = Path(tempfile.gettempdir()) / "adac-torture-jax"
SLIM = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


@functools.cache
def server() -> ForkServerContext:
    os.environ.update(SLIM)  # what it inherits when it starts
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torture.preload"])
    return context


def spawn(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    process = server().Process(target=target, args=arguments, daemon=True)  # it ends with us
    process.start()
    return process


def command(words: list[str], log: Path, prepare: Callable[[], None] = lambda: None) -> None:
    """In a child: the `adac` command as the shell starts it, with its stderr in a file."""
    for descriptor, path in ((1, os.devnull), (2, str(log))):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(handle, descriptor)
    sys.argv = ["adac", *words]
    code: Any = 1
    try:
        from adac.cli.main import main

        prepare()
        main()
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _answer(pipe: Connection, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        pipe.send((True, target(*arguments)))
    except BaseException as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))


def ask(target: Callable[..., Any], *arguments: Any, seconds: float = 900.0) -> Any:
    """What a function returns in a process of its own; RuntimeError if it does not."""
    here, there = server().Pipe(duplex=False)
    process = spawn(_answer, there, target, arguments)
    there.close()
    try:
        if not here.poll(seconds):
            process.kill()
            raise RuntimeError(f"{target.__name__} took more than {seconds:g} seconds")
        good, answer = here.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"{target.__name__} ended with {process.exitcode}") from None
    process.join()
    if not good:
        raise RuntimeError(f"{target.__name__}: {answer}")
    return answer
