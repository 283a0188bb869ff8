"""Environments in processes of their own, for simulators that take longer than the learning.

A process is a fresh Python, not a fork: JAX's threads do not survive one, and a script needs no
`if __name__ == "__main__"`. cloudpickle, as Gymnasium uses it, carries the function that makes the
environment; a lambda or a class of a notebook will do.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium

from adac.errors import RunError, UserError

Env = gymnasium.Env[Any, Any]


class Remote(gymnasium.Env[Any, Any]):
    """Looks like `model`, and is stepped elsewhere; `start` a step, and `step` waits for it."""

    def __init__(self, factory: Callable[[], Env], model: Env, name: str):
        self.observation_space, self.action_space = model.observation_space, model.action_space
        self.metadata, self.spec, self.name = model.metadata, model.spec, name
        self._packed = _packed(factory, model, name)
        self._waits = False
        self._process: subprocess.Popen[bytes] | None = None

    def open(self) -> None:
        """Begin the process, if it has not; it takes a second or two to be there."""
        if self._process is None:
            path = os.pathsep.join(place or os.getcwd() for place in sys.path)
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from adac.envs.worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
            )
            self._send("make", self._packed)

    def start(self, action: Any) -> None:
        """Ask for a step, and do not wait."""
        self._send("step", action)

    def step(self, action: Any) -> Any:
        if not self._waits:
            self.start(action)
        return self._receive()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._send("reset", seed)
        return self._receive()

    def _send(self, verb: str, given: Any) -> None:
        self.open()
        if self._waits:
            self._receive()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            pickle.dump((verb, given), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError:
            raise self._gone() from None
        self._waits = True

    def _receive(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        self._waits = False
        try:
            fine, answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise self._gone() from None
        if not fine:
            raise RunError(f"{self.name} failed in its process: {answer}")
        return answer

    def _gone(self) -> RunError:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        code = self._process.returncode
        return RunError(f"the process of {self.name} ended by itself, with exit code {code}")

    def close(self) -> None:
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        try:
            self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process, self._waits = None, False


def _packed(factory: Callable[[], Env], model: Env, name: str) -> bytes:
    spec = None if model.spec is None else gymnasium.registry.get(model.spec.id)
    try:
        packed: bytes = cloudpickle.dumps((spec, factory))
    except Exception as error:  # a pickle of anything may raise anything
        raise UserError(
            f"{name} cannot be made in another process: {type(error).__name__}: {error}"
        ) from error
    return packed
