"""docs/reliability.md, from the counts."""

from collections.abc import Mapping
from pathlib import Path

from torture.tally import Tally

WORDS = {
    "kills": (
        "Processes ended at random moments",
        "`adac resume` is ended by SIGKILL, SIGTERM, Ctrl-C once or twice, or SIGSTOP and SIGKILL, "
        "again and again; the run that is finished at last is compared with one that was never "
        "touched: weights, optimisers, replay buffer, random states by their checksums, "
        "metrics.csv and evaluations.csv row by row, clocks aside.",
    ),
    "crashes": (
        "Death at each system call of a checkpoint's writing",
        "The n-th open, fsync, rename or unlink of a save does not happen, nor does any after it, "
        "for every n. What a new process finds must be the old state or the new one, whole.",
    ),
    "damage": (
        "Damaged files",
        "Bits flipped, files cut, extended, scrambled, zeroed, lost and swapped, in every file of "
        "a run folder. It must load as what was saved, or as the checkpoint before, or be refused "
        "in a sentence. Tables have no checksum: a digit changed in one goes unnoticed, and no "
        "state depends on it.",
    ),
    "words": (
        "Generated commands, settings, sweeps and spaces",
        "Command lines, overrides, descriptions of agents, TOML files and Gymnasium spaces drawn "
        "at random, most of them nonsense: each is accepted or refused in one sentence.",
    ),
}


def write_page(
    path: Path,
    tallies: Mapping[str, Tally],
    covered: Mapping[str, int],
    agents: int,
    minutes: float,
) -> None:
    lines = [
        "# Reliability, counted",
        "",
        f"Written by `make torture` (tools/torture) after {minutes:g} minutes; the same seed draws "
        "the same attacks, though not the same moments.",
        f"The matrix has {agents} agents: every base × explorer × intrinsic reward × critic that "
        "fit together, with 1 and with 3 environments.",
        "",
        "| attack | tried | agents | broken promises |",
        "|---|--:|--:|--:|",
    ]
    for name, tally in tallies.items():
        seen = f"{covered[name]} of {agents}" if name in covered else ""
        lines.append(f"| {WORDS[name][0]} | {tally.tried:,} | {seen} | {len(tally.failures)} |")
    for name, tally in tallies.items():
        title, text = WORDS[name]
        lines += ["", f"## {title}", "", text, "", "| outcome | times |", "|---|--:|"]
        lines += [f"| {word} | {count:,} |" for word, count in tally.outcomes.most_common()]
        lines += ["", *(f"- {failure}" for failure in tally.failures[:20])]
    path.write_text("\n".join(lines).rstrip() + "\n", "utf-8")
