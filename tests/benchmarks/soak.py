"""A soak: plans of 1,000 steps by the real CLI against a loopback endpoint that fails now and then, for an hour.

    python tests/benchmarks/soak.py --minutes 60 --steps 1000 --fault-rate 0.05 --seed 1

Every second plan is also killed (SIGKILL or SIGTERM) at random moments and resumed. A table on stdout says by tenths of each
plan what a step costs and how much memory, descriptors, threads and children the process has; then what was found wrong: lost or altered
outputs, effects that happened twice or never, a broken log, processes or files left over. Exit 1 where anything is. Linux only, as root: it reads /proc, and planrun
lets nobody else look into it."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak_faults import Faults
from soak_work import CONTEXTS, FILES, Job, Worker, data_file, jobs, plan

from planrun.core.events import CallEnded, CallStarted, Compacted, Said, StepChanged
from planrun.core.records import Record
from planrun.session.store import records
from planrun.testing.server import Answer, LoopbackServer

ROOT = Path(__file__).parents[2]
# The exit codes after which a run is resumed, and what it must have said.
RESUMABLE = {
    2: "isn't an OpenAI-style API",
    75: "after 6 requests",
    143: "interrupted",
    -signal.SIGTERM: "",
    -signal.SIGKILL: "",
}
PATIENCE = 900.0  # seconds without a new step after which a run counts as stuck
TICK = 1000 / os.sysconf("SC_CLK_TCK")
GROWTH_MB, GROWTH = 8, 1.5  # what memory, and the cost of a step, may grow by from the second tenth to the last


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at the moment when it sends the first request of a step: it waits, so nothing of a tool is left."""

    pid: int
    step: int
    wall: float
    cpu: float
    rss: float
    fds: int
    threads: int
    children: int


def sample(pid: int, step: int) -> Sample | None:
    proc = Path(f"/proc/{pid}")
    try:
        fields = (proc / "stat").read_text().rpartition(") ")[2].split()
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
        children = sum(len(t.read_text().split()) for t in proc.glob("task/*/children"))
        cpu = (int(fields[11]) + int(fields[12])) * TICK
        rss = int(status["VmRSS"].split()[0]) / 1024
        return Sample(pid, step, time.monotonic(), cpu, rss, len(os.listdir(proc / "fd")), int(status["Threads"]), children)
    except (OSError, KeyError):
        return None


@dataclass
class Run:
    """One plan from its first start to its last resume."""

    name: str
    folder: Path
    work: list[Job]
    context: str
    samples: list[Sample] = field(default_factory=list)
    starts: Counter[int] = field(default_factory=Counter)  # by exit code, negative for a signal
    wrong: list[str] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0
    child: subprocess.Popen[bytes] | None = None
    moved: float = field(default_factory=time.monotonic)
    facts: Counter[str] = field(
        default_factory=Counter
    )  # of the log: compactions by what set them off, calls by how they ended

    @property
    def log(self) -> Path:
        return self.folder / ".thclaws" / "sessions" / f"{self.name}.jsonl"

    def saw(self, step: str | None) -> None:
        """A request came; the first one of a step is the moment to measure."""
        self.requests += 1
        number = int(step[1:]) if step else -1
        if self.child is None or number <= (self.samples[-1].step if self.samples else -1):
            return
        self.moved = time.monotonic()
        if (found := sample(self.child.pid, number)) is not None:
            self.samples.append(found)


def prepare(folder: Path, work: list[Job], name: str, context: str) -> Run:
    for sub in ("data", "w", "tmp"):
        (folder / sub).mkdir(parents=True)
    for number in range(FILES):
        (folder / "data" / f"{number}.txt").write_text(data_file(number))
    (folder / "plan.yaml").write_text(plan(work, name, context))
    return Run(name, folder, work, context)


def drive(run: Run, url: str, chance: random.Random, kill_every: float) -> None:
    """Start the plan and resume it until it ends in a way that nobody asked for, or finishes."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(run.folder),
        "TMPDIR": str(run.folder / "tmp"),
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": "soak",
        "LANG": "C.UTF-8",
    }
    began = time.monotonic()
    while True:
        if run.log.exists() and not run.log.stat().st_size:
            run.log.unlink()  # killed before there was anything to resume
        what = ["resume", run.name] if run.log.exists() else ["run", "plan.yaml", "--model", "m", "--session", run.name]
        command = [sys.executable, "-m", "planrun", *what, "-q", "--base-url", url]
        with (run.folder / "stderr.txt").open("wb") as errors:
            run.child = subprocess.Popen(command, cwd=run.folder, env=env, stdout=subprocess.DEVNULL, stderr=errors)
            code = _watched(run, run.child, chance, kill_every)
        said = (run.folder / "stderr.txt").read_text()
        run.starts[code] += 1
        if "Traceback" in said:
            run.wrong.append(f"a traceback: {said[-2000:]}")
        if code == 0 or RESUMABLE.get(code, "nothing that it says") not in said:
            break
    run.seconds = time.monotonic() - began
    if code != 0:
        run.wrong.append(f"ended with exit code {code}: {said[-600:].strip()}")


def _watched(run: Run, child: subprocess.Popen[bytes], chance: random.Random, kill_every: float) -> int:
    """The exit code of the process, which is sent signals in between where `kill_every` (seconds on average) is not 0."""
    before = run.requests
    while True:
        wait = chance.expovariate(1 / kill_every) if kill_every else 5.0
        try:
            return child.wait(wait)
        except subprocess.TimeoutExpired:
            if time.monotonic() - run.moved > PATIENCE:
                run.wrong.append(f"no new step for {PATIENCE:.0f} s after step {run.samples[-1].step if run.samples else 0}")
                child.kill()
                child.wait()
                return 1
            # Mostly once it has begun to work: starting takes long where a machine is busy.
            if kill_every and (run.requests > before or chance.random() < 0.2):
                child.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))


def check(run: Run, worker: Worker) -> None:
    """Everything that must hold once a plan is finished."""
    wrong = run.wrong
    wrong += worker.wrong
    try:
        found = list(records(run.log))
    except Exception as error:
        wrong.append(f"the log: {error}")
        return
    run.facts.update(f"compaction {r.event.trigger}" for r in found if isinstance(r.event, Compacted))
    run.facts.update(f"call {r.event.status}" for r in found if isinstance(r.event, CallEnded))
    last = {r.event.step: r.event for r in found if isinstance(r.event, StepChanged)}
    for job in run.work:
        step = last.get(job.id)
        if step is None or step.status != job.status:
            wrong.append(f"step {job.id} is {step and step.status} ({step and step.note}), {job.status} was expected")
        elif job.value is not None and (step.output or {}).get("value") != job.value:
            wrong.append(f"step {job.id} left {step.output}, {job.value} was expected")
    wrong += _effects(run, found)
    wrong += _left_over(run)


def words(path: Path) -> Counter[str]:
    return Counter(path.read_text().split() if path.exists() else ())


def _effects(run: Run, found: list[Record]) -> Iterator[str]:
    """Each call that ended well took effect once, none twice, and none that was never started."""
    happened, ran = words(run.folder / "effects.log"), words(run.folder / "ran.log")
    commands: dict[str, str] = {}
    started = {r.event.call_id for r in found if isinstance(r.event, CallStarted)}
    ended = {r.event.call_id: r.event.status for r in found if isinstance(r.event, CallEnded)}
    for record in found:
        for call in record.event.message.tool_calls if isinstance(record.event, Said) else ():
            if "effects.log" in call.arguments:
                commands[call.id] = json.loads(call.arguments)["command"].split()[1]
    yield from (f"effect {name} happened {n} times" for name, n in happened.items() if n > 1)
    yield from (f"effect {name} was never asked for" for name in happened.keys() - set(commands.values()))
    for call_id, nonce in commands.items():
        if ended.get(call_id) == "ok" and nonce not in happened:
            yield f"call {call_id} ended well without its effect {nonce}"
        if call_id not in started and nonce in happened:
            yield f"call {call_id} took effect without an intent on record"
    for job in run.work:
        times = ran[job.id]
        if "run" in job.spec and job.value and not (times == 1 or (times > 1 and run.starts.total() > 1)):
            yield f"the command of step {job.id} ran {times} times"


def _left_over(run: Run) -> Iterator[str]:
    for path in (run.folder / "tmp").rglob("*"):
        yield f"left over: {path}"
    for path in run.folder.rglob("*"):
        if (path.name.startswith(".") and path.suffix in (".part", ".tmp", ".new")) or path.name.endswith("-new"):
            yield f"left over: {path}"
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(proc / "cwd").startswith(str(run.folder)):
                yield f"left over: process {proc.name} {(proc / 'cmdline').read_bytes()!r}"
        except OSError:
            continue


def tenths(run: Run, steps: int) -> list[tuple[float, ...]]:
    """For each tenth: CPU and wall milliseconds a step, peak MB, most descriptors, threads and children. Only what one process did counts."""
    rows = []
    for n in range(10):
        part = [s for s in run.samples if steps * n <= s.step * 10 < steps * (n + 1)]
        pairs = [(a, b) for a, b in zip(part, part[1:], strict=False) if a.pid == b.pid]
        done = sum(b.step - a.step for a, b in pairs)
        if done:
            cpu, wall = (sum(getattr(b, k) - getattr(a, k) for a, b in pairs) for k in ("cpu", "wall"))
            most = [max(getattr(s, k) for s in part) for k in ("rss", "fds", "threads", "children")]
            rows.append((cpu / done, wall * 1000 / done, *most))
    return rows


def grown(rows: list[tuple[float, ...]]) -> Iterator[str]:
    """What is not flat, from the second tenth on: the first one fills caches."""
    if len(rows) < 10:
        return
    early, late = rows[1:4], rows[-3:]
    cpu, _, rss, fds, threads, _ = zip(
        *(map(statistics.median, zip(*part, strict=True)) for part in (early, late)), strict=True
    )
    if cpu[1] > cpu[0] * GROWTH:
        yield f"a step's CPU grew from {cpu[0]:.0f} to {cpu[1]:.0f} ms"
    if rss[1] > rss[0] + GROWTH_MB:
        yield f"memory grew from {rss[0]:.0f} to {rss[1]:.0f} MB"
    if fds[1] > fds[0] + 2 or threads[1] > threads[0] + 2:
        yield f"descriptors {fds[0]:.0f} -> {fds[1]:.0f}, threads {threads[0]:.0f} -> {threads[1]:.0f}"


def told(counts: Counter[Any]) -> str:
    return ", ".join(f"{kind}: {n}" for kind, n in sorted(counts.items()))


def report(run: Run, steps: int, kill_every: float) -> None:
    rows = tenths(run, steps)
    if not kill_every and steps >= 500:  # a process that starts anew has nothing that could grow, and few steps say nothing
        run.wrong += grown(rows)
    size = run.log.stat().st_size / 1e6
    print(f"\n{run.name}: {steps} steps, {run.context}, {run.requests} requests, {run.seconds:.0f} s, log {size:.1f} MB")
    print(f"  exit codes: {told(run.starts)}; {told(run.facts)}")
    names = ("CPU ms/step", "wall ms/step", "RSS MB", "descriptors", "threads", "children")
    for name, column in zip(names, zip(*rows, strict=True), strict=False):
        print(f"  {name:<13}" + "".join(f"{value:8.0f}" for value in column))
    print("  wrong: " + ("nothing" if not run.wrong else "".join(f"\n    {w}" for w in run.wrong[:20])), flush=True)


def soak(number: int, args: argparse.Namespace, folder: Path, faults: Faults) -> Run:
    seed = args.seed * 1000 + number
    work = jobs(seed, args.steps)
    run = prepare(folder, work, f"soak-{number}", args.context or CONTEXTS[number % len(CONTEXTS)])
    worker = Worker({job.id: job for job in work})

    def script(body: dict[str, Any]) -> Answer:
        server.requests.clear()  # it keeps all of them, and this is a long run
        run.saw(worker.step_of(body))
        return faults.around(body, worker.answer(body))

    kill_every = args.kill_every if number % 2 else 0
    with LoopbackServer(script) as server:
        drive(run, server.url, random.Random(seed), kill_every)
    check(run, worker)
    report(run, args.steps, kill_every)
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="no new plan is begun after this time")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--fault-rate", type=float, default=0.05)
    parser.add_argument("--kill-every", type=float, default=20, help="seconds between signals, on average")
    parser.add_argument("--context", help="one strategy for all plans")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began, runs = time.monotonic(), list[Run]()
    faults = Faults(args.fault_rate, random.Random(args.seed))
    base = Path(tempfile.mkdtemp(prefix="soak-"))
    while not runs or time.monotonic() - began < args.minutes * 60:
        run = soak(len(runs), args, base / str(len(runs)), faults)
        runs.append(run)
        print(f"{time.strftime('%H:%M:%S')} {run.name}: {len(run.wrong)} wrong", file=sys.stderr, flush=True)
        if not run.wrong:
            shutil.rmtree(run.folder)
    bad = [run.name for run in runs if run.wrong]
    requests, exits = sum(run.requests for run in runs), sum((run.starts for run in runs), Counter[int]())
    print(
        f"\n{len(runs)} plans, {len(runs) * args.steps} steps, {requests} requests, {(time.monotonic() - began) / 60:.0f} minutes"
    )
    print(f"exit codes: {told(exits)}; {told(sum((run.facts for run in runs), Counter[str]()))}")
    print(f"{faults.counts.total()} faults: {told(faults.counts)}")
    print(f"wrong: {', '.join(bad)}, kept in {base}" if bad else "nothing wrong")
    if not bad:
        shutil.rmtree(base)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
