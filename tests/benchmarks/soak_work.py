"""The soak's work: plans whose every output can be foretold, and a model that does them from what a request holds alone.

Each value is a hash of the step's name and of a value that came before it, so one that is lost or altered shows in all later ones.
The model knows how far it is from the ids of its own calls (`STEP-OP-NONCE`); it never repeats a nonce."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from planrun.testing.server import Answer, calls, done, text

CONTEXTS = ("compact", "compact", "clear", "summary", "keep")
FILES = 40  # files to read, of 1 to 8 kB
_TASK = re.compile(r"TASK (s\d+) prev=([0-9a-f]*)\.")
_ID = re.compile(r"(s\d+)-(\d+)-(\d+)")
_NOT_RUN = ("Not run", "there is no tool", "The run was interrupted")


@dataclass(frozen=True, slots=True)
class Op:
    """One turn: its calls (`NONCE` in the arguments stands for a fresh number), and what each result must hold."""

    calls: tuple[tuple[str, dict[str, Any], str], ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A step: what stands in the plan, the turns it takes, and the value it must leave (None: it is skipped or fails)."""

    id: str
    spec: dict[str, Any]
    value: str | None
    status: str = "done"
    ops: tuple[Op, ...] = ()
    fails_first: bool = False


def hashed(step: str, before: str) -> str:
    return sha256(f"{step}:{before}".encode()).hexdigest()[:12]


def data_file(number: int) -> str:
    words = random.Random(number).choices("file src main def return import error value".split(), k=200 + number * 997 % 1300)
    return f"mark-{number:03}\n" + "\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12)) + "\n"


def jobs(seed: int, steps: int) -> list[Job]:
    chance = random.Random(seed)
    made: list[Job] = []
    for number in range(steps):
        known = [j for j in made if j.value is not None]
        before = chance.choice(known[-30:]) if known and chance.random() < 0.2 else known[-1] if known else None
        made.append(_job(chance, f"s{number}", before))
    return made


def plan(work: list[Job], name: str, context: str) -> str:
    last = next(j for j in reversed(work) if j.value is not None)
    whole = {
        "version": 1,
        "name": name,
        "goal": "Do every step.",
        "context": context,
        "window": 16000,
        "steps": [{"id": j.id, **j.spec} for j in work],
        "output": {"value": f"${{{{ steps.{last.id}.output.value }}}}"},
    }
    return json.dumps(whole, indent=1)


def _job(chance: random.Random, name: str, before: Job | None) -> Job:
    given = f"${{{{ steps.{before.id}.output.value }}}}" if before else ""
    value = hashed(name, (before.value or "") if before else "")
    spec: dict[str, Any] = {
        "prompt": f"TASK {name} prev={given}.",
        "output": {"value": {"type": "string", "pattern": "^[0-9a-f]{12}$"}},
    }
    if chance.random() < 0.03:
        spec["context"] = "clear"
    ops = tuple(_op(chance, name, k) for k in range(chance.randint(0, 4)))
    kind = chance.choices(("chat", "heavy", "run", "verify", "retry", "skip", "fail"), (45, 6, 25, 10, 5, 5, 4))[0]
    if kind == "run":
        how = f"printf '%s:%s' {name} {given} | sha256sum | cut -c1-12"
        if chance.random() < 0.5:
            how = f'echo "value=$({how})" >> "$PLANRUN_OUTPUT"; seq 1 {chance.choice((5, 500, 20000))}'
        run = f"echo {name} >> ran.log; {how}"
        return Job(name, {"run": run, "output": {"value": "string"}, "retry": {"attempts": 2}}, value)
    if kind == "heavy":
        ops = tuple(_read(chance, 3) for _ in range(chance.randint(5, 9)))
    if kind == "verify":
        fix = Op((("Bash", {"command": f"echo yes > w/{name}.ok # NONCE"}, "(no output)"),))
        return Job(name, {**spec, "verify": f"grep -q yes w/{name}.ok || (seq 1 300; false)", "fix": 2}, value, ops=(*ops, fix))
    if kind == "retry":
        return Job(name, {**spec, "retry": {"attempts": 3}}, value, ops=ops, fails_first=True)
    if kind == "skip" and before:
        return Job(name, {**spec, "if": f"steps.{before.id}.output.value == 'never'"}, None, "skipped")
    if kind == "fail":
        return Job(name, {"run": "seq 1 50; exit 7", "on_failure": "continue"}, None, "failed")
    return Job(name, spec, value, ops=ops)


def _read(chance: random.Random, most: int) -> Op:
    numbers = chance.sample(range(FILES), chance.randint(1, most))
    return Op(tuple(("Read", {"file_path": f"data/{n}.txt"}, f"mark-{n:03}") for n in numbers))


def _op(chance: random.Random, name: str, k: int) -> Op:
    number = chance.randrange(FILES)
    path = f"w/{name}-{k}.txt"
    bash: Callable[[str, str], tuple[str, dict[str, Any], str]] = lambda command, result: ("Bash", {"command": command}, result)  # noqa: E731
    effect = bash("echo NONCE >> effects.log; echo ok-NONCE", "ok-NONCE")
    table: list[tuple[int, Callable[[], Op]]] = [
        (30, lambda: Op((effect,))),
        (5, lambda: Op((effect, effect))),
        (15, lambda: Op((("Write", {"file_path": path, "content": f"one {name}\n" + "x" * chance.randrange(6000)}, path),))),
        (
            10,
            lambda: Op(
                (
                    bash(f"mkdir -p w; echo one {name} > {path}", ""),
                    ("Edit", {"file_path": path, "old_string": "one", "new_string": "two"}, path),
                )
            ),
        ),
        (20, lambda: _read(chance, 3)),
        (
            8,
            lambda: Op(
                (("Grep", {"pattern": f"mark-{number:03}", "path": "data"}, f"{number}.txt"), ("Ls", {"path": "data"}, "1.txt"))
            ),
        ),
        (5, lambda: Op((bash("seq 1 30000 # NONCE", "left out here"),))),
        (4, lambda: Op((bash("echo out; echo err >&2; exit 3 # NONCE", "[exit code 3]"),))),
        (2, lambda: Op((("Bash", {"command": "sleep 9 & sleep 8 # NONCE", "timeout": 0.2}, "[timed out"),))),
        (3, lambda: Op((("SearchHistory", {"pattern": f"mark-{number:03}"}, ""),))),
    ]
    return chance.choices([make for _, make in table], [weight for weight, _ in table])[0]()


@dataclass
class Worker:
    """The model: `answer` gives the next turn for a request. `wrong` collects tool results that are not as foretold."""

    work: dict[str, Job]
    wrong: list[str] = field(default_factory=list)
    _nonces: Any = field(default_factory=lambda: itertools.count(1))

    def step_of(self, body: dict[str, Any]) -> str | None:
        """The step that a request works on; None for a summary."""
        found = self._task(body["messages"]) if body.get("tools") else None
        return found[1] if found else None

    def answer(self, body: dict[str, Any]) -> Answer:
        messages = body["messages"]
        found = self._task(messages) if body.get("tools") else None
        if found is None:
            cited = re.search(r"^\[(\d+)\]", messages[-1]["content"], re.MULTILINE)
            return text(f"Facts: work went on [{cited[1] if cited else 0}]\nDone: steps\nFiles: none\nOpen: none")
        at, name, before = found
        job = self.work[name]
        if job.fails_first and "The last attempt at this step failed" not in messages[at]["content"]:
            failed = (
                "UpdatePlanStep",
                {"status": "failed", "note": "the first attempt fails"},
                f"{name}-failed-{next(self._nonces)}",
            )
            return calls([failed])
        number = self._reached(name, job, messages[at + 1 :])
        if number < len(job.ops) and not (number == len(job.ops) - 1 and "verify" in job.spec and not _checked(messages[at:])):
            return self._turn(name, number, [(tool, arguments) for tool, arguments, _ in job.ops[number].calls])
        return done({"value": hashed(name, before)}, id=f"{name}-done-{next(self._nonces)}")

    def _turn(self, name: str, number: int, wanted: list[tuple[str, dict[str, Any]]]) -> Answer:
        made = []
        for tool, arguments in wanted:
            nonce = next(self._nonces)
            made.append((tool, json.loads(json.dumps(arguments).replace("NONCE", f"n{nonce}")), f"{name}-{number}-{nonce}"))
        return calls(made, f"Turn {number} of {name}.")

    def _task(self, messages: list[dict[str, Any]]) -> tuple[int, str, str] | None:
        for at in range(len(messages) - 1, 0, -1):
            if messages[at]["role"] == "user" and (found := _TASK.search(messages[at]["content"])):
                return at, found[1], found[2]
        return None

    def _reached(self, name: str, job: Job, since: list[dict[str, Any]]) -> int:
        """The next turn: the one after the last whose calls all ran, by the ids and the results that are still there."""
        reached = 0
        results = {m["tool_call_id"]: m["content"] for m in since if m["role"] == "tool"}
        for message in since:
            ids = [c["id"] for c in message.get("tool_calls") or ()]
            numbers = {int(f[2]) for i in ids if (f := _ID.fullmatch(i)) and f[1] == name}
            if not numbers or any(results.get(i, "").startswith(_NOT_RUN) or "was not run:" in results.get(i, "") for i in ids):
                continue
            number = min(max(numbers), len(job.ops) - 1)
            reached = max(reached, number + 1)
            if message is not since[-1 - len(ids)]:
                continue
            for call, (tool, _, expected) in zip(message["tool_calls"], job.ops[number].calls if job.ops else (), strict=False):
                got = results.get(call["id"], "")
                wanted = expected.replace("NONCE", "n" + call["id"].rpartition("-")[2])
                if call["function"]["name"] == tool and wanted not in got and "elided" not in got and "left out" not in got:
                    self.wrong.append(f"{call['id']}: {tool} gave {got[:200]!r}, {wanted!r} was expected")
        return reached


def _checked(messages: list[dict[str, Any]]) -> bool:
    """Whether the claim was made once already and its check failed."""
    return any(m["role"] == "tool" and m["content"].startswith("Not done") for m in messages)
