"""The active context for people and for machines: each message with what it costs, and the proof."""

from __future__ import annotations

from planrun.core.context import Entry
from planrun.core.plan import Json
from planrun.core.seen import Seen
from planrun.views.words import amount, block, one_line, plural


def as_json(seen: Seen) -> dict[str, Json]:
    """`tokens` is the whole request, tools included; `used` is what counts against `budget`: all messages but the system's."""
    room = seen.room
    return {
        "session": seen.state.header.session if seen.state.header else None,
        "step": seen.step.id,
        "turn": seen.sent.turn if seen.sent else None,
        "record": seen.sent.record if seen.sent else None,
        "messages": [e.message.wire() for e in seen.entries],
        "records": [e.seq if e.seq <= seen.logged else None for e in seen.entries],
        "tokens": seen.total,
        "message_tokens": [seen.tokens(e.raw) for e in seen.entries],
        "tools_tokens": seen.tokens(seen.tools_raw),
        "used": room.used,
        "budget": room.budget,
        "window": room.window,
        "window_origin": room.origin,
        "digest": seen.digest,
        "recorded": seen.sent.digest if seen.sent else None,
        "proved": seen.proved,
        "before_it": seen.before_it or None,
    }


def text(seen: Seen) -> str:
    """The messages in full, then what they come to."""
    return "\n\n".join([_head(seen), *(_message(n, e, seen) for n, e in enumerate(seen.entries, 1)), _sums(seen)])


def _head(seen: Seen) -> str:
    session = seen.state.header.session if seen.state.header else "?"
    if seen.sent is not None:
        return f"Session {session}, request {seen.sent.turn} (record {seen.sent.record}), of step {seen.step.id}"
    if seen.before_it:
        return f"Session {session}, the context as it stands: {one_line(seen.before_it, 600)}"
    return f"Session {session}, the next request, of step {seen.step.id}"


def _message(number: int, entry: Entry, seen: Seen) -> str:
    who = f"{entry.message.role} {one_line(entry.name or '', 60)}".strip()
    if entry.note is not None:
        who += f" (in place of records {entry.note.first} to {entry.note.last})"
    place = f", record {entry.seq}" if entry.seq <= seen.logged else ""
    lines = [f"--- {number}. {who}{place}, {plural(seen.tokens(entry.raw), 'token')}"]
    if entry.message.content:
        lines.append(block(entry.message.content))
    lines += [f"-> {one_line(c.name, 60)} {block(c.arguments)}" for c in entry.message.tool_calls]
    return "\n".join(lines)


def _sums(seen: Seen) -> str:
    room, tools = seen.room, seen.tokens(seen.tools_raw)
    share = f" ({room.used / room.budget:.0%})" if room.budget > 0 else ""
    used = f"{amount(room.used)} of a budget of {amount(max(0, room.budget))} tokens are used{share}"
    size = f"{plural(len(seen.entries), 'message')} and the tools ({amount(tools)}): about {amount(seen.total)} tokens"
    return f"{size}\n{used}; the window is {amount(room.window)} by {room.origin}\n{proof(seen)}"


def proof(seen: Seen) -> str:
    """In a line, whether these are the messages that were sent."""
    if seen.sent is None:
        return f"digest {seen.digest}, not sent yet"
    match seen.proved:
        case True:
            return f"digest ok: {seen.digest}"
        case False:
            return f"DIGEST DIFFERS: {seen.sent.digest} was sent, the log gives {seen.digest}"
    return f"tools differ: they have changed since, so that the digest {seen.sent.digest} proves nothing about the messages"
