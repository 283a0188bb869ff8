"""The documentation's own programs."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def write_modules(page: str, folder: Path) -> list[str]:
    """Each block that begins with `# name.py` into that file; returns their modules' names."""
    found = {}
    for code in blocks(page):
        if (first := re.match(r"# (\w+)\.py\n", code)) is not None:
            found[first[1]] = code
    for name, code in found.items():
        (folder / f"{name}.py").write_text(code)
    return list(found)
