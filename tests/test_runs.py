"""What tells runs apart."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adac.core import presets, settings
from adac.errors import UserError
from adac.runs.folder import distinct_labels, essence, read_config, require_essence, same_bits


def config(agent: str = "adac-td3") -> dict[str, Any]:
    return {
        "env": "Pendulum-v1",
        "env_kwargs": {},
        "agent_name": agent,
        "agent": settings.to_json(presets.make(agent)),
        "seed": 0,
        "num_envs": 1,
    }


def without(run: dict[str, Any], part: str, name: str) -> dict[str, Any]:
    stored = copy.deepcopy(run)
    del stored["agent"][part][name]
    return stored


def test_a_run_stored_before_a_setting_is_named_by_what_it_did() -> None:
    run = config()
    labels = distinct_labels([without(run, "explorer", "score_floor"), run])
    assert labels == ["adac-td3 (score_floor=0.0)", "adac-td3 (score_floor=1.0)"]


def test_a_setting_at_its_neutral_value_makes_no_other_run() -> None:
    run = config("td3")
    before = without(run, "base", "bound_penalty")
    assert same_bits(before) == same_bits(run)
    assert distinct_labels([before, run]) == ["td3", "td3"]


def written(folder: Path, change: Callable[[dict[str, Any]], Any] = lambda c: c) -> Path:
    folder.mkdir(exist_ok=True)
    whole = {"format": "adac-run-1", **config(), "steps": 100, "eval_every": 1e3}
    (folder / "config.json").write_text(json.dumps(change(whole)))
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: [c], "damaged"),
        (lambda c: c | {"format": "x"}, "format 'x'"),
        (lambda c: c | {"seed": True}, "its seed is True"),
        (lambda c: c | {"num_envs": 1.5}, "its num_envs is 1.5"),
        (lambda c: c | {"steps": "100"}, "its steps is '100'"),
        (lambda c: c | {"horizon": [1]}, r"its horizon is \[1\]"),
        (lambda c: c | {"stop_return": "much"}, "its stop_return"),
        (lambda c: c | {"label": 5}, "its label is 5"),
        (lambda c: {k: v for k, v in c.items() if k != "env"}, "'env'"),
    ],
)
def test_a_configuration_of_the_wrong_kind_is_one_sentence(
    tmp_path: Path, change: Any, words: str
) -> None:
    assert read_config(written(tmp_path))["eval_every"] == 1_000
    with pytest.raises(UserError, match=words):
        read_config(written(tmp_path, change))


def test_a_configuration_is_looked_at_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(UserError, match=r"no config\.json"):
        read_config(tmp_path)
    path.write_text("[" * 100_000)
    with pytest.raises(UserError, match="damaged"):
        read_config(tmp_path)
    os.truncate(path, 2**40)  # costs nothing on the disk, and all memory to read
    with pytest.raises(UserError, match="more than"):
        read_config(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="not a regular file"):
        read_config(tmp_path)


def test_a_changed_configuration_is_named(tmp_path: Path) -> None:
    run = config()
    stored = json.loads(json.dumps(essence(run)))
    require_essence(tmp_path, run, stored)
    require_essence(tmp_path, without(run, "base", "bound_penalty"), stored | {"agent": essence(
        without(run, "base", "bound_penalty"))["agent"]})  # fmt: skip
    require_essence(tmp_path, run, None)  # of a version that stored none
    run["agent"]["base"]["tau"] = 0.025
    with pytest.raises(UserError, match=r"agent\.base\.tau = 0\.025.*with 0\.005"):
        require_essence(tmp_path, run, stored)
    for nonsense in ([], 5, {}):
        with pytest.raises(UserError, match="damaged or changed"):
            require_essence(tmp_path, run, nonsense)
