"""Tool calls as models really write them, made safe to send back: a name and a JSON object, or a fault saying why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from planrun.core.messages import ToolCall, compact_json, well_formed

MAX_CALLS = 128  # what OpenAI takes in one message that is sent back
_PREVIEW = 120
_KEPT = 500

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_KINDS = {list: "an array", str: "a text (encoded twice)", bool: "a boolean", type(None): "null"}


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call as it came: `arguments` is the model's text, or a decoded value where a server sent one, or None."""

    id: str
    name: str
    arguments: object = None


def safe_calls(raw: Iterable[RawCall], cut_off: bool = False) -> tuple[ToolCall, ...]:
    """The calls with safe names and arguments. With `cut_off` the last one gets a fault even if it parses."""
    found = list(raw)
    calls = [_safe(call) for call in found[:MAX_CALLS]]
    if calls and cut_off:
        calls[-1] = _blamed(calls[-1], "cut off by the output limit")
    if len(found) > MAX_CALLS:
        extra = len(found) - MAX_CALLS
        calls[-1] = _blamed(calls[-1], f"at most {MAX_CALLS} calls fit in one message; {extra} more were left out")
    return tuple(calls)


def safe_name(name: str) -> str:
    """`name` in the form that every endpoint takes back: ^[A-Za-z0-9_-]{1,64}$."""
    return _UNSAFE.sub("_", name)[:64] or "unnamed"


def _safe(call: RawCall) -> ToolCall:
    name = safe_name(call.name)
    arguments, fault = safe_arguments(call.arguments)
    if name != call.name:
        fault = f"there is no tool {clipped(call.name)}"
    return ToolCall(well_formed(call.id), name, arguments, fault)


def safe_arguments(raw: object) -> tuple[str, str | None]:
    """The arguments as the JSON text of an object, and the fault where the model's own text was not one. The model's
    spelling is kept where it can be; nothing is repaired, since a guess would run. Absent arguments are `{}`."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return "{}", None
    text = raw if isinstance(raw, str) else compact_json(raw)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        return _invalid(text, "the arguments are nested too deeply")
    except json.JSONDecodeError as error:
        return _invalid(text, f"the arguments are not valid JSON: {error.msg} at character {error.pos}")
    except ValueError as error:
        return _invalid(text, f"the arguments are not valid JSON: {error}")
    if not isinstance(value, dict):
        return _invalid(text, f"the arguments must be a JSON object, not {_KINDS.get(type(value), 'a number')}")
    return (text if _encodes(text, value) else well_formed(compact_json(value))), None


def clipped(text: str) -> str:
    """`text` as a Python literal of bounded length, for error messages."""
    return repr(well_formed(text if len(text) <= _PREVIEW else text[:_PREVIEW] + "…"))


def _invalid(text: str, why: str) -> tuple[str, str]:
    kept = text if len(text) <= _KEPT else text[:_KEPT] + "…"
    return compact_json({"invalid": well_formed(kept)}), f"{why}: {clipped(text)}"


def _encodes(text: str, value: object) -> bool:
    """Whether the text and what it decodes to can be written as UTF-8: an escape such as \\ud83d is half of one."""
    try:
        text.encode()
        if "\\u" in text:
            compact_json(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _blamed(call: ToolCall, fault: str) -> ToolCall:
    return replace(call, fault=f"{fault}; {call.fault}" if call.fault else fault)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    seen: dict[str, object] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"the key {clipped(key)} stands twice")
        seen[key] = value
    return seen


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")
