"""The archive of a folder of sessions, as somebody in one of them sees it. Every run has one and few use it, so that what it
takes is imported with the first question."""

from __future__ import annotations

from pathlib import Path

from planrun.core.archive import Expanded, Found, Search
from planrun.session.texts import is_name


class History:
    """Searches and gives back the session whose log is `log`, and on request the others of its folder."""

    def __init__(self, folder: Path, log: Path | None) -> None:
        self._folder, self._log = folder, log
        self.session = log.stem if log else ""

    def search(self, asked: Search) -> Found:
        """Raises Unclear."""
        from planrun.session.search import search

        if asked.all_sessions:
            return search(sorted(self._folder.glob("*.jsonl")), asked)
        return search([self._log] if self._log else [], asked)

    def expand(self, ids: str, results: bool = False, tokens: float | None = None, characters: float | None = None) -> Expanded:
        """`ids` as `session.expand` explains them; at most about so many tokens and characters."""
        from planrun.session.expand import Room, expand

        endless = float("inf")
        return expand(ids, self._find, results, Room(tokens or endless, characters or endless))

    def _find(self, session: str) -> Path | None:
        if not session:
            return self._log
        path = self._folder / f"{session}.jsonl"
        return path if is_name(session) and path.is_file() else None
