"""Server-sent events, however the stream is cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from planrun.models.sse import Event, events

STREAM = (
    ": keep-alive\r\n\r\n"
    "event: ping\ndata: {}\n\n"
    "data: héllo 😀\ndata:second\n\n"
    "id: 7\rretry: 10\rdata: cr only\r\r"
    "data\n\n"
    "data: \u2028 stays\x0bin one line\n\n"
    "data: [DONE]\n\n"
).encode()
WANTED = [
    Event("ping", ("{}",)),
    Event("", ("héllo 😀", "second")),
    Event("", ("cr only",)),
    Event("", ("",)),
    Event("", ("\u2028 stays\x0bin one line",)),
    Event("", ("[DONE]",)),
]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({min(p, len(data)) for p in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(marks)]


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_any_cut_gives_the_same_events(places: list[int]) -> None:
    assert list(events(cut(STREAM, places))) == WANTED


def test_byte_by_byte() -> None:
    assert list(events(bytes([b]) for b in STREAM)) == WANTED


def test_done_is_given_before_its_blank_line() -> None:
    def chunks():
        yield b"data: [DONE]\n"
        raise AssertionError("nothing may be read after it")

    assert next(events(chunks())).text == "[DONE]"


def test_an_event_without_its_blank_line_is_given_at_the_end() -> None:
    assert list(events([b"data: a\n\ndata: b"])) == [Event("", ("a",)), Event("", ("b",))]


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_any_bytes_are_survived(chunks: list[bytes]) -> None:
    assert list(events(chunks)) == list(events([b"".join(chunks)]))
