"""`adac list settings`: what can be set, to what, and what it means."""

import pytest

from adac.core import presets, settings
from commands import adac, fails


def test_settings_are_listed_with_their_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert adac("list", "settings") == 0
    assert "K, the particles of SVGD per state." in capsys.readouterr().out
    words = ("list", "settings", "td3", "--set", "explorer=ornstein-uhlenbeck", "theta=0.3")
    assert adac(*words) == 0
    listed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["theta", "0.3", "θ,"] in [line[:3] for line in listed]
    assert any({"actor_hidden", "256,256", "policy"} <= set(line) for line in listed)


def test_every_setting_of_an_agent_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert adac("list", "settings", "sac") == 0
    listed = set(capsys.readouterr().out.split())
    assert not settings.names(presets.make("sac")).keys() - listed


def test_settings_of_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean td3" in fails(capsys, "list", "settings", "td33")
    assert "leave 'td3' out" in fails(capsys, "list", "agents", "td3")
