"""Kills commands that work on a stopped session, at random moments, and gives each again.

python -m tests.crash.commanding --kills 500 --seed 7 does it for long; the suite does a share of it."""

from __future__ import annotations

import random
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from planrun.building import read_plan
from planrun.core.context import entries
from planrun.core.records import encode
from planrun.doctor.log import examine
from planrun.session.following import folded
from planrun.session.store import records
from planrun.testing.answers import Answer, text
from planrun.testing.model import call, done
from planrun.testing.server import LoopbackServer
from tests.cli.processes import environ
from tests.crash.killing import Life
from tests.runner.driving import Project, ask, project, shell, step

_POLL = 0.0003
_PLACE = {"seconds", "latency"}  # differ from run to run


@dataclass(frozen=True)
class Command:
    """What is killed, and what came of it in the end, to be compared with what comes of it when nothing happens to it."""

    args: tuple[str, ...]
    outcome: Callable[[Path, str], object]  # of the folder of logs and what was printed
    prepare: Callable[[bytes], bytes] = bytes  # the log that it begins with


def _view(folder: Path, _: str) -> object:
    state = folded(folder / "s.jsonl", read_plan)
    return [(e.message.role, re.sub(r"\d+", "N", e.message.content or "")) for e in entries(state.view)]


def _forked(folder: Path, _: str) -> object:
    found = [encode(r.event) for r in records(folder / "t.jsonl")]
    return [{k: v for k, v in body.items() if k not in _PLACE} for body in found]


def _finished(folder: Path, said: str) -> object:
    end = folded(folder / "s.jsonl", read_plan).ended
    return (end.outcome, end.output, (folder.parents[1] / "effects").read_text()) if end else None


def _without_a_line(log: bytes) -> bytes:
    lines = log.splitlines(keepends=True)
    return b"".join([*lines[:9], *lines[10:]])


COMMANDS = {
    "compact": Command(("compact", "s", "--force"), _view),
    "fork": Command(("fork", "s", "--session", "t"), _forked),
    "repair": Command(
        ("doctor", "s", "--repair"), lambda folder, _: (folder / "s-repaired.jsonl").read_bytes(), _without_a_line
    ),
    "search": Command(("search", "needle", "--session", "s"), lambda _, said: said),
    "torn": Command(("resume", "s"), _finished, lambda log: log + log.splitlines()[-1][:40]),
}


class Whole(NamedTuple):
    """What came of a command: the files that are there then, and how many seconds it took."""

    outcome: object
    left: list[str]
    span: float


class Bench:
    """A stopped session in a folder of its own, put back before each life of a command."""

    def __init__(self, folder: Path, server: LoopbackServer) -> None:
        plan = [
            step("one", "Count.", context="keep", output={"n": "integer"}),
            shell("two", "grep -qsx two effects || echo two >> effects", env={}),
        ]
        self.made: Project = project(folder, *plan, goal="Count it all.", output={"n": "${{ steps.one.output.n }}"}, model="m")
        self.logs = self.made.log.parent
        self.env = environ(folder, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k", TMPDIR=str(folder / "tmp"))
        turns = [call("Bash", command=f"echo needle {n}; seq {n} 900") for n in range(12)]
        self.made.run([*turns, done(n=3)], ask(until="one"))
        self.log = self.made.log.read_bytes()
        (folder / "effects").touch()

    def reset(self, command: Command) -> bytes:
        for path in (self.logs, self.made.folder / "tmp"):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        (self.made.folder / "effects").write_text("")
        begun = command.prepare(self.log)
        self.made.log.write_bytes(begun)
        return begun

    def life(self, command: Command) -> Life:
        for name in ("out", "err"):
            (self.made.folder / name).write_bytes(b"")
        return Life(self.made.folder, list(command.args), self.env, forked=True)

    def whole(self, command: Command) -> Whole:
        """Give it (again), to its end."""
        began = time.monotonic()
        code = self.life(command).wait()
        span = time.monotonic() - began
        said, told = ((self.made.folder / name).read_text() for name in ("out", "err"))
        assert code == 0, told
        return Whole(command.outcome(self.logs, said), self.left(), span)

    def left(self) -> list[str]:
        folders = [
            p for p in (self.logs, self.made.folder / "tmp", self.made.folder / ".thclaws" / "tool-output") if p.exists()
        ]
        return sorted(str(p.relative_to(self.made.folder)) for folder in folders for p in folder.iterdir())

    def seen(self) -> list[tuple[str, int]]:
        """The files as they stand; one that comes or grows is a moment to kill at."""
        found = []
        for path in self.logs.iterdir():
            try:
                found.append((path.name, path.stat().st_size))
            except FileNotFoundError:
                continue
        return sorted(found)


def kill(bench: Bench, name: str, rng: random.Random, number: int, wanted: Whole) -> str:
    """One life that is cut off and one that is not. Returns what was cut off, or came to its end before."""
    command = COMMANDS[name]
    begun = bench.reset(command)
    life = bench.life(command)
    # What is being repaired has no name before its end: there is nothing to wait for.
    changes, past = (0, rng.uniform(0, wanted.span)) if name == "repair" else (rng.randint(0, 7), rng.uniform(0, 0.004))
    for _ in range(changes):
        now = bench.seen()
        while bench.seen() == now and life.alive:
            time.sleep(_POLL)
    time.sleep(past)
    life.signal(number)
    code = life.wait()
    where = f"{name}, {number} after {changes} changes and {past:.4f} s: {code}"
    told = (bench.made.folder / "err").read_text()
    assert code in (0, -number, 128 + number) and "Traceback" not in told and "internal error" not in told, f"{where}: {told}"
    assert bench.made.log.read_bytes().startswith(bench.log if name == "torn" else begun), where
    others = [path for path in bench.logs.glob("*.jsonl") if path != bench.made.log]
    for path in (*others, *([bench.made.log] if name != "repair" else [])):
        assert {f.kind for f in examine(path, read_plan).findings if f.damage} <= {"torn"}, f"{where}: {path}"
    if others:  # what has its name is whole
        assert command.outcome(bench.logs, "") == wanted.outcome, where
    else:
        found = bench.whole(command)
        assert (found.outcome, found.left) == (wanted.outcome, wanted.left), f"{where}: {found} is not {wanted}"
    return f"{name} {'over' if code == 0 else 'cut'}"


def answer(body: dict[str, Any]) -> Answer:
    """The summary, with room for a kill."""
    return text("Facts: it was counted\nDone: counts\nFiles: none\nOpen: two", delay=0.01)


def kills(folder: Path, count: int, seed: int, number: int, names: tuple[str, ...] = tuple(COMMANDS)) -> Iterator[str]:
    rng = random.Random(seed)
    with LoopbackServer(answer) as server:
        bench = Bench(folder, server)
        wanted = {}
        for name in names:
            bench.reset(COMMANDS[name])
            wanted[name] = bench.whole(COMMANDS[name])
        for n in range(count):
            name = names[n % len(names)]
            yield kill(bench, name, rng, number, wanted[name])


def main() -> None:
    import argparse
    import tempfile

    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--term", action="store_true", help="TERM instead of KILL")
    parser.add_argument("names", nargs="*", default=list(COMMANDS))
    asked = parser.parse_args()
    number = signal.SIGTERM if asked.term else signal.SIGKILL
    began, folder = time.monotonic(), Path(tempfile.mkdtemp()).resolve()
    found = Counter(kills(folder, asked.kills, asked.seed, number, tuple(asked.names)))
    print(f"{found.total()} in {time.monotonic() - began:.0f} s: {dict(found)}")


if __name__ == "__main__":
    main()
