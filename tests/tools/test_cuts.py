"""A long line is cut where it is shown: no secret that stands across the cut leaves a part of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planrun.masking.masker import Masker
from planrun.tools.base import ToolContext
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
