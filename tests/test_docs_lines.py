"""Every line of the documentation that starts with `adac` is one that the command understands.

tests/test_readme.py runs the marked examples. The others take hours, a cluster or a folder that
is not there: here they are parsed, their settings are given to their agent, and the names that
Python's examples import are looked up.
"""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import adac
from adac.cli.main import app
from adac.cli.options import expand_settings, parse_settings
from adac.core import presets, settings

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *(page for page in DOCS if page.parent.name != "notebook")]  # the past
FENCED = re.compile(r"```(\w*)\n(.*?)```", re.S)
LINE = re.compile(r"^(?:    |\$ )?(adac [a-z-].*)$", re.M)


def lines(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    for language, block in FENCED.findall(text):
        if language in ("", "sh", "shell", "console"):
            yield from LINE.findall(block)
    yield from re.findall(r"^    (adac [a-z-].*)$", FENCED.sub("", text), re.M)


LINES = sorted({(page.stem, line) for page in PAGES for line in lines(page)})


def parsed(words: list[str]) -> dict[str, Any]:
    """Options and arguments of the last command named."""
    command: Any = get_command(app)
    context = None
    name, rest = "adac", expand_settings(words)
    while True:
        context = command.make_context(name, list(rest), parent=context)
        if not hasattr(command, "resolve_command"):
            return dict(context.params)
        name, command, rest = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )


def test_there_are_lines_and_a_wrong_one_is_found() -> None:
    assert len(LINES) > 50
    with pytest.raises(Exception, match="stepz"):
        parsed(["train", "Pendulum-v1", "--stepz", "3"])
    with pytest.raises(Exception, match="missing"):
        parsed(["missing"])


@pytest.mark.parametrize(("page", "line"), LINES)
def test_the_line_is_understood(page: str, line: str) -> None:
    words = shlex.split(line.replace("$SEED", "0"), comments=True)[1:]
    options = parsed(words)
    if words[0] == "train" and "--import" not in words and options["agent"]:
        agent = presets.make(options["agent"])
        assert settings.override(agent, parse_settings(options["set_"] or [])) is not None


def python_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for language, code in FENCED.findall(page.read_text(encoding="utf-8")):
            if language == "python":
                yield page.stem, code


@pytest.mark.parametrize(("page", "code"), list(python_blocks()))
def test_what_python_names_of_adac_is_there(page: str, code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "adac":
            module = imported(node.module or "adac")
            assert all(hasattr(module, name.name) for name in node.names), node.module
        if isinstance(node, ast.Attribute):
            chain, root = attribute(node)
            if root == "adac":
                assert hasattr(adac, chain[0]), f"adac.{chain[0]}"


def imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except adac.UserError as missing:
        pytest.skip(str(missing))


def attribute(node: ast.Attribute) -> tuple[list[str], str]:
    """`a.b.c` as its names after the first, and the first."""
    names, value = [node.attr], node.value
    while isinstance(value, ast.Attribute):
        names.insert(0, value.attr)
        value = value.value
    return names, value.id if isinstance(value, ast.Name) else ""
