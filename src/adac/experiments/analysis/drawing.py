"""What the figures share: colours by label, curves with bands, saving without dates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adac.errors import UserError, missing_extra
from adac.experiments.analysis.curves import Curve, Limits

# Okabe and Ito's colours, which also the colour-blind tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Lines and gaps of each further round through the colours, so that no pair of the two repeats.
DASHES: tuple[tuple[float, ...], ...] = (
    (), (7, 4), (2, 4), (9, 3, 2, 3), (14, 4), (9, 3, 2, 3, 2, 3), (5, 2), (2, 2, 2, 6),
    (14, 3, 5, 3), (5, 3, 5, 8),
)  # fmt: skip
Style = dict[str, Any]
PUBLISHED = "published:"  # begins the label of what others did
# Of a panel's height, for a name in seven points.
RIVAL_ROOM = 0.052
# What each format is told so that it notes no date.
UNDATED: dict[str, dict[str, None]] = {
    ".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None},
}  # fmt: skip


def new_figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("a figure", "plot") from None
    return Figure(figsize=(width, height), layout="constrained")


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """A colour and a dash for each label, the same in every panel."""
    return {label: _style(number) for number, label in enumerate(labels)}


def _style(number: int) -> Style:
    rounds, place = divmod(number, len(COLOURS))
    # Matplotlib counts in widths of the line, which is about two points.
    dash = tuple(length / 2 for length in DASHES[rounds % len(DASHES)])
    return {"color": COLOURS[place], "linestyle": (0, dash) if dash else "-"}


def sequence(count: int) -> list[str]:
    """Colours from light to dark for a quantity that grows, such as β."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(c) for c in colormaps["viridis_r"](np.linspace(0.15, 1.0, count))]


def line(axis: Any, curve: Curve, label: str, style: Style) -> None:
    """The mean over seeds."""
    # A single evaluation cannot be a line.
    marker = "o" if len(curve.steps) == 1 else ""
    axis.plot(curve.x, curve.mean, label=label, linewidth=1.8, marker=marker, **style)


def shade(axis: Any, curve: Curve, limits: Limits, style: Style) -> None:
    """The band round a mean."""
    band = curve.band(limits)
    if band is not None:
        axis.fill_between(curve.x, *band, color=style["color"], alpha=0.16, lw=0)


def threads(axis: Any, curve: Curve, style: Style) -> None:
    """A thin line for each seed."""
    axis.plot(curve.x, curve.values.T, linewidth=0.7, alpha=0.45, **style)


Track = tuple[str, Sequence[tuple[float, float]]]  # a name, and points of steps and return


def rivals(axis: Any, paths: Sequence[Track], text: str) -> None:
    """What others have published, in grey: marks, each named at the right of the panel."""
    label = f"{PUBLISHED} {text}"
    grey = {"color": "0.55", "linewidth": 0.8, "marker": "D", "markersize": 3.5, "zorder": 1}
    for _, points in paths:
        axis.plot(*zip(*points, strict=True), **grey, linestyle=":", label=label)
        label = "_"  # one entry of the legend for all
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)
    ends = sorted(((*points[-1], name) for name, points in paths), key=lambda end: end[1])
    heights = apart([y for _, y, _ in ends], RIVAL_ROOM * (high - low))
    for (x, y, name), height in zip(ends, heights, strict=True):
        axis.annotate(
            name, (x, y), (1.03, height), xycoords="data", textcoords=axis.get_yaxis_transform(),
            fontsize=7, color="0.35", va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.8", "lw": 0.6, "shrinkA": 1, "shrinkB": 3,
                        "relpos": (0, 0.5)},
        )  # fmt: skip


def apart(wanted: Sequence[float], room: float) -> list[float]:
    """Ascending heights at least `room` apart, near the wanted ones.

    Pushing up from below and pushing down from above both keep the room, so their mean does too.
    """
    up, down = list(wanted), list(wanted)
    for i in range(1, len(up)):
        up[i] = max(up[i], up[i - 1] + room)
        down[-1 - i] = min(down[-1 - i], down[-i] - room)
    return [(one + other) / 2 for one, other in zip(up, down, strict=True)]


def tidy(axis: Any, title: str, ylabel: str, *, steps: bool = True, hours: bool = False) -> None:
    axis.set_title(title, fontsize=11)
    axis.set_ylabel(ylabel)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("0.5")
    axis.tick_params(color="0.5")
    if hours:
        axis.set_xlabel("hours of training")
    elif steps:
        axis.set_xlabel("environment steps")
        axis.set_xlim(left=0)
        axis.xaxis.set_major_formatter(thousands)


def thousands(x: float, _: object = None) -> str:
    return f"{x / 1e6:g}M" if abs(x) >= 1e6 else f"{x / 1e3:g}k" if x else "0"


def legend(figure: Any, axes: Sequence[Any], columns: int = 4) -> None:
    """One legend below all panels, from whichever panel has a line; what others did comes last."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    found = dict(sorted(found.items(), key=lambda entry: entry[0].startswith(PUBLISHED)))
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", frameon=False,
            ncols=min(columns, len(found)),
        )  # fmt: skip


def require_format(path: Path) -> None:
    if path.suffix not in UNDATED:
        raise UserError(f"a figure is written as {', '.join(UNDATED)}, not '{path.suffix}'")


def save_as(figure: Any, path: Path) -> Path:
    """No date and no random ids, so that the same results give the same file."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "adac"}):
        figure.savefig(path, dpi=150, metadata=UNDATED[path.suffix])
    return path


def save(figure: Any, stem: Path) -> list[Path]:
    """PNG and SVG."""
    return [save_as(figure, stem.with_name(f"{stem.name}{suffix}")) for suffix in (".png", ".svg")]
