"""A real OpenAI-compatible endpoint on 127.0.0.1 for tests.

    with LoopbackServer([text("hello"), call("Bash", {"command": "ls"})]) as server:
        model = OpenAIModel(server.url, "key")
        ...
    assert server.requests[0].body["model"] == "test-model"

After its script is used up it answers with a call that ends the step (`done()`).
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from planrun.testing.answers import Answer, Script, call, calls, done, error, events, message, raw, script_from, text
from planrun.testing.completions import sse, with_estimate

__all__ = [
    "Answer",
    "LoopbackServer",
    "Received",
    "Script",
    "call",
    "calls",
    "done",
    "error",
    "events",
    "message",
    "raw",
    "script_from",
    "text",
]


@dataclass(frozen=True, slots=True)
class Received:
    """One request: `body` is its decoded JSON ({} where it is none), `headers` have lower-case names, `at` is the
    time.monotonic() of its arrival."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]
    at: float


class LoopbackServer:
    """Serves a list of answers, or what a function makes of each request's body. `requests` are those received so far,
    `connections` counts the TCP connections. Leaving the context closes every connection, waits for nothing,
    and raises what the function raised."""

    def __init__(self, script: Iterable[Answer] | Callable[[dict[str, Any]], Answer]) -> None:
        self._script = script if callable(script) else Script(script)
        self._lock = threading.Lock()
        self.requests: list[Received] = []
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._stopping = threading.Event()
        self._http: _Server | None = None
        self._failures: list[Exception] = []
        self.models: list[dict[str, Any]] | None = None  # what GET /models lists; None: there is no such list

    @property
    def url(self) -> str:
        """The base url, with /v1."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        if self._http is None:
            raise RuntimeError("the server runs inside its with block only")
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    def __enter__(self) -> Self:
        self._http = _Server(self)
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
        with self._lock:
            for connection in self._open:
                _quietly(connection.shutdown, socket.SHUT_RDWR)
        if self._failures and error is None:
            raise self._failures[0]

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def answer(self, request: Received) -> Answer:
        with self._lock:
            self.requests.append(request)
        if not request.raw:
            if self.models is not None and request.path.endswith("/models"):
                return raw(200, json.dumps({"object": "list", "data": self.models}))
            return raw(404, '{"error": {"message": "only POST is served here"}}')
        try:
            return self._script(request.body)
        except Exception as error:
            # A failed assertion belongs to the test, not to a thread that nobody looks at.
            self._failures.append(error)
            return raw(500, f"the script failed: {error!r}")

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep, or until the server stops; True when it does."""
        return self._stopping.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, owner: LoopbackServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.owner.opened(self.connection)

    def finish(self) -> None:
        self.server.owner.closed(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests keep their output clean."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        if len(content) < length:  # the client died in the middle of it: nothing was asked
            self.close_connection = True
            return
        try:
            decoded = json.loads(content)
        except ValueError:
            decoded = {}
        body = decoded if isinstance(decoded, dict) else {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.path, headers, content, body, time.monotonic())
        self._send(self.server.owner.answer(received), body, content)

    def _send(self, answer: Answer, body: dict[str, Any], content: bytes) -> None:
        if (answer.delay and self.server.owner.wait(answer.delay)) or answer.status == 0:
            self.close_connection = True
            return
        if answer.reset and answer.cut is None:
            self._reset()
            return
        headers = {"Content-Type": "application/json"}
        pieces, chunked = [answer.body], False
        if answer.completion is not None:
            completion = with_estimate(answer.completion, len(content))
            chunked = answer.stream if answer.stream is not None else body.get("stream") is True
            if chunked:
                headers["Content-Type"] = "text/event-stream"
                with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
                pieces = list(sse(completion, answer.pieces, with_usage))
            else:
                pieces = [json.dumps(completion).encode()]
        headers |= answer.headers
        if answer.close:
            headers["Connection"], chunked = "close", False
        elif chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif "Content-Length" not in headers:
            headers["Content-Length"] = str(sum(map(len, pieces)))
        self._write(answer, _head(answer.status, headers), pieces, chunked)

    def _write(self, answer: Answer, head: bytes, pieces: list[bytes], chunked: bool) -> None:
        whole = b"".join(pieces)
        if answer.cut is not None:
            pieces = [whole[: answer.cut]]
        elif answer.drip:
            pieces = [bytes([byte]) for byte in whole]
        if chunked:
            pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
            pieces += [] if answer.cut is not None or answer.hang else [b"0\r\n\r\n"]
        pause = answer.drip or answer.every
        self.wfile.write(head if pause else head + b"".join(pieces))
        for piece in pieces if pause else ():
            self.wfile.write(piece)
            if self.server.owner.wait(pause):
                return
        if answer.hang:
            self.server.owner.wait()
        if answer.reset:
            self._reset()
        self.close_connection = self.close_connection or answer.close or answer.cut is not None or answer.hang

    def _reset(self) -> None:
        """End the connection with RST instead of FIN, once the handler lets go of it."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {status}"] + [f"{name}: {_dated(str(value))}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _dated(value: str) -> str:
    if value.startswith("$HTTP_DATE+"):
        return formatdate(time.time() + int(value.removeprefix("$HTTP_DATE+")), usegmt=True)
    return value


def _quietly(act: Callable[..., object], *args: object) -> None:
    try:
        act(*args)
    except OSError:
        return
