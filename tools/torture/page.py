"""docs/reliability.md, from the counts."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

from torture import matrix
from torture.tally import State, Tally

TITLES = {
    "kills": "Runs ended at random moments",
    "crashes": "Death at each system call of a checkpoint",
    "damage": "Damaged and forged files",
    "words": "Generated commands, settings, sweeps and spaces",
    "sweeps": "Sweeps whose processes are killed",
}
WORDS = ("runs ended", "deaths in a save", "files", "commands", "sweeps")
TEXTS = {
    "kills": "`adac resume` is ended again and again, and finished at last. The finished run is "
    "compared with one that was never touched: weights, optimisers, replay buffer and random "
    "states by their checksums, the best policy and config.json by their bytes, metrics.csv and "
    "evaluations.csv row by row; clocks aside. *SIGKILL*, *SIGTERM* and *SIGINT* (Ctrl-C) are "
    "real signals, some raised inside of the process at a random moment and some sent from "
    "outside, to a process that has compiled the agent, to a new one, or to a whole interpreter. "
    "*Death* is an exception at a random moment, or instead of the n-th system call (a write is "
    "half done first; of a run that goes on, or of one that begins), after which every call that "
    "writes fails as well: the disk is left as by SIGKILL, and no new process has to be started.",
    "crashes": "The n-th open, write, fsync, rename or unlink of a save does not happen, nor does "
    "any after it, for every n; a write is half done. What is found must be the old state or the "
    "new one, whole.",
    "damage": "Bits flipped, digits of tables changed, files cut, extended, scrambled, zeroed, "
    "lost, swapped, and replaced by pipes, devices, links and a sparse terabyte, in every file of "
    "a run folder: it must load as what was saved, or as the checkpoint before, or be refused in a "
    "sentence; a row of a table that is not the one written must be said. A quarter are forgeries "
    "with right checksums: wrong facts and arrays, which must not end in raw words. Each within "
    "60 seconds and 300 MB.",
    "words": "Command lines of every command (but `watch`, `push`, `pull` and `tune`, which "
    "serve, ask the network or start Ray) with its own options, overrides, descriptions of "
    "agents, TOML files and Gymnasium spaces drawn at random, most of them nonsense: each is "
    "accepted or refused in one sentence, never with a traceback, within 60 seconds.",
    "sweeps": "`adac sweep` on Ray, on this machine and on a cluster of two nodes beside it. A "
    "trial's process or two, the driver, Ray's raylet or its head, or a whole node is killed, some "
    "at one moment, and the sweep is run again until it is done. Each process that is hit counts. "
    "No finished trial may be lost or run again, every trial must end as one that ran alone, and a "
    "local sweep may listen on loopback only.",
}
TEMPLATE = Path(__file__).with_name("page.md")


def write(path: Path, state: State, targets: Mapping[str, int]) -> None:
    lines = ["| attack | tried | target | broken promises |", "|---|--:|--:|--:|"]
    sections: list[str] = []
    for name, title in TITLES.items():
        tally = state.total(name)
        goal = f"{targets[name]:,}" if name in targets else "each call"
        lines.append(f"| {title} | {tally.tried:,} | {goal} | {len(tally.failures)} |")
        sections += _section(name, tally)
    text = Template(TEMPLATE.read_text("utf-8")).substitute(
        coverage=_coverage(state),
        table="\n".join(lines),
        programs=_programs(state),
        missed=_missed(state, targets),
        sections="\n".join(sections).strip(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _coverage(state: State) -> str:
    done = [tuple(name.split("-")) for name in state.cases]
    every = set().union(*(matrix.pairs(case.kinds) for case in matrix.design()))
    seen = set().union(*map(matrix.pairs, done))
    kinds = [set(kind) for kind in zip(*done, strict=True)]
    counts = [len(kind) for kind in kinds] or [0] * len(matrix.FACTORS)
    named = ("bases", "explorers", "intrinsic rewards (none among them)", "critics")
    parts = ", ".join(
        f"{count} of {len(factor)} {word}"
        for count, factor, word in zip(counts, matrix.FACTORS, named, strict=False)
    )
    return (
        f"Counted so far, in {state.seconds / 60:,.0f} minutes of a shared core: "
        f"{len(done)} agents, with {parts}, and with 1 and 3 environments. Of the pairs of kinds "
        f"that fit, {len(seen)} of {len(every)} have met; {len(matrix.design())} agents have all."
    )


def _programs(state: State) -> str:
    """Over which states of the program."""
    lines = [f"| program | {' | '.join(WORDS)} |", "|---|" + "--:|" * len(WORDS)]
    for batch in (one for one in state.batches if one.seconds):
        counts = " | ".join(f"{batch.tally(name).tried:,}" for name in TITLES)
        lines.append(f"| `{batch.program}` | {counts} |")
    return "\n".join(lines)


def _missed(state: State, targets: Mapping[str, int]) -> str:
    missed = [
        f"{TITLES[name].lower()} ({state.total(name).tried:,} of {goal:,})"
        for name, goal in targets.items()
        if state.total(name).tried < goal
    ]
    return f"Targets not reached: {'; '.join(missed)}." if missed else "Every target is reached."


def _section(name: str, tally: Tally) -> list[str]:
    lines = ["", f"## {TITLES[name]}", "", TEXTS[name], ""]
    if not tally.tried:
        return [*lines, "Not run yet."]
    lines += ["| what | times |", "|---|--:|"]
    lines += [f"| {word} | {count:,} |" for word, count in tally.outcomes.most_common()]
    found = [(word, n) for word, n in tally.results.most_common() if word != "milliseconds"]
    lines += [f"| **{word}** | {count:,} |" for word, count in found]
    if spent := tally.results["milliseconds"]:
        lines += ["", f"{spent / max(tally.tried, 1):,.0f} ms each."]
    if tally.mended:
        lines += ["", "Found by it, and mended since:", "", *(f"- `{one}`" for one in tally.mended)]
    if tally.failures:
        lines += ["", "Broken promises:", "", *(f"- `{one}`" for one in tally.failures[:20])]
    return lines


def line(state: State) -> str:
    parts = [
        f"{name} {tally.tried:,}" + (f" ({len(tally.failures)} BROKEN)" if tally.failures else "")
        for name, tally in ((name, state.total(name)) for name in TITLES)
    ]
    return f"{state.seconds / 60:.0f} min: {', '.join(parts)}"
