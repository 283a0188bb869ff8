"""The inside of a process that holds one environment and does what `remote.Remote` asks.

What it is sent comes from the process that started it, through a pipe that nobody else has.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import gymnasium
import numpy as np

from adac.envs.reproducible import seed_spaces

Env = gymnasium.Env[Any, Any]


def main() -> None:
    """Until it is told to close, or whoever asks is gone."""
    # Both go to a whole group of processes, and are for the one who asks: it saves, and closes us.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a simulator prints must not get between the answers
    questions = sys.stdin.buffer
    env: list[Env] = []
    while (question := _next(questions)) is not None:
        try:
            answer = (True, _answer(env, *question))
        except Exception as error:  # the task's own code
            answer = (False, f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
    for one in env:
        one.close()


def _next(questions: BinaryIO) -> tuple[str, Any] | None:
    try:
        question: tuple[str, Any] | None = pickle.load(questions)
    except EOFError:
        return None
    return question


def _answer(env: list[Env], verb: str, given: Any) -> Any:
    if verb == "make":
        env.append(_made(given))
        return None
    if verb == "reset":
        seed_spaces(env[0], given)
        answer: Any = env[0].reset(seed=given)
        return _plain(answer, 2)
    return _plain(env[0].step(given), 5)


def _made(packed: bytes) -> Env:
    """`spec` is of a task that only the asking program has registered."""
    factory: Callable[[], Env]
    spec, factory = pickle.loads(packed)
    if spec is not None:
        gymnasium.registry.setdefault(spec.id, spec)
    return factory()


def _plain(answer: Any, size: int) -> Any:
    """Gymnasium's answer with only the numbers of its info, which may hold anything."""
    if not isinstance(answer, tuple | list) or len(answer) != size:
        return answer
    info = answer[-1] if isinstance(answer[-1], dict) else {}
    return (*answer[:-1], {name: value for name, value in info.items() if _is_number(value)})


def _is_number(value: Any) -> bool:
    one = isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf"
    return one or isinstance(value, bool | int | float | np.generic)
