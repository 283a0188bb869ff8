"""What every exported file says of itself, beside its numbers."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adac.core.plain import PlainPolicy
from adac.errors import RunError
from adac.runs.files import write_whole


@dataclass(frozen=True)
class Facts:
    """Where a policy comes from and what it reads."""

    env: str
    agent: str
    seed: int
    step: int
    flattened: bool  # the task's own observations are no vectors
    mean_return: float | None = None  # of the evaluation that it was kept for

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def lines(self, policy: PlainPolicy) -> list[str]:
        """For a person, in a header or in a graph's description."""
        observation = f"obs: {policy.obs_dim} numbers, as the task gives them"
        if self.flattened:
            observation = (
                f"obs: {policy.obs_dim} numbers, the task's observation flattened by "
                "gymnasium.spaces.flatten"
            )
        normalised = "inside" if policy.normalises else "not used"
        return [
            f"The target policy of {self.agent} on {self.env}, seed {self.seed}, "
            f"step {self.step}; written by adac.",
            f"{observation}; normalisation: {normalised}.",
            f"action: {policy.action_dim} numbers in the task's own units, within its bounds.",
        ]


def harmless(text: str) -> str:
    """For a comment of C: a task's name may be a stranger's, and must not end it."""
    return re.sub(r"[^A-Za-z0-9 .,;:_/+-]", "_", text)


def write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}") from error
