"""The badges say what the code says."""

import xml.etree.ElementTree as ET

import pytest

import badges


@pytest.mark.parametrize(("path", "text"), badges.badges().items(), ids=lambda one: str(one)[-12:])
def test_a_badge_is_as_the_code_has_it(path: badges.Path, text: str) -> None:
    assert path.read_text() == text, "run `python tools/badges.py`"
    ET.fromstring(text)
    assert f"docs/assets/{path.name}" in (badges.ROOT / "README.md").read_text()
