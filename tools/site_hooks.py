"""What MkDocs needs to be told about our pages: diagrams, and links that leave docs/.

The pages are written to be read on GitHub too, where Mermaid is drawn and any file can be linked.
The site asks nothing of the network, so it draws the diagrams by itself.
"""

import html
import os
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Files outside docs/ that are pages of the site.
BORROWED = {"benchmarks/results.md": "speed-table.md", "CHANGELOG.md": "changelog.md"}
PICTURES = {"benchmarks/results.png": "results.png"}  # that they show

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s#]+)(#[^)]*)?\)")
DIAGRAM = re.compile(r"```mermaid\nflowchart TD\n(.*?)```", re.S)
NODE, ARROW = re.compile(r'(\w+)\["([^"]*)"\]'), re.compile(r"(\w+) --> (\w+)")
DETAILS = re.compile(r"<details>")
SHIM = "https://unpkg.com/iframe-worker/shim"  # of the theme, for pages without a server


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for source, page in (BORROWED | PICTURES).items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    here = {page_: source for source, page_ in BORROWED.items()}.get(
        page.file.src_uri, f"docs/{page.file.src_uri}"
    )
    markdown = LINK.sub(lambda found: _link(found, here, page.file.src_uri), markdown)
    markdown = DETAILS.sub('<details markdown="1">', markdown)
    return DIAGRAM.sub(lambda found: layers(found[1]), markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Our own script in place of one that the theme would fetch."""
    return output.replace(
        SHIM, os.path.relpath("assets/worker.js", posixpath.dirname(page.url) or ".")
    )


def on_post_build(config: Any) -> None:
    """No page may fetch anything from elsewhere."""
    for path in Path(config["site_dir"]).rglob("*.html"):
        text = path.read_text(encoding="utf-8").replace(SHIM, "assets/worker.js")  # in 404.html
        path.write_text(text, encoding="utf-8")
        fetched = re.findall(
            r"""<(?:script|link|img|iframe)[^>]*(?:src|href)="?(https?:[^" >]+)""", text
        )
        if fetched:
            raise SystemExit(f"{path.name} would fetch {fetched[0]}")


def _link(found: re.Match[str], here: str, page: str) -> str:
    """A link as the site has it: to a page, or the name of a file in the repository."""
    text, target, anchor = found[1], found[2], found[3] or ""
    if ":" in target:
        return found[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    inside = BORROWED.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
    if inside:
        return f"[{text}]({os.path.relpath(inside, posixpath.dirname(page) or '.')}{anchor})"
    if not (ROOT / path).exists():
        return found[0]  # dead, and MkDocs says so
    plain = text.strip("`")
    return f"`{path}`" if path.endswith(plain) else f"{text} (`{path}`)"


def layers(diagram: str) -> str:
    """A Mermaid flowchart as rows of boxes: each stands above what it points to."""
    names = dict(NODE.findall(diagram))
    below: dict[str, list[str]] = {name: [] for name in names}
    for upper, lower in ARROW.findall(diagram):
        below[upper].append(lower)

    def height(name: str) -> int:
        return max((height(other) + 1 for other in below[name]), default=0)

    rows: dict[int, list[str]] = {}
    for name in names:
        rows.setdefault(height(name), []).append(name)
    drawn = []
    for _, row in sorted(rows.items(), reverse=True):
        boxes = []
        for name in row:
            others = ", ".join(html.escape(names[other]) for other in below[name])
            uses = f"<span>→ {others}</span>" if others else ""
            boxes.append(f"<div><b>{html.escape(names[name])}</b>{uses}</div>")
        drawn.append(f'<div class="layer">{"".join(boxes)}</div>')
    return f'<div class="layers">{"".join(drawn)}</div>'
