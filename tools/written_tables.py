"""A table in a page that a tool writes: between two marks, of which the first names the tool."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: python tools/readme_{name}.py -->", f"<!-- {name} end -->"


def written(page: str, name: str, content: str) -> str:
    """The page with this content between the marks of that name."""
    first, last = marks(name)
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"the page has no lines {first} and {last}")
    return f"{before}{first}\n{content}\n{last}{after}"


def stale(name: str, pages: dict[str, str]) -> list[str]:
    """Pages that do not have the content that they should have."""
    texts = {page: (ROOT / page).read_text("utf-8") for page in pages}
    return [page for page, text in texts.items() if written(text, name, pages[page]) != text]


def main(name: str, pages: dict[str, str]) -> None:
    """Write the pages, or with `--check` say which are stale."""
    changed = stale(name, pages)
    if "--check" not in sys.argv[1:]:
        for page in changed:
            path = ROOT / page
            path.write_text(written(path.read_text("utf-8"), name, pages[page]), "utf-8")
    elif changed:
        raise SystemExit(f"{', '.join(changed)}: out of date; run tools/readme_{name}.py")
