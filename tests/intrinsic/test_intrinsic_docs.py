"""The example in docs/intrinsic.md runs, learns and pays for what is new."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from adac.core import presets
from adac.core.intrinsic import Rnd, Vime
from adac.core.settings import override
from adac.training.compiled import compile_agent, metric_names
from adac.training.learner import Learner
from helpers import stored

PAGE = Path(__file__).parents[2] / "docs" / "intrinsic.md"
TINY = {"actor_hidden": "8", "critic_hidden": "8", "latent_hidden": "8", "particles": 2}
TINY |= {"policy_delay": 1, "critics": 1}  # one function to compile instead of two


@pytest.fixture
def example(tmp_path: Path) -> ModuleType:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "counts_example.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("counts_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_counting_reward_of_the_documentation(example: ModuleType) -> None:
    assert example.learner.agent.intrinsic.eta == 0.5
    small = override(example.agent, TINY | {"warmup": 20, "batch_size": 8, "bits": 4})
    learner = Learner("Pendulum-v1", small, seed=0)
    learner.learn(60)
    _, visits = learner.state.intrinsic
    assert visits.sum() == 16 + 8 * learner.updates  # one visit per row drawn
    bonus = stored(learner).bonus
    np.testing.assert_allclose(bonus[0], 0.1)  # never seen: η
    assert 0.0 < bonus[-1] < 0.1  # seen often by then
    assert "cells_visited" in learner.diagnose()


def test_every_setting_and_column_is_documented() -> None:
    text = PAGE.read_text()
    for kind in (Vime(), Rnd()):
        assert not [name for name in vars(kind) if f"`{name}`" not in text]
    plain, rewarded = (
        set(metric_names(compile_agent(presets.make(name), 3, 1)))
        for name in ("adac-td3", "adac-td3-vime")
    )
    added = rewarded - plain
    assert added >= {"bonus", "bonus_scale", "model_loss", "q_behaviour"}
    assert not [name for name in added if f"`{name}`" not in text]
