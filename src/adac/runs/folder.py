"""Run folders: config.json, tables of results, checkpoint/, best/; what tells them apart."""

import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adac.core.settings import LATER, comparable
from adac.errors import RunError, UserError
from adac.runs.files import read_plain, refuse_links, write_whole
from adac.runs.machine import processor

Config = Mapping[str, Any]
CONFIG: dict[str, type | tuple[type, ...]] = {
    "env": str, "agent": dict, "agent_name": str, "seed": int, "num_envs": int, "env_kwargs": dict,
}  # fmt: skip
PLAN: dict[str, type | tuple[type, ...]] = {
    "steps": int, "horizon": int, "eval_every": int, "eval_episodes": int, "checkpoint_every": int,
    "log_every": int, "stop_return": (int, float), "label": str, "env_object": bool,
    "save_best": bool, "env_factory": bool, "subprocesses": bool, "info_keywords": list,
    "video_every": int,
    "from": dict, "changes": list, "data": list, "offline": int,
}  # fmt: skip
MOST_BYTES = 2**24  # of config.json
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # a name is printed, and a terminal obeys these
BEST = Path("best") / "policy.safetensors"
# What a run's bits depend on: each checkpoint carries a copy, under its checksum.
ESSENCE = ("env", "env_kwargs", "agent", "seed", "num_envs")


def versions() -> dict[str, str]:
    packages = ("adac", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco",
                "Box2D", "pybullet")  # fmt: skip
    found = {"python": platform.python_version(), "machine": platform.machine()}
    found["processor"] = processor()
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write_config(folder: Path, config: dict[str, Any]) -> None:
    path, text = folder / "config.json", json.dumps(config, indent=2, default=_number)
    try:
        write_whole(path, (text + "\n").encode())
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror}") from error


def make_folder(folder: Path) -> None:
    """For a run; what stands in its way is the user's to mend."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if os.path.isfile(folder) else error.strerror
        raise UserError(f"{folder} cannot be made a run folder: {reason}") from None


def forget_results(folder: Path) -> None:
    """Of a run that is being replaced by another."""
    for name in ("metrics.csv", "evaluations.csv", "snapshots.csv", "done.json", BEST):
        (folder / name).unlink(missing_ok=True)


def _number(value: Any) -> Any:
    """A NumPy number as JSON's."""
    if isinstance(value, np.generic):
        return value.item()
    raise UserError(f"{value!r} cannot be written to config.json: use numbers, texts and lists")


def read_config(folder: Path) -> dict[str, Any]:
    refuse_links(folder)
    return read_config_file(folder / "config.json")


def read_config_file(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(read_plain(path, MOST_BYTES))
        if config["format"] != "adac-run-1":
            raise UserError(f"{path} has the format {config['format']!r}, not adac-run-1")
        told = PLAN | {"versions": dict}
        planned = {name: kind for name, kind in told.items() if config.get(name) is not None}
        for name, kind in (CONFIG | planned).items():
            _require_kind(name, config[name], kind)
        _require_sources(config)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path.parent} is not a run folder: it has no {path.name}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return config


def plan_of(folder: Path) -> dict[str, Any]:
    """What the run in this folder was to do; nothing where there is none."""
    try:
        config = read_config(folder)
    except UserError:
        return {}
    return {name: config[name] for name in PLAN if name in config and name != "label"}


def _require_kind(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if kind is int and isinstance(value, float) and value.is_integer():  # 1e3, as Python has it
        return
    wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    if wrong or (isinstance(value, str) and CONTROL.search(value)):
        raise ValueError(f"its {name} is {value!r}")


def _require_sources(config: Config) -> None:
    """Of the data and the weights that a run began with."""
    origin = config.get("from")
    sources = [*(config.get("data") or []), *([origin.get("folder")] if origin else [])]
    for source in sources:
        if not isinstance(source, str) or "\0" in source:
            raise ValueError(f"it began with {source!r}, which names no source")


def essence(config: Config) -> dict[str, Any]:
    """What a checkpoint repeats of its run's config.json."""
    plain: dict[str, Any] = json.loads(json.dumps({n: config[n] for n in ESSENCE}, default=_number))
    return plain | {"agent": comparable(plain["agent"])}


def require_essence(folder: Path, config: Config, stored: Any) -> None:
    """Refuse a config.json that is not the one its checkpoint was written with."""
    if stored is None:  # written before checkpoints had it
        return
    now, then = flatten(essence(config)), flatten(stored) if isinstance(stored, dict) else {}
    for name in sorted(now.keys() | then.keys()):
        if now.get(name) != then.get(name):
            raise UserError(
                f"{folder / 'config.json'} was damaged or changed: it says {name} = "
                f"{now.get(name)!r}, but the checkpoint is of a run with {then.get(name)!r}; "
                "put that back"
            )


def label_of(config: Config) -> str:
    """Its line in a legend."""
    return str(config.get("label") or config["agent_name"])


def same_bits(config: Config) -> str:
    """Runs that agree in this end in the same bits: a second one is not a second seed."""
    facts = (config["env"], label_of(config), config["seed"], _settings(config))
    return json.dumps(facts, sort_keys=True)


def same_runs(configs: Sequence[Config]) -> list[list[int]]:
    """Positions of runs that are one and the same, together; a run without a copy is alone."""
    found: dict[str, list[int]] = {}
    for place, config in enumerate(configs):
        found.setdefault(same_bits(config), []).append(place)
    return list(found.values())


def distinct_labels(configs: Sequence[Config]) -> list[str]:
    """Labels of one task's runs, with what differs behind them where one name hides two agents."""
    labels, flat = [label_of(config) for config in configs], [_settings(c) for c in configs]
    differing = {label: _differing(labels, flat, label) for label in set(labels)}
    distinct = []
    for label, settings in zip(labels, flat, strict=True):
        extra = [
            f"{k.rsplit('.', 1)[-1]}={settings.get(k, LATER.get(k))}" for k in differing[label]
        ]
        distinct.append(f"{label} ({', '.join(extra)})" if extra else label)
    return distinct


def _settings(config: Config) -> dict[str, Any]:
    """All that a run's result depends on but task and seed, flat."""
    own = {name: config.get(name) for name in ("num_envs", "steps")}
    own |= {name: config[name] for name in ("data", "offline") if config.get(name)}
    own |= {f"from.{k}": v for k, v in (config.get("from") or {}).items() if k != "folder"}
    return flatten(comparable(config["agent"])) | flatten(config["env_kwargs"], "env_kwargs.") | own


def _differing(labels: Sequence[str], flat: Sequence[dict[str, Any]], label: str) -> list[str]:
    peers = [settings for name, settings in zip(labels, flat, strict=True) if name == label]
    keys = sorted({key for settings in peers for key in settings})
    return [key for key in keys if len({json.dumps(p.get(key)) for p in peers}) > 1]


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as {"explorer.particles": 32, …}; values are plain or lists."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
