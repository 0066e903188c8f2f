"""The human at the terminal, who answers approvals."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TextIO

from planrun.runner.world import Answered
from planrun.views.screen import Screen
from planrun.views.words import block


class AtTerminal:
    """Asks on stderr, reads stdin; both must be a terminal, and CI unset, or else nobody is there to answer."""

    def __init__(
        self,
        source: TextIO | None,
        stream: TextIO | None,
        environ: Mapping[str, str],
        paused: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._source, self._screen, self._paused = source, Screen(stream), paused
        self._there = source is not None and source.isatty() and self._screen.isatty() and not environ.get("CI")

    def ask(self, question: str) -> Answered | None:
        """The answer; None where nobody can give one. Anything but yes and no is asked again."""
        if not self._there or self._source is None:
            return None
        with self._paused():
            self._screen.write(f"{block(question)}\n")
            while True:
                self._screen.write("Allow it? [y/n] ")
                self._screen.flush()
                said = self._source.readline()
                if not said:
                    self._screen.line("")
                    return None
                match said.strip().lower():
                    case "y" | "yes":
                        return Answered(True, _who())
                    case "n" | "no":
                        return Answered(False, _who())


def _who() -> str:
    try:
        return f"{getpass.getuser()} at the terminal"
    except (OSError, KeyError):
        return "the terminal"
