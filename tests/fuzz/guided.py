"""Coverage-guided fuzzing of one target by atheris, in a process of its own: it prints what it found and ends."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

import atheris

from tests.fuzz.corpus import WORDS, seeds
from tests.fuzz.laws import Broken, hold

_PATIENCE = 5.0  # how much longer instrumented code may take


class _Finder:
    """Holds the laws and goes on after a fault: each place in the code that fails is told once, with its smallest input."""

    def __init__(self, name: str) -> None:
        with atheris.instrument_imports(include=["planrun"]):
            from tests.fuzz.targets import TARGETS
        self._target = TARGETS[name]
        self._smallest: dict[str, int] = {}

    def __call__(self, data: bytes) -> None:
        try:
            hold(self._target, data, _PATIENCE)
        except Broken as error:
            where = _place(error)
            if len(data) < self._smallest.get(where, sys.maxsize):
                self._smallest[where] = len(data)
                print(f"FAULT {where}: {error}\n  {data!r}", flush=True)


def _place(error: Broken) -> str:
    if error.__cause__ is None:
        return "too much"
    frame = traceback.extract_tb(error.__cause__.__traceback__)[-1]
    return f"{type(error.__cause__).__name__} at {Path(frame.filename).name}:{frame.lineno}"


def run(name: str, seconds: int, corpus: Path | None, options: list[str]) -> None:
    """Fuzz and end the process. `corpus` is a folder that grows from run to run; `options` are libFuzzer's."""
    with tempfile.TemporaryDirectory() as folder:
        begin, words = Path(folder) / "seeds", Path(folder) / "words"
        begin.mkdir()
        for number, seed in enumerate(seeds(name)):
            (begin / str(number)).write_bytes(seed)
        words.write_text("\n".join(f'"{_escaped(word)}"' for word in WORDS[name]), encoding="ascii")
        grown = corpus or Path(folder) / "grown"
        grown.mkdir(parents=True, exist_ok=True)
        dictionary = [f"-dict={words}"] if WORDS[name] else []
        own = [*dictionary, f"-max_total_time={seconds}", "-max_len=20000", "-timeout=60", "-rss_limit_mb=0"]
        atheris.Setup([name, *own, *options, str(grown), str(begin)], _Finder(name))
        atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())
