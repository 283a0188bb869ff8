"""A search in one process: compiled agents are let go before Linux runs out of mappings."""

import sys
from pathlib import Path

import pytest

from adac import Learner
from adac.training.compiled import compile_agent

MAPPINGS = 65_530  # that Linux allows a process; one more is a segmentation fault


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_as_many_agents_as_are_kept_compiled_leave_most_mappings_free() -> None:
    small = {"actor_hidden": (8,), "critic_hidden": (8,), "batch_size": 8, "warmup": 4}
    before = mappings()
    learner = Learner("Pendulum-v1", "adac-td3", overrides=small)
    learner.learn(12)
    learner.close()
    kept = compile_agent.cache_info().maxsize
    assert kept is not None
    assert kept * (mappings() - before) < MAPPINGS / 2
