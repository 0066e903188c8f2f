"""Search in a large archive against grep and ripgrep, as whole processes: `python tests/benchmarks/search.py [MESSAGES]`.

Makes a session log of a million messages (or as many as named; 346 bytes each on average, every tenth with Chinese in it), times
the first search, which builds the index, and prints for each kind of query how long `planrun search` takes and how long the
same text takes to be found in the log by `rg -F` or `grep -F`, whichever are installed. All times are of CPU, medians of rounds
that take turns. Goals: rare words and Chinese in half of ripgrep's time, anything in one and a half times it, an index of at most
2.2 times the text, built at 8 MB/s."""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from planrun.core.events import CallEnded, CallStarted, Event, Requested, Responded, Said, Session
from planrun.core.messages import Message, ToolCall
from planrun.session import log as logs
from planrun.session.index import NAME

ROUNDS = 7
RARE, CHINESE = "needleabcxyz", "量子纠缠态"
QUERIES = (RARE, CHINESE, CHINESE[:3], "量", "一", "nosuchword", "commonword", "commonword --step step-3", "commonword wyzk")


def texts(count: int) -> Iterator[str]:
    pick = random.Random(3)
    words = ["w" + "".join(pick.choices("abcdefghijklmnopqrstuvwxyz", k=pick.randint(2, 9))) for _ in range(50_000)]
    weights = list(itertools.accumulate(1 / (i + 3) for i in range(len(words))))
    signs = [chr(0x4E00 + i) for i in range(3000)]
    often = list(itertools.accumulate(1 / (i + 5) for i in range(len(signs))))
    for i in range(count):
        text = " ".join(pick.choices(words, cum_weights=weights, k=pick.choice((12, 25, 50, 90))))
        if i % 10 == 0:
            text += " " + "".join(pick.choices(signs, cum_weights=often, k=60))
        yield f"{text} {RARE} {CHINESE} commonword" if i == count // 2 else f"{text} commonword" if i % 3 else text


def events(count: int) -> Iterator[Event]:
    """What a run records: a request, its answer with a call, the result."""
    for number, text in enumerate(texts(count)):
        step, call = f"step-{number * 20 // count}", f"call_{number // 2}"
        if number % 2 == 0:
            yield Requested("0" * 64, 20_000, 40, 21_000, step)
            yield Responded(
                {"prompt_tokens": 20_000, "cached_tokens": 19_000, "completion_tokens": 90}, "m", 1.234, cost_usd=0.01
            )
            yield Said.of(Message("assistant", text, (ToolCall(call, "Bash", '{"command":"ls"}'),)), "model", step, 1)
            yield CallStarted(call, "Bash", step)
        else:
            yield Said.of(Message("tool", text, (), call), "tool", step, 1, name="Bash")
            yield CallEnded(call, "Bash", "ok", 0.123, step)


def write(path: Path, count: int) -> int:
    """A log of `count` messages, as a run writes it; the bytes of their texts."""
    log = logs.create(path)
    size = 0
    log.append(Session(1, path.stem, str(path.parents[2]), "plan.yaml", "steps: []", "", {}, "m", {}))
    for event in events(count):
        log.append(event)
        size += len(event.content.encode("utf-8")) if isinstance(event, Said) and event.content else 0
    log.close()
    return size


def timed(argv: list[str], cwd: Path) -> float:
    """Seconds of CPU of a whole process, its output read (grep stops early where nobody reads it)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=cwd, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve()
        log = project / ".thclaws" / "sessions" / "long.jsonl"
        log.parent.mkdir(parents=True)
        text = write(log, count)
        search = [sys.executable, "-m", "planrun", "search"]
        seconds = timed([*search, RARE], project)
        index = (log.parent / NAME).stat().st_size
        print(f"{count:,} messages, {text / 1e6:.0f} MB of text, log {log.stat().st_size / 1e6:.0f} MB")
        print(
            f"index built in {seconds:.1f} s of CPU: {text / 1e6 / seconds:.1f} MB/s, {index / 1e6:.0f} MB, {index / text:.2f} x text"
        )
        others = {"rg": ["rg", "-F", "-c"], "grep": ["env", "LC_ALL=C", "grep", "-F", "-c"]}
        found = {name: argv for name, argv in others.items() if shutil.which(name)}
        for query in QUERIES:
            ways = {"planrun": [*search, *query.split(" ", 1)]} | {
                n: [*a, query.split()[0], str(log)] for n, a in found.items()
            }
            rounds = {name: [] for name in ways}  # type: dict[str, list[float]]
            for _, (name, argv) in itertools.product(range(ROUNDS), ways.items()):
                rounds[name].append(timed(argv, project))
            median = {name: statistics.median(each) for name, each in rounds.items()}
            ratios = ", ".join(f"{median['planrun'] / median[n]:.2f} x {n}" for n in found)
            print(f"{query:24} {', '.join(f'{n} {s * 1000:.0f} ms' for n, s in median.items())}   {ratios}")


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    main()
