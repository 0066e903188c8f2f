"""Masking: secrets are replaced by `[secret NAME]` wherever text is recorded, shown or sent; nothing else is changed."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping

from planrun.core.messages import compact_json
from planrun.core.plan import Json
from planrun.masking import formats
from planrun.masking.formats import Span
from planrun.masking.spellings import SHORTEST, spellings


class Masker:
    """Replaces the values of named secrets, in every form of `spellings`, and the tokens of `formats`. Twice is once.

    `reach` is how many characters a secret may take: with so many around it, a part of a text is masked as the whole is."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.names: dict[str, str] = {}
        for name, value in (values or {}).items():
            for form in spellings(value):
                self.names.setdefault(form, name)
        self.short = tuple(n for n, v in (values or {}).items() if v and len(v.strip("\r\n")) < SHORTEST)
        self.reach = max(formats.REACH, *map(len, self.names), 0)
        self._ours = re.compile(
            rf"\[secret (?:{'|'.join(map(re.escape, (*dict.fromkeys(self.names.values()), *formats.NAMES)))})\]"
        )

        self._escaped = tuple(dict.fromkeys(compact_json(form)[1:-1] for form in self.names))

    def suspects(self, line: str) -> bool:
        """Whether anything may have to be masked in the values of which `line` is the JSON; cheap."""
        return formats.possible(line) or any(form in line for form in self._escaped)

    def __call__(self, text: str) -> str:
        found = self._spans(text)
        return self._replaced(text, found, 0, len(text)) if found else text

    def part(self, text: str, start: int, end: int) -> str:
        """`text[start:end]` masked; a secret that stands across an edge counts as inside."""
        return self._replaced(text, self._spans(text), start, end)

    def begin(self, text: str) -> tuple[str, str]:
        """Of a text that goes on: as much as can be masked now, masked, and the rest as it is."""
        edge = max(0, len(text) - self.reach)
        found = self._spans(text)
        edge = next((start for start, end, _ in found if start < edge < end), edge)
        return self._replaced(text, found, 0, edge), text[edge:]

    def json(self, value: Json) -> Json:
        """A JSON value whose texts, keys and numbers are masked. The same object where there is nothing to mask."""
        match value:
            case str():
                return self(value)
            case dict():
                made: dict[str, Json] = {self(key): self.json(part) for key, part in value.items()}
                return value if made == value else made
            case list():
                masked = [self.json(part) for part in value]
                return value if masked == value else masked
            case int() | float() if not isinstance(value, bool) and self.names:
                text = compact_json(value)
                masked_text = self(text)
                return value if masked_text == text else masked_text
        return value

    def named(self, text: str) -> tuple[str, ...]:
        """The names of the secrets that stand masked in `text`, each once."""
        return tuple(dict.fromkeys(found[0][8:-1] for found in self._ours.finditer(text))) if "[secret " in text else ()

    def _spans(self, text: str) -> list[Span]:
        """The secrets in `text` in order, those that overlap joined; what is masked already is left alone."""
        found = sorted(self._found(text), key=lambda span: (span[0], -span[1]))
        if not found:
            return found
        ours = [place.span() for place in self._ours.finditer(text)] if "[secret " in text else []
        joined: list[Span] = []
        for start, end, name in found:
            if ours and end <= ours[max(0, bisect(ours, (start, len(text))) - 1)][1] and start >= ours[0][0]:
                continue
            if joined and start < joined[-1][1]:
                first, last, known = joined[-1]
                joined[-1] = (first, max(last, end), known)
            else:
                joined.append((start, end, name))
        return joined

    def _found(self, text: str) -> Iterator[Span]:
        for form, name in self.names.items():
            at = text.find(form)
            while at >= 0:
                yield at, at + len(form), name
                at = text.find(form, at + 1)  # it may overlap itself
        yield from formats.spans(text)

    def _replaced(self, text: str, found: list[Span], start: int, end: int) -> str:
        pieces: list[str] = []
        at = start
        for first, last, name in found:
            if last > start and first < end:
                pieces += (text[at : max(at, first)], f"[secret {name}]")
                at = last
        return "".join((*pieces, text[at : max(at, end)]))


NOTHING = Masker()
