from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from toolbox import Call, recorded_calls

from planrun.tools.base import ToolContext
from planrun.tools.paging import read_page
from planrun.tools.registry import builtin_tools, parse_arguments


def test_read_whole_and_paged(call: Call, ctx: ToolContext) -> None:
    (ctx.workspace / "f").write_text("".join(f"{i}\n" for i in range(1, 101)))
    assert call("Read", file_path="f").text == "\n".join(map(str, range(1, 101)))
    assert call("Read", file_path="f", offset=3, limit=2).text == "3\n4\n[lines 3-4 of 100; continue with offset=5]"
    assert call("Read", path="f", offset="100").text == "100"
    assert call("Read", file_path="f", offset=101).status == "error"
    assert call("Read", file_path="f", offset=None, limit=None).status == "ok"


def test_pages_cover_the_file(call: Call, ctx: ToolContext) -> None:
    lines = [f"line {i} " + "x" * (i % 50) for i in range(2000)]
    (ctx.workspace / "f").write_text("\n".join(lines))
    seen: list[str] = []
    offset = 1
    while True:
        page = call("Read", limit_to=3000, file_path="f", offset=offset).text.split("\n")
        if not page[-1].startswith("[lines "):
            seen += page
            break
        seen += page[:-1]
        offset = int(page[-1].rpartition("offset=")[2].rstrip("]"))
    assert seen == lines


@pytest.mark.parametrize("text", ["first\n", "one line"])
def test_a_file_larger_than_time_is_read_in_part(ctx: ToolContext, text: str) -> None:
    path = ctx.workspace / "f"
    path.write_text(text * 10_000)
    os.truncate(path, 1 << 40)  # sparse: zeros without end
    started = time.monotonic()
    with path.open(encoding="utf-8", newline=None) as file:
        page = read_page(file, 1, 5, 1000, "f", seconds=1)
    with path.open(encoding="utf-8", newline=None) as file:
        behind = read_page(file, 20_000, 5, 1000, "f", seconds=1)
    assert time.monotonic() - started < 60
    assert (page.first, page.partial, page.lines[0][:5], page.total >= page.last) == (1, True, text[:5], True)
    assert (behind.partial, behind.lines) == (True, [])


def test_long_line_is_cut_with_a_way_to_read_it(call: Call, ctx: ToolContext) -> None:
    (ctx.workspace / "one line").write_text("a" * 3_000_000 + "é" * 2_000_000)
    text = call("Read", file_path="one line").text
    assert text.startswith("aaa")
    assert text.endswith("ééé")
    assert "Bash: sed -n 1p 'one line' | cut -c " in text
    assert len(text) < 11_000
    (ctx.workspace / "three").write_text("short\n" + "b" * 200_000 + "\nlast\n")
    lines = call("Read", file_path="three").text.split("\n")
    assert (lines[0], len(lines), lines[2]) == ("short", 3, "last")


@pytest.mark.parametrize("length", [4999, 5000, 9999, 10_000, 10_001, 65_535, 65_536, 65_537])
def test_lines_around_the_cap(call: Call, ctx: ToolContext, length: int) -> None:
    (ctx.workspace / "f").write_text("x" * length + "\nend\n")
    first, second = call("Read", file_path="f").text.split("\n")
    assert second == "end"
    assert (first == "x" * length) is (length <= 10_000)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb"),
        ("é\n日本".encode("utf-16"), "é\n日本"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "é"),
        (b"caf\xe9\n", "caf\ufffd"),
        (b"a\x1b[31mb\x07\b\n", "ab"),
        (b"", "(empty file)"),
        (b"\n\n", "\n"),
        (b"a\rb", "a\nb"),
    ],
)
def test_read_encodings(call: Call, ctx: ToolContext, raw: bytes, expected: str) -> None:
    (ctx.workspace / "f").write_bytes(raw)
    assert call("Read", file_path="f").text == expected


def test_read_what_is_no_text(call: Call, ctx: ToolContext) -> None:
    (ctx.workspace / "b").write_bytes(b"\0\1\2" * 100)
    os.mkfifo(ctx.workspace / "pipe")
    assert call("Read", file_path="b").text == "b is a binary file of 300 bytes"
    assert "use Ls" in call("Read", file_path=".").text
    assert "not a regular file" in call("Read", file_path="pipe").text
    assert "not a regular file" in _socket(ctx.workspace / "s", lambda: call("Read", file_path="s").text)
    assert call("Read", file_path="no").text == "no does not exist"
    assert call("Read", file_path="x" * 5000).status == "error"


def _socket(path: Path, use: Callable[[], str]) -> str:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))  # the name of a socket is at most about a hundred bytes long
        return use()


def test_write(call: Call, ctx: ToolContext) -> None:
    assert call("Write", file_path="a/b/c.txt", content="é\r\n").text == "Wrote 4 bytes to a/b/c.txt (new)"
    assert (ctx.workspace / "a/b/c.txt").read_bytes() == "é\r\n".encode()
    assert call("Write", path="a/b/c.txt", content="").text == "Wrote 0 bytes to a/b/c.txt (replaced)"
    assert call("Write", file_path="a", content="x").text == "a is a directory, not a file"
    assert call("Write", file_path="a/b/c.txt/d", content="x").status == "error"


def test_recorded_half_a_character(call: Call, ctx: ToolContext) -> None:
    [(name, arguments)] = recorded_calls("UNI-01.response.json")
    tool = next(tool for tool in builtin_tools() if tool.name == name)
    parsed = parse_arguments(tool, arguments)
    assert not isinstance(parsed, str)
    assert tool.run(parsed, ctx).status == "ok"
    assert (ctx.workspace / "o.txt").read_text("utf-8") == "\ufffd!"


@pytest.mark.parametrize("via_link", [False, True])
def test_recorded_writes_stay_inside(ctx: ToolContext, tmp_path: Path, via_link: bool) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (ctx.workspace / "link").symlink_to(outside)
    (ctx.workspace / "dangling").symlink_to(outside / "new.txt")
    (tmp_path / "ws-link").symlink_to(ctx.workspace)
    workspace = (tmp_path / "ws-link").resolve() if via_link else ctx.workspace
    tools = {tool.name: tool for tool in builtin_tools()}
    statuses = []
    for name, arguments in recorded_calls("FS-01b.response.json"):
        parsed = parse_arguments(tools[name], arguments)
        statuses.append(tools[name].run(parsed, ToolContext(workspace, ctx.spill)).status)
    assert statuses == ["error", "error", "error", "error", "ok"]
    assert (ctx.workspace / "ok/new/file.txt").read_text() == "x"
    assert os.listdir(outside) == []
    assert not (tmp_path / "out.txt").exists()
    assert not Path("/tmp/planrun-fs01-abs.txt").exists()


def test_edit_keeps_mark_newlines_mode_and_foreign_bytes(call: Call, ctx: ToolContext) -> None:
    path = ctx.workspace / "f"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo \xe9\nthree\r\n")
    path.chmod(0o755)
    result = call("Edit", file_path="f", old="one\ntwo", new="ONE\nextra\nTWO")
    assert path.read_bytes() == b"\xef\xbb\xbfONE\r\nextra\r\nTWO \xe9\nthree\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert result.text == "Edited f (1 replacement). It now reads there:\nONE\nextra\nTWO \ufffd\nthree"


def test_edit_utf16(call: Call, ctx: ToolContext) -> None:
    path = ctx.workspace / "f"
    path.write_bytes("é\r\n日本\r\n".encode("utf-16"))
    assert call("Edit", file_path="f", old="日本", new="x").status == "ok"
    assert path.read_bytes() == "é\r\nx\r\n".encode("utf-16")
    path.write_bytes(b"\xff\xfea")
    assert call("Edit", file_path="f", old="a", new="x").status == "error"


def test_edit_errors(call: Call, ctx: ToolContext) -> None:
    (ctx.workspace / "f").write_text("a\na\n")
    assert "use Write" in call("Edit", file_path="none", old="a", new="b").text
    assert "2 times (lines 1, 2)" in call("Edit", file_path="f", old="a", new="b").text
    assert "not found" in call("Edit", file_path="f", old="q", new="b").text
    assert (ctx.workspace / "f").read_text() == "a\na\n"
    assert call("Edit", file_path="f", old_string="a", new_string="b", replace_all=True).text.startswith(
        "Edited f (2 replacements)"
    )
    assert call("Edit", file_path=".thclaws/x", old="a", new="b").status == "error"


def test_recorded_edits_in_call_order(ctx: ToolContext) -> None:
    tools = {tool.name: tool for tool in builtin_tools()}
    texts = []
    for name, arguments in recorded_calls("TOOL-01.response.json"):
        parsed = parse_arguments(tools[name], arguments.replace("sleep 1; ", ""))
        texts.append(tools[name].run(parsed, ctx).text)
    assert texts[-1] == "one\n2\n3\n4\n5\n6\n7\n8\nnine"


def test_ls(call: Call, ctx: ToolContext) -> None:
    (ctx.workspace / "b").write_text("abc")
    (ctx.workspace / "a").mkdir()
    (ctx.workspace / "c\x1b[31m").write_text("")
    (ctx.workspace / "d").symlink_to("b")
    assert call("Ls").text == "a/\nb  3 bytes\nc  0 bytes\nd -> b"
    assert call("Ls", path="a").text == "(empty directory)"
    assert call("Ls", path="b").text == "b  3 bytes"
    assert call("Ls", path="..").status == "error"


def test_ten_thousand_files(call: Call, ctx: ToolContext) -> None:
    for i in range(10_000):
        (ctx.workspace / f"{i:05}.txt").touch()
    assert call("Ls").text.endswith("\n00499.txt  0 bytes\n[9500 more entries; use Glob]")
    assert call("Glob", pattern="*.txt").text.endswith("\n00499.txt\n[9500 more files; narrow the pattern]")
    assert call("Grep", pattern="x").text == "(no matches)"
