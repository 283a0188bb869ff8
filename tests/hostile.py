"""What the tests of reliability share: locks of others, and environments that misbehave."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


@contextlib.contextmanager
def held_elsewhere(folder: Path) -> Iterator[None]:
    """The folder's lock, as another process would have it."""
    import fcntl

    with open(folder / ".lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def misbehaving(kind: type[Any]) -> dict[str, Any]:
    """Makers of `kind`s, whose observations are small vectors: wrong at step 2 or at the reset."""

    def at_step(change: Any) -> Any:
        class Broken(kind):
            taken = 0

            def reset(self, **options: Any) -> Any:
                self.taken = 0
                return super().reset(**options)

            def step(self, action: Any) -> Any:
                self.taken += 1
                answer = super().step(action)
                self.left = max(getattr(self, "left", 9), 9)
                return change(*answer[:2]) if self.taken == 2 else (*answer[:2], False, False, {})

        return Broken

    def at_reset(change: Any) -> Any:
        class Broken(kind):
            def reset(self, **options: Any) -> Any:
                return change(*super().reset(**options))

        return Broken

    class Unseeded(kind):
        def reset(self) -> Any:
            return super().reset(seed=0)

    over = (False, False, {})
    return {
        "four values": at_step(lambda obs, reward: (obs, reward, False, {})),
        "six values": at_step(lambda obs, reward: (obs, reward, *over, 0)),
        "nothing": at_step(lambda obs, reward: None),
        "a dict": at_step(lambda obs, reward: ({"obs": obs}, reward, *over)),
        "objects": at_step(lambda obs, reward: (np.array([object()] * len(obs)), reward, *over)),
        "no observation": at_step(lambda obs, reward: (None, reward, *over)),
        "too long": at_step(lambda obs, reward: (np.append(obs, 0.0), reward, *over)),
        "a number": at_step(lambda obs, reward: (0.5, reward, *over)),
        "complex": at_step(lambda obs, reward: (obs + 1j, reward, *over)),
        "nan": at_step(lambda obs, reward: (obs * np.nan, reward, *over)),
        "no reward": at_step(lambda obs, reward: (obs, None, *over)),
        "a huge reward": at_step(lambda obs, reward: (obs, 10**400, *over)),
        "rewards": at_step(lambda obs, reward: (obs, np.ones(1), *over)),
        "two ends": at_step(lambda obs, reward: (obs, 0.0, np.zeros(2, bool), False, {})),
        "no end": at_step(lambda obs, reward: (obs, 0.0, None, False, {})),
        "observation alone": at_reset(lambda obs, info: obs),
        "nan at reset": at_reset(lambda obs, info: (obs * np.nan, info)),
        "nothing at reset": at_reset(lambda obs, info: None),
        "no seed": Unseeded,
    }
