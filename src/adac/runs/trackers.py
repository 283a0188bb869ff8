"""TensorBoard and Weights & Biases."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from adac.errors import missing_extra


class Sink(Protocol):
    def write(self, values: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    def __init__(self, folder: Path):
        try:
            from tensorboard.summary import Writer
        except ImportError:
            raise missing_extra("--tensorboard", "tensorboard") from None
        self._writer = Writer(str(folder / "tensorboard"))

    def write(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Online if the machine is logged in, offline otherwise (upload later with `wandb sync`)."""

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        try:
            import wandb
        except ImportError:
            raise missing_extra("--wandb", "wandb") from None
        mode: Any = os.environ.get("WANDB_MODE") or ("online" if _logged_in(wandb) else "offline")
        self._run = wandb.init(
            project="adac", name=folder.name, dir=str(folder), config=dict(config), mode=mode
        )

    def write(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


def _logged_in(wandb: Any) -> bool:
    try:
        return bool(wandb.login(prompt=False))
    except wandb.errors.Error:
        return False
