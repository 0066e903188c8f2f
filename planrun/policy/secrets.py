"""Masking: the values of secrets are replaced wherever text is recorded or shown; nothing else is changed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_SHORTEST = 6  # characters; masking a shorter value would change ordinary text


class Masker:
    """Replaces each value by `[secret NAME]`, in plain text and inside JSON strings alike."""

    def __init__(self, values: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for name, value in values.items():
            if len(value) >= _SHORTEST:
                for spelling in (value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]):
                    names.setdefault(spelling, name)
        self._names = names
        longest_first = sorted(names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if names else None

    def __call__(self, text: str) -> str:
        if self._pattern is None or not any(value in text for value in self._names):
            return text
        return self._pattern.sub(lambda found: f"[secret {self._names[found[0]]}]", text)
