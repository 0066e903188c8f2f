from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolbox import Call

from planrun.tools.base import ToolContext
from planrun.tools.search import Tree, matches, split_pattern


@pytest.fixture
def tree(ctx: ToolContext) -> Path:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".git/e.py", ".thclaws/f.py", ".github/g.yml"):
        path = ctx.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\nneedle here\n")
    return ctx.workspace


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", ".", ["a.py"]),
        ("**/*.py", ".", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*", ".", ["src/b.py", "src/d.txt"]),
        ("src/**", ".", ["src/b.py", "src/d.txt", "src/deep/c.py"]),
        ("**/*.{py,yml}", ".", [".github/g.yml", "a.py", "src/b.py", "src/deep/c.py"]),
        ("*.py", "src", ["src/b.py"]),
        ("*.py", ".thclaws", [".thclaws/f.py"]),
        ("**/[bc].py", ".", ["src/b.py", "src/deep/c.py"]),
        ("nothing*", ".", ["(no files match nothing*)"]),
    ],
)
def test_glob(call: Call, tree: Path, pattern: str, path: str, expected: list[str]) -> None:
    assert call("Glob", pattern=pattern, path=path).text.split("\n") == expected
    if path == "." and not expected[0].startswith("("):
        assert call("Glob", pattern=f"{tree}/{pattern}").text.split("\n") == expected


def test_glob_refuses(call: Call, tree: Path) -> None:
    for arguments in (
        {"pattern": "../*"},
        {"pattern": "/etc/*"},
        {"pattern": "*", "path": ".."},
        {"pattern": "*", "path": "a.py"},
    ):
        assert call("Glob", **arguments).status == "error"


@given(st.lists(st.sampled_from("ab"), max_size=5), st.lists(st.sampled_from(["a", "b", "*", "**"]), max_size=5))
def test_matches_like_the_definition(parts: list[str], pattern: list[str]) -> None:
    def slow(want: list[str], have: list[str]) -> bool:
        if not want:
            return not have
        if want[0] == "**":
            return any(slow(want[1:], have[i:]) for i in range(len(have) + 1))
        return bool(have) and want[0] in ("*", have[0]) and slow(want[1:], have[1:])

    assert matches(tuple(pattern), tuple(parts)) == slow(pattern, parts)


def test_patterns_are_bounded() -> None:
    start = time.process_time()
    assert not matches(split_pattern("**/" * 50 + "b")[0], ("a",) * 50)
    assert not matches(("*a" * 50 + "b",), ("a" * 200,))
    assert len(split_pattern("{a,b}" * 30)) <= 130
    assert time.process_time() - start < 5


def test_grep(call: Call, tree: Path) -> None:
    assert call("Grep", pattern="need.e", glob="*.py").text == (
        "a.py:2: needle here\nsrc/b.py:2: needle here\nsrc/deep/c.py:2: needle here"
    )
    assert call("Grep", pattern="needle", path="src/d.txt").text == "src/d.txt:2: needle here"
    assert call("Grep", pattern="needle", path="src", glob="deep/**").text == "src/deep/c.py:2: needle here"
    assert call("Grep", pattern="^# .git/", path=".git").text == ".git/e.py:1: # .git/e.py"
    assert call("Grep", pattern="absent").text == "(no matches)"


def test_grep_explains_a_bad_pattern(call: Call, tree: Path) -> None:
    result = call("Grep", pattern="f(")
    assert result.status == "error"
    assert "unterminated subpattern" in result.text
    assert call("Grep", pattern="x", path="none").text == "none does not exist"
    assert call("Grep", pattern="x", path="../..").status == "error"


def test_grep_skips_and_caps(call: Call, ctx: ToolContext, tmp_path: Path) -> None:
    (ctx.workspace / "bin").write_bytes(b"\0needle")
    (ctx.workspace / "outside").symlink_to(tmp_path)
    (tmp_path / "other").write_text("needle")
    (ctx.workspace / "link").symlink_to(tmp_path / "other")
    (ctx.workspace / "[odd] name").write_text("needle\r\n")
    (ctx.workspace / "utf16").write_bytes("needle é".encode("utf-16"))
    (ctx.workspace / "wide").write_text("x" * 5000 + "needle" + "y" * 400_000 + "needle\n")
    lines = call("Grep", pattern="needle").text.split("\n")
    assert lines[0] == "[odd] name:1: needle"
    assert lines[1] == "utf16:1: needle é"
    assert lines[2].startswith("wide:1: ...x")
    assert "needle" in lines[2]
    assert len(lines[2]) < 330
    assert lines[3:] == ["[1 very long lines were searched only in their first 10,000 characters]"]
    (ctx.workspace / "many").write_text("hit\n" * 1000)
    lines = call("Grep", pattern="hit").text.split("\n")
    assert (len(lines), lines[-1]) == (201, "[the first 200 matches; there are more: narrow pattern, path or glob]")


def test_a_catastrophic_pattern_ends(call: Call, tree: Path) -> None:
    (tree / "zzz").write_text("needle\n" + "a" * 5000 + "\n")
    start = time.perf_counter()
    result = call("Grep", seconds=3, pattern="needle|(a+)+b")  # the child has to be up by then
    assert time.perf_counter() - start < 60
    assert result.status == "timeout"
    assert result.text.startswith("a.py:2: needle here\n")
    assert "[partial:" in result.text


@pytest.fixture
def deep(ctx: ToolContext) -> Iterator[Path]:
    """A tree that is deeper than a path can be long, a file at each hundredth level."""
    at = os.open(ctx.workspace, os.O_RDONLY)
    for level in range(1, 1501):
        os.mkdir("abcde", dir_fd=at)
        below = os.open("abcde", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
        if level % 100 == 0:
            os.close(os.open("leaf", os.O_CREAT, dir_fd=at))
    os.close(at)
    yield ctx.workspace
    subprocess.run(["rm", "-rf", str(ctx.workspace)], check=True)  # shutil.rmtree gives up at its recursion limit


def test_a_tree_deeper_than_paths_can_be(call: Call, deep: Path) -> None:
    found = call("Glob", pattern="**/leaf").text.split("\n")
    assert [name.count("/") for name in found[:-1]] == [600, 500, 400, 300, 200, 100]
    assert found[-1].startswith("[folders that could not be read: 1, first abcde/abcde")
    assert "[folders that could not be read: 1, " in call("Grep", pattern="x").text
    assert call("Ls").text == "abcde/"


def test_links_pipes_and_odd_names(call: Call, ctx: ToolContext) -> None:
    top = os.fsencode(ctx.workspace)
    os.mkdir(top + b"/a")
    for name in (b"a/f", b"-rf", b"two\nlines", b"\xff\xfe", b"esc\x1b[31m"):
        with open(top + b"/" + name, "wb") as file:
            file.write(b"needle\n")
    for name, target in ((b"a/up", b".."), (b"self", b"self"), (b"zero", b"/dev/zero"), (b"out", b"/etc")):
        os.symlink(target, top + b"/" + name)
    os.mkfifo(top + b"/pipe")
    lines = call("Grep", pattern="needle").text.split("\n")
    assert sorted(lines) == sorted(
        ["-rf:1: needle", "a/f:1: needle", "esc:1: needle", "two lines:1: needle", "\ufffd\ufffd:1: needle"]
    )
    globbed = call("Glob", pattern="**").text.split("\n")
    assert sorted(globbed) == sorted(["-rf", "a/f", "esc", "pipe", "self", "two lines", "zero", "\ufffd\ufffd"])


@pytest.mark.parametrize("name", ["Glob", "Grep"])
def test_a_pattern_beyond_reason_is_refused_at_once(call: Call, name: str) -> None:
    for pattern in ("(a|b)*" * 50_000, "{" + "a," * 50_000 + "}", "(" * 4000 + ")" * 96):
        start = time.perf_counter()
        call(name, pattern=pattern)
        assert time.perf_counter() - start < 30
    assert "at most 4096 characters" in call(name, pattern="x" * 5000).text


def test_a_link_that_takes_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    """The swap stands between the listing of the parent and that of the folder, every time."""
    top, outside = tmp_path.resolve() / "top", tmp_path.resolve() / "outside"
    for folder in (top / "a", top / "b", outside):
        folder.mkdir(parents=True)
        (folder / "f").touch()
    tree = Tree(str(top))
    names = iter(tree)
    assert next(names) == "a/f"
    (top / "b").rename(top / "c")
    (top / "b").symlink_to(outside)
    assert list(names) == []
    assert list(tree.missed) == ["b/"]
