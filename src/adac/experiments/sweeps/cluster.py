"""Ray: a cluster of our own that nobody else can reach, or one that is there; and signals."""

import contextlib
import functools
import logging
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from adac.errors import UserError, missing_extra
from adac.experiments.sweeps.provenance import scratch_folder

OBJECT_STORE = 256 * 2**20  # bytes; on one machine only reports pass through it


@contextlib.contextmanager
def cluster(jobs: int | None, address: str | None) -> Iterator[None]:
    """The cluster at `address`, or one of our own that ends with us."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with contextlib.ExitStack() as stack:
        if address is None:
            stack.enter_context(_alone())
        try:
            import ray
        except ImportError:
            raise missing_extra("a sweep", "experiments") from None
        if address is None:
            scratch = scratch_folder("adac-ray")
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            stack.callback(ray.shutdown)
            # Ray opens its folder to everybody; the one around it stays ours.
            _start(ray, jobs or os.cpu_count() or 1, str(scratch / "r"))
        else:
            stack.callback(ray.shutdown)
            _connect(ray, address)
        yield


@functools.cache
def _token() -> str:
    return secrets.token_hex(32)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Whoever reaches Ray's ports runs code, so ours listen on loopback only and want a token.

    Ray has no other switch for loopback than the one by which it does so on Windows and macOS. The
    token lives as long as this process, because Ray reads it only once in each.
    """
    wanted = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": _token(),
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _start(ray: Any, jobs: int, scratch: str) -> None:
    ray.init(
        address="local",
        num_cpus=jobs,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
        _temp_dir=scratch,
    )


def _connect(ray: Any, address: str) -> None:
    if address.startswith("ray://"):
        raise UserError(
            "--address wants the cluster's own address, host:port or auto, "
            "from a machine of the cluster; ray:// clients cannot stream results"
        )
    try:  # what Ray warns of, an open cluster above all, is for whoever runs it to see
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"the Ray cluster at {address} cannot be joined ({reason}); one that wants a token "
            "needs RAY_AUTH_MODE=token and the token here too"
        ) from None


def lost_process() -> str | None:
    """Which of Ray's own processes that we started has died: nothing can go on without it."""
    from ray._private import worker

    node = getattr(worker, "_global_node", None)  # Ray has no public way to ask
    dead = node.dead_processes() if node is not None else []
    return str(dead[0][0]) if dead else None


class Signals:
    """SIGTERM ends a sweep as Ctrl-C does, and is told from it: KeyboardInterrupt(number).

    Around everything, because Ray raises a KeyboardInterrupt of its own on the way out.
    """

    def __init__(self) -> None:
        self.received = 0

    def __enter__(self) -> "Signals":
        return self

    @contextlib.contextmanager
    def terminating(self) -> Iterator[None]:
        """Inside of `cluster`: Ray sets a handler when it starts."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        raise KeyboardInterrupt(number)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt | SystemExit) and self.received:
            raise KeyboardInterrupt(self.received) from None
