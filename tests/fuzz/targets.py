"""The targets: each reads bytes as one kind of input and fails where a promise about that kind is broken.

What a target may raise is caught inside it: any other exception is a fault."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import suppress
from pathlib import Path

from planrun import params, settings_file
from planrun.cli.params import parsed
from planrun.core import expressions, outputs
from planrun.core.archive import Unclear
from planrun.core.fields import schema
from planrun.core.plan import Field, Json, Plan
from planrun.core.units import duration, integer, number
from planrun.endpoint import normalise_base_url
from planrun.errors import ConfigError, PlanInvalid, UsageError
from planrun.models import waits
from planrun.models.calls import RawCall, safe_arguments, safe_calls
from planrun.models.faults import AnswerFault, classify
from planrun.models.wire import read_reply
from planrun.planfile import parse
from planrun.policy.permissions import Allow, Ask, Deny, Permissions, parse_rule
from planrun.session import times
from planrun.tools.registry import builtin_tools, parse_arguments
from tests.fuzz import archive, logs
from tests.fuzz.laws import Target

WHOLE = re.compile(r"the file is empty|larger than|is UTF-32|not UTF-16")  # faults of a file that have no place in it
VALUES: dict[str, Json] = {"p": "it's $HOME\n`x`", "n": 3, "l": ["a", 1], "o": {"k": None}, "b": True, "z": None}
SCOPE = expressions.Scope(VALUES, {"s": dict(VALUES)}, {"E": "e"})


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def one_line(text: str) -> bool:
    """Whether a message is a line that any terminal and any log takes."""
    return bool(text) and not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text)


def plan(data: bytes) -> None:
    """A plan, which its recorded text gives again; or faults that all name their place and take one line each."""
    try:
        loaded = parse(data, "p.yaml", {})
    except PlanInvalid as error:
        assert error.faults
        lines = str(error).split("\n")
        assert len(lines) == len(error.faults), lines
        for fault in error.faults:
            assert (fault.line and fault.column) or WHOLE.match(fault.message), fault
            assert one_line(fault.told("p.yaml")), fault
        return
    again = parse(loaded.text, "p.yaml", loaded.files)
    assert (again.plan, again.digest) == (loaded.plan, loaded.digest)
    assert loaded.text.encode()


def parameters(data: bytes) -> None:
    """A parameters file: names with JSON values, or faults with their places."""
    fields = (Field("a"), Field("n", "integer"), Field("l", "array", items=Field("l", "number")), Field("o", "object"))
    try:
        given = parsed(data, "p.yaml")
        json.dumps(params.typed(Plan("p", "g", (), params=fields), given), allow_nan=False)
    except PlanInvalid as error:
        assert all(f.line or WHOLE.match(f.message) for f in error.faults)
    except UsageError:
        pass


def expression(data: bytes) -> None:
    """A template, a condition or a command: a value, or ExpressionError."""
    text = text_of(data)
    for read in (expressions.evaluate, expressions.test, expressions.for_shell):
        with suppress(expressions.ExpressionError):
            read(text, SCOPE)
    with suppress(expressions.ExpressionError):
        expressions.references(text)
        fault = expressions.shell_fault(text)
        if fault is None and "\0" not in text:
            with suppress(expressions.MissingValue):
                _only_values(text)


def _only_values(text: str) -> None:
    """What holds no fault of the shell's can only fail by what its values are."""
    try:
        command, environ = expressions.for_shell(text, SCOPE)
    except expressions.ExpressionError as error:
        assert "cannot be put into this command safely" not in str(error)
        return
    assert all(name in command for name in environ)


def settings(data: bytes) -> None:
    """Settings, or a ConfigError whose every line names the place."""
    try:
        settings_file.parse(data, "s.json")
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert re.match(r"s\.json:[1-9][0-9]*:[1-9][0-9]*: ", line) or "larger than" in line or "UTF-" in line, line
            assert one_line(line), line


def rules(data: bytes) -> None:
    """A permission rule and, behind a NUL, what it is asked about: a rule or ConfigError, and always a verdict."""
    first, _, subject = text_of(data).partition("\0")
    with suppress(ConfigError):
        parse_rule(first)
        for allowed in (Permissions.parse(allow=[first]), Permissions.parse(deny=[first]), Permissions.parse(ask=[first])):
            allowed.protected()
            for tool in ("Bash", "Write", "Grep", "web__get"):
                assert isinstance(allowed.judge(tool, subject), Allow | Deny | Ask)
    assert isinstance(Permissions().judge("Bash", first), Allow | Deny)
    assert isinstance(Permissions().judge("Write", first, workspace=Path("/nonexistent")), Allow | Deny)


def units(data: bytes) -> None:
    """Numbers, times, moments, addresses: a value, or the one error that names what was expected."""
    text = text_of(data)
    for read in (duration, integer, number):
        with suppress(ValueError):
            assert abs(read(text)) < float("inf")
    for moment in (times.age, times.moment):
        with suppress(Unclear):
            moment(text)
    for asked in (waits.span, waits.text_wait):
        assert (asked(text) or 0) >= 0
    for name in ("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"):
        assert (waits.header_wait({name: text}) or 0) >= 0
        assert (waits.reset_wait({name: text}) or 0) >= 0
    with suppress(ConfigError):
        normalise_base_url(text)


def answer(data: bytes) -> None:
    """An endpoint's answer: a reply that can be sent back, or AnswerFault; the same however the bytes are cut."""
    replies = []
    for chunks in ([data], [data[:7], data[7:20], data[20:]]):
        try:
            reply = read_reply("application/json", chunks)
        except AnswerFault as error:
            replies.append(error.fault)
            assert one_line(error.fault.message), error.fault
        else:
            replies.append(reply)
            if reply.message is not None:
                json.dumps(reply.message.wire(), ensure_ascii=False).encode()
                assert all(isinstance(json.loads(call.arguments), dict) for call in reply.message.tool_calls)
    assert replies[0] == replies[1], replies


def error_body(data: bytes) -> None:
    """An endpoint's error, behind a byte for its status: always a Fault, in one line."""
    status, text = (data[:1] or b"\0")[0], text_of(data[1:])
    with suppress(ValueError, RecursionError):
        fault = classify(200 + 2 * status, json.loads(text), {"Retry-After": text[:40]})
        assert one_line(fault.message)
    fault = classify(200 + 2 * status, text, {})
    assert one_line(fault.message) and len(fault.message) <= 300
    assert fault.wait is None or fault.wait >= 0


def arguments(data: bytes) -> None:
    """A tool call's arguments: values, or a text for the model; what is sent back is the JSON of an object."""
    text = text_of(data)
    for tool in builtin_tools():
        found = parse_arguments(tool, text)
        assert not isinstance(found, str) or found.startswith(f"{tool.name} was not run: ")
    kept, fault = safe_arguments(text)
    assert isinstance(json.loads(kept), dict) and kept.encode()
    assert fault is None or fault.encode()
    (call,) = safe_calls([RawCall(text, text, text)])
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call.name)


def output(data: bytes) -> None:
    """What a command printed, in two halves, and what a model handed in: an output that is JSON, or faults."""
    text = text_of(data)
    fields = (
        Field("a", "string", max_length=9, pattern="^(a+)+$"),
        Field("b", "integer", required=False, source="json", enum=(1, 2)),
        Field("c", "array", items=Field("c", "boolean"), max_items=3, required=False, source="json"),
        Field("d", "object", required=False, source="json"),
    )
    stdout, _, extra = text.partition("\0")
    for chosen in (fields, (Field("a"),), (Field("a", source="stdout"),)):
        _sound(*outputs.from_run(chosen, stdout, extra))
        with suppress(ValueError, RecursionError):
            _sound(*outputs.validate(chosen, json.loads(text)))
    json.dumps(schema(fields))


def _sound(found: dict[str, Json], faults: tuple[str, ...]) -> None:
    if not faults:
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    assert all(fault for fault in faults)


TARGETS: dict[str, Target] = {
    "plan": plan,
    "parameters": parameters,
    "expression": expression,
    "settings": settings,
    "rules": rules,
    "units": units,
    "answer": answer,
    "error_body": error_body,
    "arguments": arguments,
    "output": output,
    "query": archive.query,
    "log": logs.log,
    "records": logs.records,
}
