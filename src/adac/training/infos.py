"""What a task says in `info` beside its reward, as columns of the tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

SUCCESS = ("is_success", "success")  # Gymnasium-Robotics says it in both ways
SUCCESS_RATE = "success_rate"
Told = dict[str, float]  # column: an episode's value


def column(keyword: str) -> str:
    return f"info_{keyword}"


def told(info: Mapping[str, Any], keywords: Sequence[str]) -> Told:
    """Of an episode's last `info`: whether it succeeded, and what was asked for."""
    found = {column(keyword): _number(info.get(keyword)) for keyword in keywords}
    success = next((info[name] for name in SUCCESS if name in info), None)
    found[SUCCESS_RATE] = _number(success)
    return {name: value for name, value in found.items() if value is not None}


def _number(value: Any) -> float | None:
    """Also a truth, or an array of one."""
    try:
        number = float(np.asarray(value, np.float64).item())
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def means(episodes: Iterable[Told]) -> Told:
    """Over the episodes that said something."""
    values: dict[str, list[float]] = {}
    for episode in episodes:
        for name, value in episode.items():
            values.setdefault(name, []).append(value)
    return {name: float(np.mean(several)) for name, several in values.items()}
