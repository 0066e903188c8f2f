"""What masking adds to a record: `python tests/benchmarks/masking.py [--rounds N]`.

For records of a run it prints the CPU time of the masking before they are written as a ratio to that of `json.dumps` of the same
record, taken in turns, the best of the rounds. Every line of a log is looked at once; only one that looks as if it might hold a
secret is gone through field by field. Goals: four times as long as `json.dumps` at the most where the text is words or lines of a
log, twenty times whatever it is."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from planrun.core.messages import compact_json
from planrun.masking.masker import Masker
from planrun.masking.records import masked

MB = 1_000_000
VALUES = {"REGISTRY_TOKEN": "tr0ub4dor&3-horse", "DATABASE_URL": "postgres://app:s3cr3tpw@db.internal:5432/app"}
KEY = "ghp_" + "a1B2c3D4e5F6" * 3


def texts() -> Iterator[tuple[str, str]]:
    rng = random.Random(4)
    words = "file src main def return error line test value plan step import class self None".split()
    prose = " ".join(rng.choices(words, k=MB // 5))
    lines = (
        f"2026-11-29T23:{i % 60:02d}:01Z INFO worker[{i}] GET /items/{i * 7919 % 99991} 200 in {i % 900} ms\n"
        for i in range(20_000)
    )
    hashes = "".join(f"{rng.getrandbits(160):040x} {' '.join(rng.choices(words, k=5))}\n" for _ in range(15_000))
    links = "".join(f"Collecting https://pypi.example/simple/{rng.choice(words)}-{i}.whl\n" for i in range(20_000))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    yield "a short result", prose[:350]
    yield "a short result with a link", "See https://example.com/docs/install for more. " + prose[:300]
    yield "a short result with a token", f"GITHUB_TOKEN={KEY} " + prose[:300]
    yield "a short result with a value", f"login with {VALUES['REGISTRY_TOKEN']} " + prose[:300]
    yield "20 kB of words", prose[:20_000]
    yield "1 MB of words", prose[:MB]
    yield "1 MB of log lines", "".join(lines)[:MB]
    yield "1 MB of commit hashes", hashes[:MB]
    yield "1 MB of links", links[:MB]
    yield "1 MB of base64", "".join(rng.choices(letters, k=MB))
    yield "1 MB of identifiers", "_".join(rng.choices(words, k=MB // 5))[:MB]
    yield "1 MB with dashes", "-".join(rng.choices(words, k=MB // 5))[:MB]
    yield "1 MB of words beyond ASCII", prose[: MB // 2].replace("plan", "план")
    yield "1 MB of words, one token", prose[: MB // 2] + f" {KEY} " + prose[: MB // 2]
    yield "1 MB of words, one value", prose[: MB // 2] + VALUES["DATABASE_URL"] + prose[: MB // 2]


def record(text: str) -> dict[str, Any]:
    return {
        "seq": 7,
        "type": "message",
        "role": "tool",
        "content": text,
        "origin": "tool",
        "step": "survey",
        "attempt": 1,
        "tool_call_id": "call_1",
        "name": "Bash",
        "timestamp": 1796027132.123,
    }


def best(ways: tuple[Callable[[], object], ...], rounds: int, times: int) -> list[float]:
    """Seconds of CPU of each way, the best of the rounds, in which they take turns."""
    found = [float("inf")] * len(ways)
    for _ in range(rounds):
        for number, way in enumerate(ways):
            began = time.process_time()
            for _ in range(times):
                way()
            found[number] = min(found[number], (time.process_time() - began) / times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    mask = Masker(VALUES)

    def safe(body: dict[str, Any], line: str) -> dict[str, Any]:
        return masked(body, mask) if mask.suspects(line) else body

    for name, text in texts():
        body = record(text)
        line = compact_json(body)
        plain, looked = best((lambda: compact_json(body), lambda: safe(body, line)), rounds, 1 + 20_000 // len(text))  # noqa: B023
        hidden = sum(compact_json(safe(body, line)).count(f"[secret {n}]") for n in (*VALUES, "github-token"))
        print(f"{name:30} json.dumps {plain * 1e6:9.1f} us   masking {looked / plain:5.2f} x   {hidden} masked")


if __name__ == "__main__":
    main()
