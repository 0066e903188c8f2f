"""Resume of a long session against that of a short one, as whole processes: `python tests/benchmarks/resume.py [MB …]`.

Makes logs of 100 MB and 1 GB (or of the sizes named) as a run makes them, with the real encoder, fold and snapshots, leaves
each as a kill would, and prints how long a process takes to open it and how much memory it needs, as ratios to the first."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from planrun.api import read_plan
from planrun.core.edits import Drop
from planrun.core.events import CallEnded, CallStarted, Compacted, Event, Requested, Responded, Said, Session, StepChanged
from planrun.core.fold import apply
from planrun.core.messages import Message, ToolCall, compact_json
from planrun.core.state import State
from planrun.session import log as logs
from planrun.session import snapshot

STEPS = 20
TURNS = 20  # from one compaction inside a step to the next: the active context stays within a window
ROUNDS = 11
OPEN = """
import resource, sys
from pathlib import Path
from planrun import resuming
with resuming.opened(Path(sys.argv[1])):
    used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
PLAN = "version: 1\nname: long\nmodel: m\nsteps:\n" + "".join(f"  - {{id: s{n}, prompt: Do it.}}\n" for n in range(STEPS))


def happening(size: int) -> Iterator[Event]:
    """A run whose steps share `size` bytes of tool results among them."""
    pool = "".join(random.Random(7).choices("the file src main def return import error line 0123\n", k=1 << 20))
    yield Session(1, "bench", "/", "/plan.yaml", PLAN, "d", {}, "m", {})
    first = 2
    for step in range(STEPS):
        yield StepChanged(f"s{step}", "in_progress", 1)
        yield Said("user", "Do it.", "user", f"s{step}", 1)
        for turn in range(size // STEPS // 21_000):
            start = random.Random(turn).randrange(len(pool) - 40_000)
            yield from one_turn(f"s{step}", f"c{step}.{turn}", pool[start : start + 2_000 + turn * 977 % 36_000])
            if turn % TURNS == TURNS - 1:
                yield Compacted("drop", "window", (Drop(first, 10**9),), 1, 1, 1, 2, 1)
        yield StepChanged(f"s{step}", "done", 1, "done", {"summary": pool[:400]})


def one_turn(step: str, call_id: str, result: str) -> Iterator[Event]:
    call = ToolCall(call_id, "Read", compact_json({"file_path": call_id}))
    yield Requested(call_id * 8, 9_000, 30, 8_000, step)
    yield Said.of(Message("assistant", None, (call,)), "model", step, 1)
    yield Responded({"prompt_tokens": 9_000, "cached_tokens": None, "completion_tokens": 40}, "m", 1.5)
    yield CallStarted(call_id, "Read", step)
    yield Said("tool", result, "tool", step, 1, tool_call_id=call_id, name="Read")
    yield CallEnded(call_id, "Read", "ok", 0.002, step)


def make(path: Path, size: int) -> None:
    """Write a log of about `size` bytes; it ends in the middle of a line."""
    began = time.perf_counter()
    log, state = logs.create(path), State()
    keeper = snapshot.Keeper(log)
    for event in happening(size):
        record = log.append(event)
        state = apply(state, record, read_plan)
        keeper.observe(record, state)
    log.close()
    with path.open("r+b") as file:
        file.truncate(log.start + 20)
    took, kept = time.perf_counter() - began, snapshot.path_of(path).stat().st_size
    print(f"{path.name}: {log.size / 1e6:.0f} MB, {state.seq} records in {took:.1f} s, snapshot {kept / 1e3:.0f} kB")


def opening(path: Path) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of CPU and peak MB of a process that opens the session; the log is left as it was."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True, check=True)
    took = time.perf_counter() - began
    cpu, peak = map(float, done.stdout.split())
    return took, cpu, peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{size}.jsonl" for size in sizes]
        for path, size in zip(paths, sizes, strict=True):
            make(path, size * 10**6)
        rounds = [[opening(path) for path in paths] for _ in range(ROUNDS)]
        middle = [[statistics.median(r[n][kind] for r in rounds) for kind in range(3)] for n in range(len(paths))]
        for size, (took, cpu, peak) in zip(sizes, middle, strict=True):
            ratios = f"{took / middle[0][0]:.2f}x, CPU {cpu * 1e3:.0f} ms, {cpu / middle[0][1]:.2f}x"
            print(f"{size} MB: {took * 1e3:.0f} ms, {ratios}, {peak:.0f} MB RSS")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [100, 1000])
