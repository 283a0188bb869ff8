"""What speed.py found, as benchmarks/results.md and results.png: ratios, next to their targets."""

import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIBRARIES = {"adac": "adac", "sbx": "SBX", "sb3": "Stable-Baselines3"}
COLOURS = {"adac": "#0072b2", "sbx": "#e69f00", "sb3": "#999999"}
PACKAGES = (
    *("jax", "optax", "equinox", "flax", "torch", "stable_baselines3", "sbx-rl"),
    *("gymnasium", "mujoco", "numpy"),
)
ASK_VERSIONS = """
import importlib.metadata as m, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""

Facts = dict[str, Any]
Values = dict[str, dict[int, Facts]]  # job → round → what it said


# -- the machine ----------------------------------------------------------------------------------


class Busy:
    """Processor time taken by others since this was made, in cores; NaN where unknown."""

    def __init__(self) -> None:
        self._began, self._then = time.monotonic(), self._both()

    def others(self) -> float:
        elapsed = time.monotonic() - self._began
        (all_then, own_then), (all_now, own_now) = self._then, self._both()
        taken = (all_now - all_then - (own_now - own_then)) / elapsed
        return taken if math.isnan(taken) else max(0.0, taken)

    def _both(self) -> tuple[float, float]:
        """Of the whole machine, stolen time included, and of the processes that have ended here."""
        stat = Path("/proc/stat")
        if not stat.exists():
            return float("nan"), 0.0
        user, nice, system, _, _, irq, soft, stolen = map(int, stat.read_text().split()[1:9])
        ticks = user + nice + system + irq + soft + stolen
        own = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return ticks / os.sysconf("SC_CLK_TCK"), sum(u.ru_utime + u.ru_stime for u in own)


def machine(peers: Path) -> Facts:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": cores,
        "memory_gb": round(int((_field("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20),
        "system": platform.system(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "adac": _output(sys.executable, "import adac; print(adac.__version__)"),
        "ours": _versions(sys.executable),
        "peers": _versions(str(peers)),
    }


def _field(path: str, name: str) -> str:
    if not Path(path).exists():
        return ""
    lines = Path(path).read_text().splitlines()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith(name)]
    return found[0] if found else ""


def version(facts: Facts) -> str:
    """adac's; files from before 0.2 do not say it."""
    return str(facts.get("adac", "0.1"))


def _versions(python: str) -> dict[str, str]:
    said = json.loads(_output(python, ASK_VERSIONS, *PACKAGES))
    return {name: found for name, found in said.items() if found}


def _output(python: str, program: str, *words: str) -> str:
    command = [python, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# -- ratios and targets ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """`above` over `below`, round by round; without `below`, the figure itself."""

    text: str
    above: str
    below: str
    bound: float
    field: str = "steps_per_second"
    at_most: bool = False
    unit: str = " ×"
    scale: float = 1.0

    def values(self, found: Values) -> list[float]:
        over = per_round(found, self.above, self.field)
        if not self.below:
            return [value * self.scale for value in over.values()]
        under = per_round(found, self.below, self.field)
        return [self.scale * over[n] / under[n] for n in over if n in under]

    def met(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


def per_round(found: Values, job: str, field: str) -> dict[int, float]:
    return {n: float(said[field]) for n, said in found.get(job, {}).items() if field in said}


def targets() -> Iterator[Target]:
    tasks = ("Hopper-v5", "Pendulum-v1")
    for (agent, peer), bound in {("td3", "sb3"): 2.5, ("sac", "sbx"): 1.3}.items():
        for task in tasks:
            job = f"rate/{task}/{agent}"
            text = f"`{agent}`, {task}: steps/s over {LIBRARIES[peer]}'s"
            yield Target(text, f"{job}/adac", f"{job}/{peer}", bound)
    for base, agent in (("td3", "adac-td3"), ("crossq-td3", "adac-crossq")):
        for task in tasks:
            text = f"`{agent}`, {task}: time of a step over `{base}`'s"
            pair = (f"rate/{task}/{name}/adac" for name in (base, agent))
            yield Target(text, *pair, 1.3, at_most=True)
    text = "`crossq-td3`, Hopper-v5: steps per second"
    yield Target(text, "rate/Hopper-v5/crossq-td3/adac", "", 120.0, unit="")
    text = "`td3`, Hopper-v5: update alone, share of the arithmetic limit"
    update = "update/Hopper-v5/td3/adac"
    yield Target(text, update, "", 65.0, field="of_limit", unit=" %", scale=100.0)
    yield Target("two trials of one thread each over one", "trials/2", "trials/1", 1.7)
    text = "`adac train Pendulum-v1` to the first update, warm compilation cache"
    start = "startup/Pendulum-v1/adac-td3/adac"
    yield Target(text, start, "", 12.0, field="first_update", at_most=True, unit=" s")


# -- tables ---------------------------------------------------------------------------------------


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median (smallest to largest)."""
    if not values:
        return "not measured"
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{_short(middle, digits)} ({_short(low, digits)} to {_short(high, digits)})"


def _short(value: float, digits: int) -> str:
    decimals = max(0, digits - len(str(int(abs(value)))))
    return f"{value:,.{decimals}f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = "|---|" + "--:|" * (len(head) - 1)
    first, *others = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [first, rule, *others, ""]


def met(found: Values) -> tuple[int, int]:
    """Targets that are met, and those that were measured."""
    measured = [(target, values) for target in targets() if (values := target.values(found))]
    return sum(t.met(statistics.median(values)) for t, values in measured), len(measured)


def targets_table(found: Values) -> list[str]:
    rows = []
    for target in targets():
        values = target.values(found)
        mark = "–" if not values else "✓" if target.met(statistics.median(values)) else "✗"
        bound = f"{'≤' if target.at_most else '≥'} {target.bound:g}{target.unit}"
        rows.append((target.text, spread(values) + target.unit * bool(values), bound, mark))
    return _table(("", "measured", "target", ""), rows)


def _rates_table(found: Values) -> list[str]:
    cases = sorted({job.rpartition("/")[0] for job in found if job.startswith("rate/")})
    rows = []
    for case in cases:
        _, task, agent = case.split("/")
        cells = [per_round(found, f"{case}/{name}", "steps_per_second") for name in LIBRARIES]
        shown = [spread(list(cell.values())) if cell else "" for cell in cells]
        rows.append((f"`{agent}`, {task}", *shown))
    return _table(("steps/s", *LIBRARIES.values()), rows)


def _update_table(found: Values) -> list[str]:
    rows = []
    for job in (name for name in found if name.startswith("update/")):
        field = {f: list(per_round(found, job, f).values()) for f in _UPDATE_FIELDS}
        share = [100.0 * value for value in field["of_limit"]]
        cells = (field["milliseconds"], field["gflop"][:1], field["matmul_gflops"], share)
        plain = [spread(cells[0]), "".join(f"{x:.3f}" for x in cells[1])]
        rows.append((f"`{job.split('/')[2]}`", *plain, spread(cells[2]), spread(cells[3]) + " %"))
    head = ("Hopper-v5", "ms an update", "GFLOP", "matmul, GFLOP/s", "of the limit")
    return _table(head, rows)


_UPDATE_FIELDS = ("milliseconds", "gflop", "matmul_gflops", "of_limit")


_COLUMNS = {
    "startup": {"first_step": "first step, s", "first_update": "first update, s"},
    "memory": {"process_mb": "process, MB", "replay_mb": "replay buffer, MB"},
    "trials": {"steps_per_second": "steps/s"},
}


def _plain_table(found: Values, measure: str) -> list[str]:
    rows, fields = [], _COLUMNS[measure]
    for job in (name for name in found if name.startswith(f"{measure}/")):
        values = [list(per_round(found, job, field).values()) for field in fields]
        rows.append((_title(job), *(spread(value) for value in values)))
    return _table(("", *fields.values()), rows)


def _title(job: str) -> str:
    measure, *rest = job.split("/")
    if measure == "trials":
        return {"1": "one trial", "2": "two trials, together"}[rest[0]]
    return f"{LIBRARIES[rest[2]]} `{rest[1]}`" + (", cold cache" if len(rest) > 3 else "")


def _about(facts: Facts, found: Values) -> list[str]:
    rounds = max((len(said) for said in found.values()), default=0)
    others = [said["others"] for rounds in found.values() for said in rounds.values()]
    names = {"ours": "adac's", "peers": "the peers'"}
    lines = [
        f"adac {version(facts)}, {facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, "
        f"{facts['system']}, Python {facts['python']}, {facts['date']}. Rounds: {rounds}, with "
        f"{facts['seconds']:g} s of timing each; median (smallest to largest). "
        "Ratios are taken within a round.",
        "",
    ]
    for key, owner in names.items():
        packages = ", ".join(f"{name} {found}" for name, found in facts[key].items())
        lines.append(f"- {owner} environment: {packages}")
    if others:
        lines.append(
            f"- taken by other programs meanwhile: {statistics.median(others):.2f} cores "
            f"(median), {max(others):.2f} (most)"
            + ("; **the machine was not quiet**" if statistics.median(others) > 0.2 else "")
        )
    failures = [
        f"- failed: {job}, round {number + 1}: {said['error'].splitlines()[-1]}"
        for job, rounds_of in found.items()
        for number, said in rounds_of.items()
        if "error" in said
    ]
    return [*lines, *failures, ""]


def read(raw: Path) -> tuple[Facts, Values]:
    """The machine, and what was measured on it."""
    facts, *records = [json.loads(line) for line in raw.read_text().splitlines()]
    found: Values = defaultdict(dict)
    for record in records:
        found[record["job"]][record["round"]] = record
    return facts, found


def write(raw: Path, folder: Path) -> None:
    facts, found = read(raw)
    text = [
        "# Speed, side by side",
        "",
        "Written by `make bench`; what is measured and how is in"
        " [docs/performance.md](../docs/performance.md).",
        "Machines are noisy: the ratios count, not the figures.",
        "",
        *_about(facts, found),
        "## Ratios and targets",
        "",
        *targets_table(found),
        "![steps per second, and ratios over their targets](results.png)",
        "",
        "## Training",
        "",
        *_rates_table(found),
        "## One update",
        "",
        *_update_table(found),
        "## From the start of the process, Pendulum-v1",
        "",
        *_plain_table(found, "startup"),
        "## Memory with 1,000,000 transitions, Hopper-v5",
        "",
        *_plain_table(found, "memory"),
        "## Trials side by side, one thread and one core each: `td3`, Hopper-v5",
        "",
        *_plain_table(found, "trials"),
    ]
    (folder / "results.md").write_text("\n".join(text).rstrip() + "\n")
    plot(found, folder / "results.png")


# -- the plot -------------------------------------------------------------------------------------


def plot(found: Values, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 5.5), width_ratios=(1, 1), layout="constrained"
    )
    _plot_rates(left, found)
    _plot_targets(right, found)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _plot_rates(axes: Any, found: Values) -> None:
    cases = [f"rate/{t}/{a}" for t in ("Hopper-v5", "Pendulum-v1") for a in ("td3", "sac")]
    width = 0.27
    for i, (library, label) in enumerate(LIBRARIES.items()):
        for j, case in enumerate(cases):
            values = list(per_round(found, f"{case}/{library}", "steps_per_second").values())
            if not values:
                continue
            x = j + (i - 1) * width
            middle = statistics.median(values)
            shown = label if j == 0 else None
            axes.bar(x, middle, width * 0.94, color=COLOURS[library], label=shown)
            axes.plot([x] * len(values), values, ".", color="black", markersize=4)
            axes.text(x, 0, f"{middle:.0f}\n", ha="center", va="bottom", fontsize=9, color="white")
    labels = ["{2}\n{1}".format(*case.split("/")) for case in cases]
    axes.set_xticks(range(len(cases)), labels)
    axes.set_ylabel("training steps per second")
    axes.set_title("One update a step; bars are medians, dots the rounds", fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.margins(y=0.15)
        axes.legend(frameon=False, ncols=len(LIBRARIES), loc="upper center")
    axes.spines[["top", "right"]].set_visible(False)


def _plot_targets(axes: Any, found: Values) -> None:
    """Everything as a multiple of its target, so that to the right of 1 is met."""
    shown = [(target, values) for target in targets() if (values := target.values(found))]
    for row, (target, values) in enumerate(reversed(shown)):
        over = [target.bound / v if target.at_most else v / target.bound for v in values]
        middle = statistics.median(over)
        colour = "#009e73" if middle >= 1.0 else "#d55e00"
        axes.plot([min(over), max(over)], [row, row], color=colour, linewidth=2)
        axes.plot(middle, row, "o", color=colour, markersize=6)
    names = [target.text.replace("`", "") for target, _ in reversed(shown)]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlabel("measured / target; inverted where less is better")
    axes.set_title("Right of the line: target met", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
