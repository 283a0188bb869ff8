"""Run folders: config.json, metrics.csv, evaluations.csv, checkpoint/."""

import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

from adac.errors import UserError


def versions() -> dict[str, str]:
    packages = ("adac", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco",
                "Box2D", "pybullet")  # fmt: skip
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write_config(folder: Path, config: dict[str, Any]) -> None:
    beside = folder / "config.json.tmp"
    beside.write_text(json.dumps(config, indent=2) + "\n")
    beside.replace(folder / "config.json")


def read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(f"{folder} is not a run folder: it has no config.json")
    try:
        config: dict[str, Any] = json.loads(path.read_bytes())
        if config["format"] != "adac-run-1":
            raise UserError(f"{path} has the format {config['format']!r}, not adac-run-1")
        for name in ("env", "agent", "agent_name", "seed", "num_envs", "env_kwargs"):
            config[name]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return config
