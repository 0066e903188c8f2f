"""Text for the model, the log and the terminal: well-formed, without control sequences, bounded.

Sources: ECMA-48 (control functions), ctlseqs of xterm (how sequences begin and end).
"""

from __future__ import annotations

import re

from planrun.core.messages import well_formed

# Bytes 80-9F that belong to no UTF-8 character are C1 controls of an 8-bit terminal. Only a control string that is
# closed on its own line counts as one: in a legacy code page the same bytes are letters, and text must not be lost for
# them.
_RAW_C1 = re.compile(
    rb"([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{1,2}|[\xf0-\xf4][\x80-\xbf]{1,3})"
    rb"|\x9b[0-?]*+[ -/]*+[@-~]?"
    rb"|[\x90\x98\x9d-\x9f][^\x07\x1b\x80-\x9f\n\r]*+(?:\x07|\x1b\\|\x9c)"
)
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]?"  # CSI, whole or cut off
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x80-\x9f\n\r]*+(?:\x07|\x1b\\\\|\x9c)?"  # OSC: at most the rest of its line
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])"  # DCS, SOS, PM, APC: to the terminator, without one to the end of the line
    "(?:[^\x1b\x80-\x9f]*+(?:\x1b\\\\|\x9c)|[^\x1b\x80-\x9f\n\r]*+)"
    "|\x1b[ -/]*+[0-~]?"  # every other escape, and the lone ESC
)
_SILENT = re.compile("[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_LEFT_OVER = re.compile("[\x07\x80-\x9f]")
_MOVES = re.compile("[\b\r]")
_SNAP = 200


def clean(raw: bytes | str) -> str:
    """`raw` as a terminal would show it at the end: no control character but newline and tab, no escape sequence, each
    line in its last state (carriage returns, backspaces). Invalid UTF-8 and lone surrogates are U+FFFD. Linear in the
    length; twice is once."""
    text = _without_sequences(_decode(raw) if isinstance(raw, bytes) else raw)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    if "\b" in text:
        text = "\n".join(_backspaced(line) if "\b" in line else line for line in text.split("\n"))
    return text


def strip_controls(text: str) -> str:
    """`text` well-formed and without escape sequences and control characters, except `\\n` and `\\t`; nothing is moved."""
    return _MOVES.sub("", _without_sequences(text))


def clip(text: str, limit: int, where: str) -> str:
    """`text`, or its head and tail around a line that tells how much was left out and `where` the whole is; at most
    `limit` characters."""
    return text if len(text) <= limit else abridge(text, text, len(text), limit, where)


def abridge(head: str, tail: str, total: int, limit: int, where: str, unit: str = "characters") -> str:
    """The start of `head` and the end of `tail`, parts of one text of `total` units, as `clip` joins them."""
    room = limit - len(_note(total, total, unit, where))
    if room < 0:
        return _note(total, total, unit, where).strip()[: max(limit, 0)]
    first, last = head[: room // 2], tail[max(0, len(tail) - (room - room // 2)) :]
    # Whole lines read better; a line longer than the snap is cut inside.
    end = first.rfind("\n", len(first) - _SNAP) if len(first) > _SNAP else -1
    first = first[:end] if end >= 0 else first
    start = last.find("\n", 0, _SNAP) if len(last) > _SNAP else -1
    last = last[start + 1 :] if start >= 0 else last
    return first + _note(total - len(first) - len(last), total, unit, where) + last


def _note(left: int, total: int, unit: str, where: str) -> str:
    return f"\n[... {left:,} of {total:,} {unit} left out here; {where} ...]\n"


def _without_sequences(text: str) -> str:
    return _LEFT_OVER.sub("", _SEQUENCE.sub("", _SILENT.sub("", well_formed(text))))


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _RAW_C1.sub(lambda found: found[1] or b"", raw).decode("utf-8", "replace")


def _backspaced(line: str) -> str:
    """A backspace moves the cursor left; the next character takes the place of the one under it."""
    cells: list[str] = []
    cursor = 0
    for character in line:
        if character == "\b":
            cursor = max(0, cursor - 1)
            continue
        cells[cursor : cursor + 1] = [character]
        cursor += 1
    return "".join(cells)
