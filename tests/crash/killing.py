"""Kills real processes of the command line at random moments and resumes them until the plan is finished.

python -m tests.crash.killing --kills 5000 --seed 7 does it for long; the suite does a share of it."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planrun import api
from planrun.core.fold import apply
from planrun.core.messages import compact_json
from planrun.core.state import State
from planrun.session.store import records
from planrun.testing.answers import Answer, error
from planrun.testing.server import LoopbackServer
from tests.cli.processes import COMMAND, environ
from tests.crash import survivor

Wire = dict[str, Any]

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["planrun.cli.main", "planrun.api", "planrun.cli.driving", "planrun.cli.run", "planrun.cli.resume", "planrun.cli.params",
     "planrun.views.live", "planrun.models.openai", "planrun.models.retry", "tenacity", "minijinja", "openai.resources.chat", "httpx2", "truststore", "rich.live"]
)  # fmt: skip
_PATIENCE = 60.0
_EXEC = 0.08  # of the starts are processes from scratch; the others are forks of one that has imported all
_POLL = 0.0005


def _main(folder: str, env: dict[str, str], args: list[str]) -> None:
    """In the forked process: the entry point, with the streams, the folder and the environment of a new one."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    for number, flags in (
        (0, os.O_RDONLY),
        (1, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        name = os.devnull if number == 0 else ("", "out", "err")[number]
        os.dup2(os.open(name, flags, 0o600), number)
    from planrun.cli.main import main

    os.write(os.open("started", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), b"x")
    main(args)


class Life:
    """One process of a session, from its start to its end."""

    def __init__(self, folder: Path, args: list[str], env: dict[str, str], *, forked: bool) -> None:
        self._forked = self._started = None
        if forked:
            self._forked = _FORKS.Process(target=_main, args=(str(folder), env, args), daemon=True)
            self._forked.start()
            self.pid = self._forked.pid or 0
        else:
            with (folder / "out").open("ab") as out, (folder / "err").open("ab") as err:
                self._started = subprocess.Popen(
                    [*COMMAND, *args], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
                )
            self.pid = self._started.pid

    @property
    def alive(self) -> bool:
        return self._forked.is_alive() if self._forked else self._started.poll() is None

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        """The exit code, or minus the signal. AssertionError where it does not end."""
        if self._forked:
            self._forked.join(_PATIENCE)
            code = self._forked.exitcode
        else:
            code = self._started.wait(_PATIENCE)
        assert code is not None, f"process {self.pid} does not end"
        return code


@dataclass
class Chain:
    """One session that is killed again and again. `seed` decides the places and the moments."""

    folder: Path
    seed: int
    places: Counter[str] = field(default_factory=Counter)
    lives: list[str] = field(default_factory=list)  # what was done to each process

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.refuse = self.refused = 0
        self.folder.mkdir(parents=True)
        (self.folder / "err").touch()
        (self.folder / "plan.yaml").write_text(survivor.PLAN, encoding="utf-8")
        (self.folder / ".thclaws").mkdir()
        (self.folder / ".thclaws" / "settings.json").write_text(json.dumps(survivor.SETTINGS))
        self.log = self.folder / ".thclaws" / "sessions" / "s.jsonl"
        self.totals = (0, 0, 0)

    def answer(self, body: Wire) -> Answer:
        if self.refused < self.refuse:
            self.refused += 1
            return error(429, "slow down")
        return survivor.answer(body)

    def run(self, kills: int, numbers: tuple[int, ...] = (signal.SIGKILL,)) -> None:
        """Kill `kills` times, or until it is finished before; then let it finish, and check everything."""
        with LoopbackServer(self.answer) as server:
            self.server = server
            try:
                for _ in range(kills):
                    if not self._life(self.random.choice(tuple(PLACES)), self.random.choice(numbers)):
                        break
                else:
                    self._life("", 0)
                self._check()
            except BaseException as problem:
                problem.add_note(f"seed {self.seed}: {self.lives}; {self.folder}")
                raise

    def _life(self, place: str, number: int) -> bool:
        """One process; whether the signal ended it before it was over."""
        begun = self.log.exists() and self.log.stat().st_size > 0
        args = ["resume", "s"] if begun else ["run", "plan.yaml", "--session", "s"]
        if not begun:
            self.log.unlink(missing_ok=True)
        env = environ(self.folder, OPENAI_BASE_URL=self.server.url, OPENAI_API_KEY="k")
        started = _grown("started")(self), _grown("err")(self)
        life = Life(self.folder, args, env, forked=self.random.random() >= _EXEC)
        if number:
            if number != signal.SIGKILL:  # before its first line Python's own handlers are in force
                while not any(met() for met in started) and life.alive:
                    time.sleep(_POLL)
            PLACES[place](self, life)
            life.signal(number)
        code = life.wait()
        self.refuse = self.refused
        self.lives.append(f"{place} {code}")
        self._ended(code, number, place)
        if code == 0:
            return False
        self.places[place] += 1
        return True

    def _ended(self, code: int, number: int, place: str) -> None:
        """What holds at the end of each process: the exit code, the log, the totals."""
        words = (self.folder / "err").read_text()
        limit = time.monotonic() + _PATIENCE  # what is killed takes a moment to die
        while left := list(processes_in(self.folder)):
            assert time.monotonic() < limit, f"processes {left} are alive after {code} at {place}"
            time.sleep(_POLL)
        sealed = number != signal.SIGKILL
        # While the interpreter shuts down the system's own handling is in force again.
        assert code in (0, -number) or (sealed and code == 128 + number), words[-2000:]
        assert "Traceback" not in words and "internal error" not in words, words[-3000:]
        if self.log.exists() and self.log.stat().st_size:
            state, before = State(), (0, 0, 0)
            for record in records(self.log):
                state = apply(state, record, api.read_plan)
                now = (state.spend.requests, state.spend.prompt_tokens, state.spend.completion_tokens)
                assert all(a <= b for a, b in zip(before, now, strict=True)), record
                before = now
            assert all(a <= b for a, b in zip(self.totals, before, strict=True)), "totals went down"
            self.totals = before
            if code == 128 + number and not words.endswith("planrun: interrupted\n"):
                assert state.ended is not None and state.ended.outcome == "interrupted" and state.ended.exit_code == code

    def _check(self) -> None:
        """What holds in the end, whatever happened on the way."""
        found = list(records(self.log))
        state = State()
        for record in found:
            state = apply(state, record, api.read_plan)
        assert state.ended is not None
        assert (state.ended.outcome, state.ended.output) == ("finished", survivor.OUTPUT), state.ended
        assert [s.output for s in state.steps] == survivor.STEPS
        assert sorted((self.folder / "effects").read_text().split()) == survivor.EFFECTS
        assert set((self.folder / "ran").read_text().split()) == {"two", "tidy"}
        lines = [json.loads(line) for line in self.log.read_bytes().splitlines()]
        self._paid_once(lines)

    def _paid_once(self, lines: list[Wire]) -> None:
        """No request was sent again once its answer was on record; each was on record before it was sent."""
        asked = [compact_json(r.body["messages"]) for r in self.server.requests]
        answers = sum(r["type"] == "response" and not r.get("error") for r in lines)
        assert len(asked) - self.refused <= sum(r["type"] == "request" for r in lines)
        twice = sum(n - 1 for n in Counter(asked).values()) - self.refused
        unanswered = sum(r["type"] == "request" for r in lines) - answers
        assert twice <= unanswered, (twice, unanswered, [k[-300:] for k, n in Counter(asked).items() if n > 1])


def processes_in(folder: Path) -> Iterator[int]:
    """The processes that work in `folder`."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and Path(os.readlink(entry / "cwd")) == folder:
                yield int(entry.name)


def _type(log: Path) -> tuple[str, str]:
    """The type of the last record, and what kind of it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 20_000))
            last = json.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2])
        return last["type"], last.get("name") or last.get("purpose") or ""
    except (OSError, ValueError):
        return "", ""


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


Wait = Callable[[Chain, Life], None]


def _when(test: Callable[[Chain], Callable[[], bool]], within: float) -> Wait:
    """Wait until the test holds, or the process is over; then a random time, in seconds."""

    def wait(chain: Chain, life: Life) -> None:
        met = test(chain)
        for _ in range(chain.random.choice((1, 1, 2, 3))):
            while not met() and life.alive:
                time.sleep(_POLL)
        time.sleep(chain.random.uniform(0, within))

    return wait


def _last(*wanted: tuple[str, str]) -> Callable[[Chain], Callable[[], bool]]:
    return lambda chain: lambda: _type(chain.log) in wanted


def _grown(name: str) -> Callable[[Chain], Callable[[], bool]]:
    def test(chain: Chain) -> Callable[[], bool]:
        path = chain.folder / name
        seen = [_size(path)]

        def met() -> bool:
            before, seen[0] = seen[0], _size(path)
            return seen[0] > before

        return met

    return test


def _pause(chain: Chain, life: Life) -> None:
    """The next request is refused for now."""
    chain.refuse += 1
    while chain.refused < chain.refuse and life.alive:
        time.sleep(_POLL)
    time.sleep(chain.random.uniform(0, 0.3))


PLACES: dict[str, Wait] = {
    "start": lambda chain, life: time.sleep(chain.random.uniform(0, 0.06)),
    "anywhere": lambda chain, life: time.sleep(chain.random.uniform(0, 0.4)),
    "model": _when(_last(("request", ""), ("request", "step")), 0.01),
    "tool": _when(_last(("tool_start", "Bash")), 0.015),
    "run": _when(_last(("tool_start", "run")), 0.015),
    "verify": _when(_last(("tool_start", "verify")), 0.015),
    "hook": _when(_grown("hooks"), 0.006),
    "summary": _when(_last(("request", "summary")), 0.015),
    "pause": _pause,
    "write": _when(_grown(".thclaws/sessions/s.jsonl"), 0.0),
    "end": _when(_last(("end", "")), 0.02),
}


def main() -> None:
    import argparse
    import tempfile

    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signals", action="store_true", help="TERM and INT instead of KILL")
    parser.add_argument("--keep-going", action="store_true")
    asked = parser.parse_args()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if asked.signals else (signal.SIGKILL,)
    places: Counter[str] = Counter()
    seed, began, bad = asked.seed, time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        while places.total() < asked.kills:
            chain = Chain(Path(folder) / str(seed), seed)
            try:
                chain.run(random.Random(seed).randint(1, 20), numbers)
            except Exception as problem:
                bad += 1
                print(f"{type(problem).__name__}: {problem}", *getattr(problem, "__notes__", ()), sep="\n", flush=True)
                if not asked.keep_going:
                    input("look at it, then Enter ")
                    raise
            places += chain.places
            seed += 1
    print(
        f"{places.total()} kills in {seed - asked.seed} sessions, {time.monotonic() - began:.0f} s, {bad} failed: {dict(places)}"
    )


if __name__ == "__main__":
    main()
