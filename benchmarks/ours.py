"""adac's part of the benchmark: one measurement a process, one line of JSON. See speed.py."""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import stopwatch

if TYPE_CHECKING:
    from adac import Learner

MATMUL = 2_048  # rows and columns
CHUNK = 0.25  # seconds: matmul and update take turns, so that a slow spell hits both
REPLAY_BLOCK = 1_000


def make_learner(arguments: argparse.Namespace) -> "Learner":
    from adac import Learner

    overrides: dict[str, Any] = {"warmup": stopwatch.LEARNING_STARTS}
    if arguments.particles:
        overrides["particles"] = arguments.particles
    overrides |= dict(item.split("=", 1) for item in getattr(arguments, "set", None) or [])
    return Learner(arguments.env, arguments.agent, overrides=overrides)


def rate(arguments: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of `learn`, with everything that it does besides updates.

    Only what `Learner` has always had, because compare.py runs this with older sources too.
    """
    import jax

    learner = make_learner(arguments)
    watch = stopwatch.Stopwatch(
        arguments.seconds,
        gate=arguments.gate,
        finish=lambda: jax.block_until_ready(learner.state),
    )
    learner.learn(stopwatch.FOREVER, callback=lambda seen: watch.tick(seen.step))
    return watch.result() | {"updates": learner.updates}


def race(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of `learn`, as the agent comes, until π's return reaches each goal."""
    import jax

    from adac import Learner

    learner = Learner(arguments.env, arguments.agent, seed=arguments.seed)
    clock = stopwatch.Race(
        arguments.goal,
        arguments.seconds,
        lambda: float(learner.evaluate(stopwatch.EPISODES).returns.mean()),
        finish=lambda: jax.block_until_ready(learner.state),
    )
    learner.learn(stopwatch.FOREVER, callback=lambda seen: clock.tick(seen.step))
    return clock.result()


def update(arguments: argparse.Namespace) -> dict[str, Any]:
    """The jitted update on a fixed batch, next to the speed of a large matmul."""
    import arithmetic

    learner = make_learner(arguments)
    flops = arithmetic.per_update(learner.agent, learner.obs_dim, learner.action_dim)
    work = {"matmul": matmuls(), "update": updates(learner)}
    for run in work.values():
        _rate_of(run, CHUNK)
    times: dict[str, list[float]] = {"matmul": [], "update": []}
    for _ in range(max(4, round(arguments.seconds / (2 * CHUNK)))):
        for name, run in work.items():
            times[name].append(1.0 / _rate_of(run, CHUNK))
    speeds = [2.0 * MATMUL**3 / seconds for seconds in times["matmul"]]
    pairs = zip(times["update"], speeds, strict=True)
    return {
        "milliseconds": 1e3 * statistics.median(times["update"]),
        "gflop": flops / 1e9,
        "matmul_gflops": statistics.median(speeds) / 1e9,
        "of_limit": statistics.median(flops / speed / seconds for seconds, speed in pairs),
    }


Burst = Callable[[int], None]  # runs so many calls and waits for the last


def matmuls() -> Burst:
    import jax
    import jax.numpy as jnp

    multiply = jax.jit(jnp.matmul)
    keys = jax.random.split(jax.random.key(0))
    left, right = (jax.random.normal(key, (MATMUL, MATMUL)) for key in keys)

    def run(calls: int) -> None:
        for _ in range(calls):
            multiply(left, right).block_until_ready()

    return run


def updates(learner: "Learner") -> Burst:
    """As `Learner` calls it: state donated, policies improved at every policy_delay-th update."""
    import jax
    import numpy as np

    random = np.random.default_rng(0)
    fill_replay(learner, learner.agent.batch_size, random)
    replay, running = learner.replay, learner.loop.running
    rows = replay.take(replay.draw(learner.agent.batch_size))
    key, progress, numbers = jax.random.key(1), np.float32(0.5), count(1)
    delay = learner.agent.base.policy_delay

    def run(calls: int) -> None:
        for _ in range(calls):
            number = next(numbers)
            improve = number % delay == 0
            running.update(rows, key, np.int32(number), progress, improve=improve)
        jax.block_until_ready(running.arrays)

    run(2 * delay)
    return run


def _rate_of(run: Burst, seconds: float) -> float:
    """Calls per second, with as many calls in a burst as fill the time."""
    calls, began, done = 2, time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        run(calls)
        done += calls
        calls *= 2 if elapsed < seconds / 4 else 1
    return done / elapsed


def startup(arguments: argparse.Namespace) -> dict[str, Any]:
    """`adac train` as it stands, from the start of the process to the first step and update."""
    import jax

    from adac.cli import main as cli
    from adac.training.loop import Loop

    seen: dict[str, float] = {}
    advance = Loop.advance

    def watched(loop: Loop) -> None:
        advance(loop)
        seen.setdefault("first_step", time.monotonic() - arguments.began)
        if loop.updates:
            jax.block_until_ready(loop.running.arrays)
            seen["first_update"] = time.monotonic() - arguments.began
            stopwatch.report(seen)
            os._exit(0)

    setattr(Loop, "advance", watched)  # noqa: B010 - mypy refuses the assignment
    command = ["adac", "train", arguments.env, "--agent", arguments.agent]
    sys.argv = [*command, "--out", arguments.out]
    cli.main()
    raise RuntimeError("the command ended before its first update")


def memory(arguments: argparse.Namespace) -> dict[str, Any]:
    """Of the whole process, and by how much it grows while the replay buffer fills."""
    import numpy as np

    learner = make_learner(arguments)
    before = stopwatch.resident_megabytes()
    fill_replay(learner, stopwatch.ROWS, np.random.default_rng(0))
    after = stopwatch.resident_megabytes()
    return {"process_mb": after, "replay_mb": after - before, "rows": len(learner.replay)}


def fill_replay(learner: "Learner", rows: int, random: Any) -> None:
    import numpy as np

    for size in _blocks(rows, REPLAY_BLOCK):
        wide = (size, learner.obs_dim)
        learner.replay.add(
            obs=random.normal(size=wide),
            action=random.uniform(-1.0, 1.0, (size, learner.action_dim)),
            reward=random.normal(size=size),
            bonus=np.zeros(size),
            continues=np.ones(size),
            next_obs=random.normal(size=wide),
            ahead=np.zeros(size),
        )


def _blocks(total: int, size: int) -> Iterator[int]:
    while total > 0:
        yield min(size, total)
        total -= size


def main() -> None:
    measures = {
        "rate": rate, "race": race, "update": update, "startup": startup, "memory": memory,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--agent", default="td3")
    parser.add_argument("--particles", type=int, help="K of an adac agent")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE", help="again for more")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--goal", type=float, action="append", help="a return to reach; repeatable")
    parser.add_argument("--seed", type=int, default=0, help="of a race")
    parser.add_argument("--gate", action="store_true", help="wait for a line before timing")
    parser.add_argument("--core", type=int, help="run on this core alone")
    parser.add_argument("--began", type=float, default=0.0, help="time.monotonic() of the start")
    parser.add_argument("--out", help="the run folder of startup")
    arguments = parser.parse_args()
    if arguments.core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {arguments.core})
    stopwatch.report(measures[arguments.measure](arguments))


if __name__ == "__main__":
    main()
