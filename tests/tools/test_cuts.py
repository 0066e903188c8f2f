"""No part of a secret is left where a line is cut to be shown, or where what a terminal does not show stands inside of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planrun.masking.masker import Masker
from planrun.tools.base import ToolContext
from planrun.tools.capture import Stream
from planrun.tools.files import READ
from planrun.tools.find import GREP

VALUE = "Zq8kd93jfK2lmnopQrstuv0123456789abcdefXYZ"
TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
PIECES = {text[at : at + 6] for text in (VALUE, TOKEN[4:]) for at in range(len(text) - 5)}


def masked(ctx: ToolContext) -> ToolContext:
    return replace(ctx, mask=Masker({"TOK": VALUE}))


def line(length: int, at: int, secret: str) -> str:
    """A line of so many characters with the secret at `at`."""
    return ("x " * length)[: at - 1] + " " + secret + (" y" * length)[: length - at - len(secret)]


def leaked(text: str) -> set[str]:
    return {piece for piece in PIECES if piece in text}


@pytest.mark.parametrize("secret", [VALUE, TOKEN])
def test_read(ctx: ToolContext, secret: str) -> None:
    length, half = 30_000, 10_000 // 2 - 80
    edges = [*range(half - len(secret) - 1, half + 2), *range(length - half - len(secret) - 1, length - half + 2)]
    for at in edges:
        (ctx.workspace / "f").write_text(line(length, at, secret) + "\n")
        said = READ.run(READ.arguments(file_path="f"), masked(ctx)).text
        assert "left out" in said and leaked(said) == set(), at


@pytest.mark.parametrize("secret", [VALUE, TOKEN])
@pytest.mark.parametrize("before", [True, False])
def test_grep(ctx: ToolContext, secret: str, before: bool) -> None:
    """Over all places about an edge of what is shown."""
    lines = []
    for away in range(40, 240):
        far, near = "z " * 400, "z " * (away // 2) + " " * (away % 2)
        lines.append(f"{far}{secret} {near}HIT {far}" if before else f"{far}HIT {near}{secret} {far}")
    (ctx.workspace / "f").write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    (ctx.workspace / "g").write_text("\n".join(lines[len(lines) // 2 :]) + "\n")
    for name in "fg":
        said = GREP.run(GREP.arguments(pattern="HIT", path=name), masked(ctx)).text
        assert said.count("HIT") == len(lines) // 2
        assert leaked(said) == set()
        assert "[secret " in said or name == "g"


@pytest.mark.parametrize("secret", [VALUE, TOKEN])
def test_grep_where_a_line_is_no_longer_searched(ctx: ToolContext, secret: str) -> None:
    lines = [line(20_000, at, secret) for at in range(10_000 - len(secret), 10_002)]
    lines = [text[:9_900] + "HIT" + text[9_903:] for text in lines]
    (ctx.workspace / "f").write_text("\n".join(lines) + "\n")
    said = GREP.run(GREP.arguments(pattern="HIT"), masked(ctx)).text
    assert said.count("HIT") == len(lines) == said.count("[secret ")
    assert leaked(said) == set()


PARTED = ["\x1b[0m", "\x1b[01;31m\x1b[K", "\x1b]0;title\x07", "\x9b1m", "\0", "\r", "x\b"[1:]]


@pytest.mark.parametrize("secret", [VALUE, TOKEN])
@pytest.mark.parametrize("between", PARTED)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_what_is_saved_of_a_command(tmp_path: Path, secret: str, between: str, size: int) -> None:
    """In a file, whatever pieces it came in, and in memory."""
    mask = Masker({"TOK": VALUE})
    data = f"begin\n{secret[:9]}{between}{secret[9:20]}{between}{secret[20:]}\nend \x1b[1mbold\x1b[0m\n".encode()
    filed, held = Stream(4, 4, tmp_path / "saved", mask), Stream(1 << 20, 0, None, mask)
    for at in range(0, len(data), size):
        filed.feed(data[at : at + size])
        held.feed(data[at : at + size])
    filed.close()
    for text in ((tmp_path / "saved").read_text(), held.close().head.decode()):
        assert "[secret " in text and text.startswith("begin\n")
        assert leaked(text) == set()


def test_without_a_secret_what_is_saved_is_what_came(tmp_path: Path) -> None:
    data = b"\x1b[1mbold\x1b[0m 10%\r20%\r\n\xff\x00 ghp_\x1b[0mshort\n" * 50
    filed = Stream(4, 4, tmp_path / "saved", Masker({"TOK": VALUE}))
    filed.feed(data)
    filed.close()
    assert (tmp_path / "saved").read_bytes() == data
