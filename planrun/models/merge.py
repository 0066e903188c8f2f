"""The pieces of a streamed answer put together. Servers cut answers in many ways; all give the same `Pieces`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from planrun.models.calls import RawCall
from planrun.models.faults import AnswerFault, Fault

MAX_TEXT = 8 * 2**20  # characters of text and arguments in one answer


@dataclass(slots=True)
class Call:
    """One call under construction. `whole` is set where a server sent decoded arguments."""

    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list)
    whole: object = None

    def repeats(self, other: Call) -> bool:
        """Some servers send a finished call once more at the end."""
        same = self.id and (self.id, self.name) == (other.id, other.name)
        return bool(same and "".join(self.parts) == "".join(other.parts) and (self.whole or other.complete()))

    def complete(self) -> bool:
        text = "".join(self.parts)
        if not text.rstrip().endswith("}"):
            return False
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True


@dataclass(slots=True)
class Pieces:
    """What an answer has said so far, stream or not."""

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    by_index: dict[int, Call] = field(default_factory=dict)
    finish_reason: str | None = None
    usage: dict[str, object] = field(default_factory=dict)
    model: str | None = None
    filtered: list[str] = field(default_factory=list)
    chosen: bool = False
    size: int = 0

    def raw_calls(self) -> list[RawCall]:
        return [RawCall(c.id, c.name, "".join(c.parts) if c.parts else c.whole) for c in self.calls]

    def add(self, delta: dict[str, object], whole: bool = False) -> None:
        """Take one delta, or (with `whole`) a whole message: reasoning and unknown fields are left out."""
        for piece in _texts(delta.get("content")):
            self.text.append(self._counted(piece))
        if isinstance(refusal := delta.get("refusal"), str):
            self.refusal.append(self._counted(refusal))
        listed = delta.get("tool_calls")
        for item in listed if isinstance(listed, list) else [listed]:
            if item is not None:
                self._add_call(item if isinstance(item, dict) else {}, whole)
        if isinstance(old := delta.get("function_call"), dict):
            self._add_call({"index": 0, "function": old}, whole)

    def _add_call(self, item: dict[str, object], whole: bool) -> None:
        function = next((v for k in ("function", "custom") if isinstance(v := item.get(k), dict)), item)
        name, arguments = function.get("name"), function.get("arguments", function.get("input"))
        call_id = item.get("id")
        piece = Call(
            str(call_id) if isinstance(call_id, str | int) else "",
            name if isinstance(name, str) else "",
            [arguments] if isinstance(arguments, str) and arguments else [],
            None if isinstance(arguments, str) else arguments,
        )
        self._counted("".join(piece.parts))
        if whole:
            self.calls.append(piece)
            return
        index = item.get("index")
        call = self._place(index if isinstance(index, int) else None, piece)
        if piece.repeats(call):
            return
        call.id = call.id or piece.id
        call.name = _joined(call.name, piece.name)
        call.parts += piece.parts
        call.whole = piece.whole if piece.whole is not None else call.whole

    def _place(self, index: int | None, piece: Call) -> Call:
        """The call that `piece` goes on with, or a new one. The index says it; where a server sends none, or 0 for all,
        the id does, then a name that comes again when the arguments before it are complete."""
        known = next((c for c in self.calls if piece.id and c.id == piece.id), None)
        newest = self.calls[-1] if self.calls else None
        at = self.by_index.get(index) if index is not None else known or newest
        if at is None or _starts_anew(at, piece):
            at = Call()
            self.calls.append(at)
            if index is not None:
                self.by_index[index] = at
        return at

    def _counted(self, piece: str) -> str:
        self.size += len(piece)
        if self.size > MAX_TEXT:
            raise AnswerFault(Fault("refused", f"the answer is longer than {MAX_TEXT} characters"))
        return piece


def _starts_anew(call: Call, piece: Call) -> bool:
    if not piece.name:
        return False  # some servers invent a new id for every piece, but only a name makes it another call
    if piece.id and call.id and piece.id != call.id:
        return True
    started = bool("".join(piece.parts).strip()) or piece.whole is not None
    return started and not piece.repeats(call) and (call.whole is not None or call.complete())


def _joined(name: str, piece: str) -> str:
    if not piece or piece == name:
        return name
    return piece if piece.startswith(name) else name + piece


def _texts(content: object) -> list[str]:
    """Text of a content field: a string, or a list of parts of which only those of type text count."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    texts = [p.get("text") for p in parts if isinstance(p, dict) and p.get("type", "text") in ("text", "output_text")]
    return [text for text in texts if isinstance(text, str)]
