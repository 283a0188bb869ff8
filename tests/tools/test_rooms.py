"""The rooms of the house: imports go one way, and never in a circle."""

import re
from graphlib import CycleError, TopologicalSorter

import pytest

import module_graph
from module_graph import INSIDE, MODULES, ROOMS, imported, outside, room_of

# `core` is pure: no simulator, no files, no terminal.
FORBIDDEN = {"core": {"gymnasium", "pathlib", "os", "io", "shutil", "tempfile", "rich", "typer"}}


def test_every_module_has_a_room() -> None:
    assert set(MODULES) - set(INSIDE) == {"adac", "adac.__main__"}


@pytest.mark.parametrize("name", INSIDE)
def test_imports_go_one_way(name: str) -> None:
    allowed = ROOMS[: ROOMS.index(room_of(name)) + 1]
    found = imported(MODULES[name])
    ours = {other for other in found if other.startswith("adac")}
    assert {other for other in ours if room_of(other) not in allowed} == set()
    assert outside(found) & FORBIDDEN.get(room_of(name), set()) == set()


def test_no_circles() -> None:
    """Not even a lazy one inside a room."""
    try:
        TopologicalSorter(module_graph.graph()).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_an_arrow_is_left_out_only_where_a_longer_way_says_it() -> None:
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": set[str](), "d": set[str]()}
    assert module_graph.reduced(graph) == {"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()}


def test_the_drawn_modules_are_those_that_are_there() -> None:
    text = module_graph.PAGE.read_text()
    assert module_graph.put_into(text, module_graph.page()) == text, (
        "draw docs/architecture.md anew: python tools/module_graph.py"
    )


def test_the_page_names_files_that_are_there() -> None:
    text = module_graph.PAGE.read_text()
    named = re.findall(r"`((?:core|envs|runs|training|experiments|cli)/[\w/.]*)`", text)
    assert len(named) > 10
    assert [name for name in named if not (module_graph.SOURCE / name).exists()] == []
