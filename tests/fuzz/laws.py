"""What holds for every target and every input: it returns, or raises nothing; in a second; in 200 MB."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

Target = Callable[[bytes], None]
SECONDS = 1.0  # of processor time
MEGABYTES = 200.0
_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes


class Broken(AssertionError):
    """A law does not hold; the cause is what the target raised, if anything."""


def hold(target: Target, data: bytes, patience: float = 1.0) -> None:
    """Call a target. Raises Broken; `patience` stretches the time, for code that is instrumented."""
    before, started = _peak(), time.thread_time()
    try:
        target(data)
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {str(error)[:300]}") from error
    if (took := time.thread_time() - started) > SECONDS * patience:
        raise Broken(f"it took {took:.1f} s")
    if (grown := _peak() - before) > MEGABYTES:
        raise Broken(f"it took {grown:.0f} MB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6
