"""The rooms of the house: imports go one way, and never in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "adac"
# Each room may import itself and those before it. `core` is pure: no simulator, no files.
ROOMS = ("errors", "core", "envs", "runs", "training", "experiments", "cli")
FORBIDDEN = {"core": {"gymnasium", "pathlib", "os", "io", "shutil", "tempfile", "rich", "typer"}}


def _name(path: Path) -> str:
    return ".".join(("adac", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


MODULES = {_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def _imported(path: Path, *, lazily: bool) -> set[str]:
    """What a module imports, but for what only the type checker sees."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found: set[str] = set()
    for node in ast.walk(tree) if lazily else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = inner & MODULES.keys()
            found |= modules | ({node.module} if inner - modules else set())
    return found


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


INSIDE = [name for name in MODULES if _room(name) in ROOMS]


def test_every_module_has_a_room() -> None:
    assert {name for name in MODULES if name not in INSIDE} == {"adac", "adac.__main__"}


@pytest.mark.parametrize("name", INSIDE)
def test_imports_go_one_way(name: str) -> None:
    allowed = ROOMS[: ROOMS.index(_room(name)) + 1]
    imported = _imported(MODULES[name], lazily=True)
    ours = {other for other in imported if other.startswith("adac")}
    assert {other for other in ours if _room(other) not in allowed} == set()
    outside = {other.split(".")[0] for other in imported}
    assert outside & FORBIDDEN.get(_room(name), set()) == set()


def test_no_circles() -> None:
    """Not even a lazy one inside a room, but for a package and what it re-exports."""
    graph = {
        name: {m for m in _imported(MODULES[name], lazily=True) if m in MODULES} - {"adac"}
        for name in INSIDE
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))
