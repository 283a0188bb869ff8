"""README's badges, drawn from pyproject.toml and the package: they ask nothing of the network.

python tools/badges.py          writes docs/assets/badge-*.svg anew

tests/tools/test_badges.py fails where one says something else than the code.
"""

import tomllib
from pathlib import Path

import adac

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "assets"
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" \
aria-label="{name}: {text}">
<title>{name}: {text}</title>
<clipPath id="c"><rect width="{whole}" height="20" rx="4"/></clipPath>
<g clip-path="url(#c)"><rect width="{left}" height="20" fill="#555"/>\
<rect x="{left}" width="{right}" height="20" fill="#0072B2"/></g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">\
<text x="{at_name}" y="14">{name}</text><text x="{at_text}" y="14">{text}</text></g>
</svg>
"""


def facts() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {
        "version": adac.__version__,
        "python": project["requires-python"].replace(">=", "") + " or later",
        "licence": project["license"],
    }


def badge(name: str, text: str) -> str:
    left, right = (10 + 7 * len(word) for word in (name, text))
    places = {"at_name": left / 2, "at_text": left + right / 2, "whole": left + right}
    return SVG.format(name=name, text=text, left=left, right=right, **places)


def badges() -> dict[Path, str]:
    return {FOLDER / f"badge-{name}.svg": badge(name, text) for name, text in facts().items()}


if __name__ == "__main__":
    for path, text in badges().items():
        path.write_text(text)
        print(path.relative_to(ROOT))
