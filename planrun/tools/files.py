"""Read, Write, Edit and Ls."""

from __future__ import annotations

import codecs
import os
import stat
from heapq import nsmallest
from io import BytesIO
from itertools import islice
from pathlib import Path

from pydantic import AliasChoices, Field

from planrun.core.messages import well_formed
from planrun.tools.base import Arguments, Tool, ToolContext, ToolResult
from planrun.tools.editing import Edited, NoEdit, edit, normal
from planrun.tools.paging import SECONDS, read_page
from planrun.tools.paths import Refused, guarded, open_regular, resolve, shown
from planrun.tools.search import open_text
from planrun.tools.shell import spill
from planrun.tools.text import clip, strip_controls
from planrun.writing import atomic_write

ENTRIES = 500
EDIT_LIMIT = 4 << 20  # bytes of a file that Edit takes
_AROUND = 2
_ECHO = 4000  # characters of the edited place that are shown
_ROOM = 200  # characters kept free for the closing line
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # the byte order mark
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class ReadArguments(Arguments):
    file_path: str = Field(validation_alias=AliasChoices("file_path", "path"))
    offset: int = Field(1, description="first line, from 1")
    limit: int = Field(0, ge=0, description="number of lines")


class WriteArguments(Arguments):
    file_path: str = Field(validation_alias=AliasChoices("file_path", "path"))
    content: str


class EditArguments(Arguments):
    file_path: str = Field(validation_alias=AliasChoices("file_path", "path"))
    old: str = Field(validation_alias=AliasChoices("old", "old_string", "old_str"))
    new: str = Field(validation_alias=AliasChoices("new", "new_string", "new_str"))
    all: bool = Field(False, validation_alias=AliasChoices("all", "replace_all"))


class LsArguments(Arguments):
    path: str = Field(".", validation_alias=AliasChoices("path", "directory", "file_path"))


def _read(arguments: ReadArguments, ctx: ToolContext) -> ToolResult:
    path = _existing(arguments.file_path, ctx)
    with open_regular(path) as file:
        text = open_text(file)
        if text is None:
            size = os.fstat(file.fileno()).st_size
            return ToolResult(f"{shown(ctx.workspace, path)} is a binary file of {size:,} bytes", "error")
        offset = max(1, arguments.offset)
        page = read_page(text, offset, arguments.limit or 1 << 62, ctx.limit - _ROOM, shown(ctx.workspace, path), mask=ctx.mask)
    if page.partial and page.last < page.first:
        return ToolResult(
            f"line {offset} was not reached in {SECONDS:g} s: the file is very large; use Bash or Grep", "timeout"
        )
    if page.total == 0:
        return ToolResult("(empty file)")
    if page.last < page.first:
        return ToolResult(f"there is no line {offset}: the file has {page.total:,} lines", "error")
    lines = page.lines
    if page.last < page.total or page.partial:
        of = f"at least {page.total}" if page.partial else page.total
        lines.append(f"[lines {page.first}-{page.last} of {of}; continue with offset={page.last + 1}]")
    return ToolResult(clip("\n".join(lines), ctx.limit, "page it with offset and limit"))


def _write(arguments: WriteArguments, ctx: ToolContext) -> ToolResult:
    path = resolve(ctx.workspace, arguments.file_path, write=True, protected=ctx.protected)
    data = well_formed(arguments.content).encode("utf-8")
    how = "replaced" if path.exists() else "new"
    atomic_write(path, data)
    return ToolResult(f"Wrote {len(data):,} bytes to {shown(ctx.workspace, path)} ({how})")


def _edit(arguments: EditArguments, ctx: ToolContext) -> ToolResult:
    path = resolve(ctx.workspace, arguments.file_path, write=True, protected=ctx.protected)
    name = shown(ctx.workspace, path)
    if not path.exists():
        raise Refused(f"{name} does not exist; use Write to make it")
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > EDIT_LIMIT:
            raise Refused(f"{name} is larger than {EDIT_LIMIT >> 20} MiB; change it with Bash")
        raw = file.read()
    encoding = _UTF16.get(raw[:2], "")
    try:
        content = raw.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass") if encoding else raw
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not valid UTF-16 text: {error.reason}") from None
    try:
        old, new = (well_formed(text).removeprefix(_MARK).encode() for text in (arguments.old, arguments.new))
        edited = edit(content, old, new, everywhere=arguments.all, most=EDIT_LIMIT)
    except NoEdit as error:
        return ToolResult(clip(strip_controls(f"{name}: {error}"), ctx.limit, "Read the file"), "error")
    changed = edited.content
    atomic_write(path, changed.decode("utf-8", "surrogatepass").encode(encoding, "surrogatepass") if encoding else changed)
    count = "1 replacement" if edited.count == 1 else f"{edited.count} replacements"
    return ToolResult(
        clip(f"Edited {name} ({count}). It now reads there:\n{_echo(edited)}", min(_ECHO, ctx.limit), "Read the file")
    )


def _echo(edited: Edited) -> str:
    """The edited place and some lines around it."""
    lines = islice(BytesIO(normal(edited.content)), max(0, edited.first - 1 - _AROUND), edited.last + _AROUND)
    return strip_controls(b"".join(lines).decode("utf-8", "replace").removeprefix(_MARK)).rstrip("\n")


def _ls(arguments: LsArguments, ctx: ToolContext) -> ToolResult:
    path = _existing(arguments.path, ctx)
    if not path.is_dir():
        return ToolResult(_entry(path, path.name))
    # Twice over the folder: the names of a million entries would take too much memory.
    with os.scandir(path) as entries:
        total = sum(1 for _ in entries)
    with os.scandir(path) as entries:
        names = nsmallest(ENTRIES, (entry.name for entry in entries))
    lines = [_entry(path / name, name) for name in names]
    if total > ENTRIES:
        lines.append(f"[{total - ENTRIES} more entries; use Glob]")
    return ToolResult(spill("\n".join(lines) or "(empty directory)", ctx, "ls"))


def _entry(path: Path, name: str) -> str:
    text = strip_controls(os.fsencode(name).decode("utf-8", "replace")).replace("\n", " ")
    try:
        status = path.lstat()
    except OSError:
        return text
    if stat.S_ISDIR(status.st_mode):
        return f"{text}/"
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(path)).decode("utf-8", "replace")
        return f"{text} -> {strip_controls(target)}"
    return f"{text}  {status.st_size:,} bytes"


def _existing(text: str, ctx: ToolContext) -> Path:
    path = resolve(ctx.workspace, text, write=False)
    if not path.exists():
        raise Refused(f"{text} does not exist")
    return path


def _subject(arguments: ReadArguments | WriteArguments | EditArguments) -> str:
    return arguments.file_path


READ = Tool(
    "Read", "Read a text file, or a part of a long one", ReadArguments, guarded(_read), read_only=True, subject=_subject
)
WRITE = Tool("Write", "Write a whole file; folders are made", WriteArguments, guarded(_write), subject=_subject)
EDIT = Tool(
    "Edit",
    "Replace text in a file. old must be exactly as in the file and occur once, unless all",
    EditArguments,
    guarded(_edit),
    subject=_subject,
)
LS = Tool("Ls", "List a directory", LsArguments, guarded(_ls), read_only=True, subject=lambda arguments: arguments.path)
