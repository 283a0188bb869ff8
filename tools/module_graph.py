"""The package's modules by rooms: what each imports, read from the source, and drawn as Mermaid.

python tools/module_graph.py          draws docs/architecture.md's diagrams anew

Each diagram leaves out an arrow that a longer way already says, so that what remains is the order
in which modules build on one another. tests/tools/test_rooms.py reads the same graph.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "adac"
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
# Each room may import itself and those before it.
ROOMS = ("errors", "core", "envs", "runs", "training", "sb3", "experiments", "cli")
MARKS = "<!-- drawn by tools/module_graph.py -->", "<!-- end of the drawing -->"

Graph = dict[str, set[str]]  # {module: what it imports}


def module_name(path: Path) -> str:
    parts = ("adac", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def room_of(module: str) -> str:
    """Of the package itself there is none: it is what the rooms show to the outside."""
    return module.split(".")[1] if "." in module else ""


INSIDE = [name for name in MODULES if room_of(name) in ROOMS]


def imported(path: Path) -> set[str]:
    """What a module imports at any time, but for what only the type checker sees."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = inner & MODULES.keys()
            found |= modules | ({node.module} if inner - modules else set())
    return found


def graph() -> Graph:
    """Every module in a room, and the modules in rooms that it imports."""
    return {name: imported(MODULES[name]) & set(INSIDE) - {name} for name in INSIDE}


def reduced(graph: Mapping[str, set[str]]) -> Graph:
    """Without the arrows that a longer way already says."""
    below: Graph = {}

    def reach(name: str) -> set[str]:
        if name not in below:
            below[name] = set(graph[name]).union(*(reach(other) for other in graph[name]))
        return below[name]

    return {
        name: others - set().union(*(reach(other) for other in others))
        for name, others in graph.items()
    }


def by_rooms(graph: Mapping[str, set[str]]) -> Graph:
    rooms: Graph = {room: set() for room in ROOMS}
    for name, others in graph.items():
        rooms[room_of(name)] |= {room_of(other) for other in others} - {room_of(name)}
    return rooms


def inside(graph: Mapping[str, set[str]], room: str) -> Graph:
    """One room's modules; a package's own file is shown only where it imports something."""
    names = {name for name in graph if room_of(name) == room}
    names -= {name for name in names if _is_package(name) and not graph[name] & names}
    return {name: graph[name] & names for name in sorted(names)}


def _is_package(name: str) -> bool:
    return MODULES[name].name == "__init__.py"


def mermaid(graph: Mapping[str, set[str]], prefix: str = "") -> str:
    """Arrows from a module to what it imports, which stands below it."""
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'  {_id(name)}["{_short(name, prefix)}"]' for name in graph]
    lines += [f"  {_id(name)} --> {_id(other)}" for name in graph for other in sorted(graph[name])]
    return "\n".join([*lines, "```"])


def _id(name: str) -> str:
    """Some words, such as `end`, mean something to Mermaid."""
    return "m_" + name.replace(".", "_")


def _short(name: str, prefix: str) -> str:
    return name.removeprefix(f"{prefix}.") if name != prefix else name.rpartition(".")[2]


def page() -> str:
    """All diagrams: the rooms, then each room of more than one module."""
    whole = graph()
    parts = [mermaid(reduced(by_rooms(whole)))]
    for room in ROOMS:
        modules = inside(whole, room)
        if len(modules) > 1:
            drawn = mermaid(reduced(modules), f"adac.{room}")
            parts.append(
                f"<details><summary><code>{room}</code></summary>\n\n{drawn}\n\n</details>"
            )
    return "\n\n".join(parts)


def put_into(text: str, drawing: str) -> str:
    """The page with the drawing between its marks."""
    begin, end = MARKS
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE.name} has no place for the drawing: {begin} … {end}")
    return pattern.sub(lambda _: f"{begin}\n\n{drawing}\n\n{end}", text)


def outside(names: Iterable[str]) -> set[str]:
    """Top-level packages."""
    return {name.split(".")[0] for name in names}


if __name__ == "__main__":
    PAGE.write_text(put_into(PAGE.read_text(), page()))
