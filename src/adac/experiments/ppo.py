"""PPO from Stable-Baselines3 (extra `bench`), as a trial like any other."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adac.errors import UserError, missing_extra

NAME = "ppo"


def override(overrides: Mapping[str, Any]) -> dict[str, Any]:
    raise missing_extra("PPO", "bench")


def execute(
    config: Mapping[str, Any],
    folder: Path,
    notify: Callable[[int, float | None], None],
    saved: Callable[[], None],
) -> float:
    raise UserError("PPO is not here yet")
