"""Trial folders written by hand, for tests that need to know every number in them."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adac.runs.csv_table import EVALUATION_COLUMNS

STEPS = (100, 200, 300)


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="0")
        writer.writeheader()
        writer.writerows(rows)


def write_run(
    folder: Path,
    returns: Sequence[float],
    *,
    env: str = "adac/PendulumSparse-v0",
    agent: str = "td3",
    label: str | None = None,
    seed: int = 0,
    steps: int = STEPS[-1],
    metrics: Mapping[str, Sequence[object]] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    folder.mkdir(parents=True)
    config = {
        "format": "adac-run-1", "env": env, "env_kwargs": {}, "agent_name": agent, "seed": seed,
        "num_envs": 1, "steps": steps, "versions": {"adac": "0"},
        "agent": {"batch_size": 100, "explorer": {"kind": "GaussianNoise", **(settings or {})}},
    }  # fmt: skip
    if label is not None:
        config["label"] = label
    (folder / "config.json").write_text(json.dumps(config))
    rows = [{"step": s, "mean_return": r} for s, r in zip(STEPS, returns, strict=False)]
    write_rows(folder / "evaluations.csv", EVALUATION_COLUMNS, rows)
    if metrics:
        columns = ["step", *metrics]
        cells = [
            {"step": step} | {name: values[i] for name, values in metrics.items()}
            for i, step in enumerate(STEPS)
        ]
        write_rows(folder / "metrics.csv", columns, cells)
    return folder
