"""Masking: every spelling of a value, the formats of tokens, and nothing else."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import subprocess
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planrun.core.messages import compact_json
from planrun.masking import formats
from planrun.masking.masker import NOTHING, Masker
from planrun.masking.records import masked
from planrun.tools.capture import Stream

ODD = "p@ss w'o\"r$d/é\\x"
MASK = Masker({"ODD": ODD, "A": "abcdef123", "B": "123xyz789", "PRE": "abcdef", "WORD": "password"})
RUN = "aB3dE6gH9"


@pytest.mark.parametrize(
    "text",
    [
        ODD, json.dumps(ODD), json.dumps(json.dumps(ODD)), json.dumps(ODD, ensure_ascii=False), urllib.parse.quote(ODD),
        urllib.parse.quote_plus(ODD), urllib.parse.quote(ODD, safe="").lower(), base64.b64encode(ODD.encode()).decode(),
        base64.b64encode(b"user:" + ODD.encode()).decode(), shlex.quote(ODD), repr(ODD), html.escape(ODD), ODD.encode().hex(),
    ],
)  # fmt: skip
def test_every_spelling_is_masked(text: str) -> None:
    safe = MASK(f"<{text}>")
    assert "[secret ODD]" in safe and len(safe) < 14 + len("[secret ODD]")
    assert MASK(safe) == safe


@pytest.mark.parametrize(
    "before",
    [
        "", "=", "\n", "\\n", "\\\\t", "\\x3d", "\\u003d", "%3D", "%3D%22", "-", "--", "x-", "a.b-", "中", RUN * 3 + "-",
        "\x1b[0m", "\x1b[m", "\x1b[01;31m\x1b[K", "\x1b[38;5;208m", "\\u001b[32m",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("token", "name"),
    [
        ("ghp_" + RUN * 4, "github-token"),
        ("SG." + (RUN * 3)[:22] + "." + (RUN * 5)[:43], "sendgrid-key"),
        ("hvs." + RUN * 3, "vault-token"),
        ("815623599:AA" + (RUN * 4)[:33], "telegram-token"),
        ("AKIA" + "Q7W2" * 4, "aws-access-key-id"),
        ("sk-proj-" + RUN * 3, "openai-key"),
    ],
)
def test_a_token_may_begin_behind_an_escape_or_a_dash(before: str, token: str, name: str) -> None:
    assert MASK(f"{before}{token}") == f"{before}[secret {name}]"
    assert formats.possible(f"{before}{token}")


def test_what_a_shell_makes_of_a_value_is_masked() -> None:
    said = subprocess.run(["bash", "-xc", 'printf %q "$1" >&2', "x", ODD], capture_output=True, text=True, check=True).stderr
    assert MASK(said).count("[secret ODD]") == 2


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("abcdef123xyz789", "[secret A]"),
        ("abcdef", "[secret PRE]"),
        ("[secret A] abcdef123", "[secret A] [secret A]"),
        ("", ""),
    ],
)
def test_overlaps_leave_nothing(text: str, safe: str) -> None:
    assert MASK(text) == safe


def test_short_and_empty_values_are_named_not_masked() -> None:
    mask = Masker({"PIN": "1234", "EMPTY": "", "LONG": "abcdefgh"})
    assert mask.short == ("PIN",)
    assert mask("1234 abcdefgh") == "1234 [secret LONG]"


def test_the_lines_of_a_key_are_masked_each() -> None:
    lines = [f"{RUN}{n}{RUN}" for n in range(3)]
    mask = Masker({"KEY": "\n".join(["-----BEGIN THING-----", *lines])})
    assert mask(f"x {lines[1]}\n-----BEGIN THING-----") == "x [secret KEY]\n-----BEGIN THING-----"


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (f"ghp_{RUN * 4}", "github-token"), (f"sk-proj-{RUN * 3}", "openai-key"), (f"sk-ant-api03-{RUN * 3}", "anthropic-key"),
        ("AKIAIOSFODNN7EXAMPLE", "aws-access-key-id"), (f"AIza{RUN * 3}abcdefgh", "google-key"), (f"npm_{RUN * 4}", "npm-token"),
        ("xoxb-123456789012-123456789012-" + RUN, "slack-token"), (f"sk_live_{RUN * 2}", "stripe-key"),
        (f"glpat-{RUN * 2}ab", "gitlab-token"), (f"hf_{RUN * 4}", "huggingface-token"), (f"pypi-AgE{RUN * 8}", "pypi-token"),
        (f"eyJhbGciOiJIUzI1NiJ9.eyJ{RUN}.{RUN * 4}", "jwt"), (f"dckr_pat_{RUN * 3}", "docker-token"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{RUN * 7}\n{RUN}==\n-----END RSA PRIVATE KEY-----", "private-key"),
    ],
)  # fmt: skip
def test_tokens_are_known_by_their_form(token: str, name: str) -> None:
    assert NOTHING(f"it is={token}.") == f"it is=[secret {name}]."
    assert NOTHING(json.dumps({"a": f"\n{token}"})) == json.dumps({"a": f"\n[secret {name}]"})


@pytest.mark.parametrize(
    ("before", "value", "after", "name"),
    [
        ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", "aws-secret-key"),
        ("Authorization: Basic ", "dXNlcjpodW50ZXIy", "\n", "basic-auth"),
        ("Authorization: Bearer ", "abc.DEF123-456789xyz", '"', "bearer-token"),
        ("postgres://user:", "hunter2", "@host/db", "url-password"),
    ],
)
def test_values_are_known_by_their_place(before: str, value: str, after: str, name: str) -> None:
    assert NOTHING(before + value + after) == f"{before}[secret {name}]{after}"


@pytest.mark.parametrize(
    "text",
    [
        "0123456789abcdef0123456789abcdef01234567", "550e8400-e29b-41d4-a716-446655440000", "sk-learn, sk-fading-circle-12 risk-a1",
        "sha512-" + base64.b64encode(bytes(range(64))).decode(), "data:image/png;base64," + base64.b64encode(bytes(range(200))).decode(),
        "ghp_" + "x" * 36, "https://user:password@host https://{user}:{pw}@host http://h:80/a@b", "Basic usage is explained below",
        "Bearer <token>, Bearer authentication", "begins with -----BEGIN PRIVATE KEY----- and ends", "пароль 密码 كلمة السر pypi-simple",
        "a_very_long_identifier_that_goes_on_and_on_task-0123456789012345678901234",
    ],
)  # fmt: skip
def test_nothing_else_is_changed(text: str) -> None:
    assert NOTHING(text) is text


@given(st.text(max_size=60), st.integers(0, 60), st.integers(1, 9))
def test_a_stream_is_masked_wherever_it_is_cut(around: str, at: int, size: int) -> None:
    mask = Masker({"T": "hunter2-hunter2"})
    data = f"{around[:at]}hunter2-hunter2{around[at:]}".encode()
    stream = Stream(20, 20, None, mask)
    for start in range(0, len(data), size):
        stream.feed(data[start : start + size])
    held = stream.close()
    assert b"hunter2" not in held.head.replace(b"[secret T]", b"") and b"hunter2" not in held.tail


def test_what_is_saved_of_a_flood_holds_no_secret(tmp_path: Path) -> None:
    stream = Stream(100, 100, tmp_path / "all", Masker({"T": "hunter2-hunter2"}))
    for _ in range(2000):
        stream.feed(b"z" * 37 + b"hunter2-hun")
        stream.feed(b"ter2-")
        stream.feed(b"hunter2" + b"hunter2-hunter2")
    held = stream.close()
    saved = (tmp_path / "all").read_bytes()
    assert saved.count(b"[secret T]") == 4000
    assert not any(b"hunter2-hun" in part or b"ter2-hunter2" in part for part in (held.head, held.tail, saved))


def test_a_record_is_masked_in_its_texts_not_in_its_form() -> None:
    mask = Masker({"W": "message", "N": "123456"})
    arguments = json.dumps({"a": "x\\message", "n": 123456})
    call = {"id": "message-1", "type": "function", "function": {"name": "Bash", "arguments": arguments}}
    body = {"seq": 123456, "type": "message", "content": "a message", "step": "message", "tool_calls": [call]}
    safe = masked(body, mask)
    assert (safe["seq"], safe["type"], safe["step"], safe["content"]) == (123456, "message", "message", "a [secret W]")
    assert json.loads(safe["tool_calls"][0]["function"]["arguments"]) == {"a": "x\\[secret W]", "n": "[secret N]"}
    assert masked({"type": "note", "text": "plain"}, mask) == {"type": "note", "text": "plain"}


@pytest.mark.parametrize("form", [*formats._TOKENS.values(), *formats._PLACES.values()])
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data(), st.text(max_size=8))
def test_the_cheap_look_misses_no_token(form: str, data: st.DataObject, around: str) -> None:
    text = f"{around} {data.draw(st.from_regex(re.compile(form, re.ASCII), fullmatch=True))} {around}"
    assert NOTHING(text) == text or NOTHING.suspects(compact_json({"a": [{text: 1}]}))


@given(st.lists(st.sampled_from(sorted(MASK.names)) | st.text(max_size=5), max_size=4))
def test_the_cheap_look_misses_no_value(parts: list[str]) -> None:
    body = {
        "type": "message",
        "content": "".join(parts),
        "tool_calls": [{"function": {"arguments": compact_json({"a": parts})}}],
    }
    assert masked(body, MASK) is body or MASK.suspects(compact_json(body))


def test_the_cheap_look_passes_over_ordinary_records() -> None:
    body = {"type": "message", "role": "assistant", "content": "I will look at src/main.py and test it.", "digest": "0a1b" * 8}
    assert not MASK.suspects(compact_json(body))
