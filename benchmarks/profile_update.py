"""Where an update's time goes: matrix products, elementwise kernels, random numbers, waiting.

python benchmarks/profile_update.py --agent adac-td3 --particles 32
taskset -c 0 env NPROC=1 python benchmarks/profile_update.py      one thread

From JAX's own profiler, in milliseconds per update. Busy time is summed over threads, so with two
it may be up to twice the elapsed time; the profiler makes everything slower, so shares count.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax

import ours

UPDATES = 200
KINDS = {  # by how XLA names its thunks
    "matrix products": ("dot", "custom-call", "ynn_fusion"),
    "random numbers": ("while",),
    "copies": ("copy", "bitcast_copy"),
}


def kind_of(name: str) -> str | None:
    """None for what is no kernel: executors, Python, and events that only mark an end."""
    if name.startswith(("$", "end: ", "Thunk")) or "::" in name or "(" in name or " " in name:
        return None
    for kind, starts in KINDS.items():
        if name.startswith(starts):
            return kind
    return "elementwise and reductions" if "fusion" in name or "reduce" in name else None


def events(folder: str) -> list[dict[str, Any]]:
    path = next(Path(folder).rglob("*.trace.json.gz"))
    with gzip.open(path) as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return [event for event in found if event.get("ph") == "X"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--agent", default="td3")
    parser.add_argument("--particles", type=int)
    run = ours.updates(ours.make_learner(parser.parse_args()))
    run(UPDATES)
    began = time.perf_counter()
    run(UPDATES)
    untraced = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            began = time.perf_counter()
            run(UPDATES)
            elapsed = time.perf_counter() - began
        busy: Counter[str] = Counter()
        for event in events(folder):
            kind = kind_of(event["name"])
            if kind is not None:
                busy[kind] += event["dur"] / 1e3 / UPDATES
    each = 1e3 / UPDATES
    print(f"elapsed {each * untraced:.2f} ms, with the profiler {each * elapsed:.2f}")
    for kind, milliseconds in busy.most_common():
        print(f"{milliseconds:7.2f} ms  {kind}")
    print(f"{sum(busy.values()):7.2f} ms  busy in all")


if __name__ == "__main__":
    main()
