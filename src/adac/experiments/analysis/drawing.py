"""What the figures share: colours by label, curves with bands, saving without dates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adac.errors import missing_extra
from adac.experiments.analysis.plots import Curve, style


def new_figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("a figure", "experiments") from None
    return Figure(figsize=(width, height), layout="constrained")


def styles(labels: Sequence[str]) -> dict[str, dict[str, str]]:
    """A colour and a dash for each label, the same in every panel."""
    return {label: style(number) for number, label in enumerate(labels)}


def sequence(count: int) -> list[str]:
    """Colours from light to dark for a quantity that grows, such as β."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(c) for c in colormaps["viridis_r"](np.linspace(0.15, 1.0, count))]


def band(axis: Any, curve: Curve, label: str, style: dict[str, str]) -> None:
    """The mean over seeds, ± one standard deviation of the sample."""
    mean = curve.values.mean(axis=0)
    # A single evaluation can not be a line.
    marker = "o" if len(curve.steps) == 1 else ""
    axis.plot(curve.steps, mean, label=label, linewidth=1.8, marker=marker, **style)
    if len(curve.values) > 1:
        std = curve.values.std(axis=0, ddof=1)
        axis.fill_between(
            curve.steps, mean - std, mean + std, color=style["color"], alpha=0.16, lw=0
        )


def tidy(axis: Any, title: str, ylabel: str, *, steps: bool = True) -> None:
    axis.set_title(title, fontsize=11)
    axis.set_ylabel(ylabel)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    if steps:
        axis.set_xlabel("environment steps")
        axis.xaxis.set_major_formatter(thousands)


def thousands(x: float, _: object = None) -> str:
    return f"{x / 1e6:g}M" if abs(x) >= 1e6 else f"{x / 1e3:g}k" if x else "0"


def legend(figure: Any, axes: Sequence[Any], columns: int = 4) -> None:
    """One legend below all panels, from whichever panel has a line."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", frameon=False,
            ncols=min(columns, len(found)),
        )  # fmt: skip


def save(figure: Any, stem: Path) -> list[Path]:
    """PNG and SVG; no date and no random ids, so that the same results give the same file."""
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".png", ".svg")]
    with rc_context({"svg.hashsalt": "adac"}):
        figure.savefig(paths[0], dpi=150)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
