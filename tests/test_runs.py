"""What tells runs apart."""

import copy
from typing import Any

from adac.core import presets, settings
from adac.runs.folder import distinct_labels, same_bits


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
