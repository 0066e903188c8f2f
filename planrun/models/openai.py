"""One request to an OpenAI-compatible endpoint through the SDK's client, read with our own eyes (see `wire`)."""

from __future__ import annotations

import re
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from planrun.endpoint import shown
from planrun.errors import ConfigError
from planrun.models.base import ModelRequest, Reply
from planrun.models.cutting import Sockets, shut
from planrun.models.faults import AnswerFault, Failure, Fault, classify, masked, raised
from planrun.models.said import one_line
from planrun.models.wire import read_reply

if TYPE_CHECKING:
    import httpx2
    import openai

DEFAULT_TOTAL = 1800.0  # seconds for one answer, from the request to its last byte
_ACCEPT = "text/event-stream, application/json"
_CONNECT = 5.0  # seconds
_KEEPALIVE = 30.0  # seconds: a tool may run between two turns, and a new TLS handshake costs more than an idle socket
_DRAIN = 0.1  # seconds to wait for the end of a stream after its [DONE]
_MAX_ERROR = 64 * 1024  # bytes of an error body that are read
_STREAM = re.compile(r"\bstream(_options|ing)?\b")
_MAX_ERROR_TIME = 10.0  # seconds after which the rest of an error body no longer matters


class OpenAIModel:
    """A Model that tries once. `base_url` is an address as `endpoint.normalise_base_url` leaves it; `api_key` may be empty for
    servers that want none. Times are in seconds: `read_timeout` is the longest silence, not the length of an answer.
    Threads may share it; the connection is kept between requests.

    Raises ConfigError at once for a key that cannot be sent.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        read_timeout: float = 120.0,
        total_timeout: float = DEFAULT_TOTAL,
    ) -> None:
        self.url = shown(base_url)
        self._base_url = base_url
        self._address = f"{base_url}/chat/completions"  # whole: a path the SDK would parse and join anew for every request
        self._key = api_key.strip()
        if not self._key.isascii() or not self._key.isprintable():
            raise ConfigError("the API key has characters that no header can carry: look for a line break or a quote in it")
        self._read, self._total = read_timeout, total_timeout
        self._answered = False
        self._made: openai.OpenAI | None = None
        self._headers: dict[str, str | openai.Omit] = {}
        self._lock = threading.Lock()
        self._sockets = Sockets()

    def complete(self, request: ModelRequest) -> Reply:
        """One try, one request. Raises Failure (a ProviderError), ContextOverflow or ConfigError. What a signal handler
        raises passes through once the connection is closed."""
        self._client()  # the SDK's import is slow, and no part of the answer's time
        own_limit = request.deadline is None
        deadline = time.monotonic() + self._total if request.deadline is None else request.deadline
        try:
            response = self._send(request.body, deadline)
            try:
                body = _Body(response, deadline, own_limit)
                reply = read_reply(response.headers.get("content-type", ""), body)
                body.finish()
                self._answered = True
                return reply
            finally:
                response.close()
        except AnswerFault as error:
            raise raised(masked(self._explained(error.fault), self._key), self.url) from None

    def close(self) -> None:
        """Close the connections that are kept open."""
        if self._made is not None:
            self._made.close()

    def _send(self, body: bytes, deadline: float) -> httpx2.Response:
        import httpx2
        import openai

        left = deadline - time.monotonic()
        if left <= 0:
            raise Failure(Fault("timeout", "no time is left for a request"))
        client = self._client()
        timeout = httpx2.Timeout(min(self._read, left), connect=min(_CONNECT, left))
        try:
            with self._sockets.until(deadline):
                return client.post(
                    self._address,
                    cast_to=httpx2.Response,
                    content=body,
                    # Never sent (no header is configured for it), but without one the SDK makes a UUID for every request.
                    options={"headers": self._headers, "timeout": timeout, "idempotency_key": "-"},
                )
        except openai.APIStatusError as error:
            _refuse(error.response)
        except openai.APIConnectionError as error:
            fault = _transport_fault(error.__cause__ or error)
            if time.monotonic() >= deadline:
                fault = Fault("timeout", "the answer did not begin in time", retryable=True)
            raise AnswerFault(replace(fault, message=one_line(f"{self.url}: {fault.message}"))) from None

    def _explained(self, fault: Fault) -> Fault:
        if fault.kind == "refused" and _STREAM.search(fault.message):
            return replace(fault, message=one_line(f"the endpoint refuses streamed answers: {fault.message}"))
        if fault.kind == "protocol" and self._answered:
            # The address is right: it is a gateway before it that speaks for itself for a while.
            return replace(fault, kind="server", retryable=True, message=one_line(f"no answer of the API's: {fault.message}"))
        return fault

    def _client(self) -> openai.OpenAI:
        with self._lock:
            if self._made is None:
                self._made = self._build()
                # Sockets are closed with the model, also where nobody calls close().
                weakref.finalize(self, self._made.close)
                weakref.finalize(self, self._sockets.close)
            return self._made

    def _build(self) -> openai.OpenAI:
        import httpx2
        import openai

        try:
            http = openai.DefaultHttpxClient(
                limits=httpx2.Limits(max_connections=100, max_keepalive_connections=10, keepalive_expiry=_KEEPALIVE),
                event_hooks={"request": [self._sockets.watch], "response": [_on_response]},
            )
        except (ImportError, OSError, ValueError) as error:
            said = f"the proxy or the certificates that the environment names (HTTPS_PROXY, SSL_CERT_FILE, ...) cannot be used: {error}"
            raise ConfigError(one_line(said)) from None
        gone = openai.Omit()
        self._headers = {
            "X-Stainless-Raw-Response": "stream",
            **dict.fromkeys(("X-Stainless-Async", "X-Stainless-Retry-Count", "X-Stainless-Read-Timeout"), gone),
            "Accept": _ACCEPT,
        }
        if not self._key:
            self._headers["Authorization"] = gone

        class OpenAI(openai.OpenAI):  # its name stands in the user agent
            def platform_headers(self) -> dict[str, str]:
                """Nobody is told what machine this is; to find it out, the SDK starts a process."""
                return {}

        # max_retries=0: `RetryingModel` is the only layer that tries again.
        return OpenAI(
            base_url=self._base_url,
            api_key=self._key or "none",
            max_retries=0,
            http_client=http,
        )


class _Body:
    """The bytes of an answer as they come. The deadline is looked at after every chunk."""

    def __init__(self, response: httpx2.Response, deadline: float, own_limit: bool) -> None:
        self._response = response
        self._chunks = response.iter_bytes()
        self._deadline = deadline
        self._own_limit = own_limit

    def __iter__(self) -> Iterator[bytes]:
        import httpx2

        try:
            for chunk in self._chunks:
                yield chunk
                if time.monotonic() > self._deadline:
                    raise AnswerFault(Fault("timeout", "the answer was not complete in time", retryable=self._own_limit))
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise AnswerFault(_transport_fault(error)) from None

    def finish(self) -> None:
        """Read what follows [DONE], mostly nothing, so that the connection can be used again; but not for long."""
        import httpx2

        if self._response.is_closed:
            return
        if str(self._response.num_bytes_downloaded) == self._response.headers.get("content-length"):
            for _ in self._chunks:  # it has all arrived: nothing is read from the network any more
                pass
            return
        stream = self._response.extensions.get("network_stream")
        sock = stream.get_extra_info("socket") if stream is not None else None
        if not isinstance(sock, socket.socket):
            return
        # The read timeout cannot be changed any more once the body is being read.
        watch = threading.Timer(_DRAIN, shut, (sock,))
        watch.daemon = True
        watch.start()
        try:
            for _ in self._chunks:
                pass
        except (httpx2.RequestError, httpx2.StreamError):
            return
        finally:
            watch.cancel()


def _on_response(response: httpx2.Response) -> None:
    """Read an error body here, in bounds: the SDK would read it to its end, however slowly it comes. Nothing is sent on to
    where a redirect points: that is another endpoint than the one that was named."""
    import httpx2

    status = response.status_code
    if 300 <= status < 400 and (place := response.headers.get("location")):
        raise AnswerFault(Fault("protocol", one_line(f"HTTP {status}, moved to {place}"), status=status))
    if status < 400:
        return
    body, start = bytearray(), time.monotonic()
    try:
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _MAX_ERROR or time.monotonic() - start > _MAX_ERROR_TIME:
                break
    except (httpx2.RequestError, httpx2.StreamError):
        pass  # the status alone says enough
    raise AnswerFault(classify(status, body.decode("utf-8", "replace"), dict(response.headers)))


def _refuse(response: httpx2.Response) -> NoReturn:
    raise AnswerFault(classify(response.status_code, response.text, dict(response.headers)))


def _transport_fault(error: BaseException) -> Fault:
    import httpx2

    said = one_line(str(error)) or type(error).__name__
    if isinstance(error, httpx2.ConnectTimeout):
        return Fault("connection", "no connection in time", retryable=True)
    if isinstance(error, httpx2.TimeoutException):
        return Fault("timeout", "the endpoint was silent for too long", retryable=True)
    if isinstance(error, httpx2.TooManyRedirects):
        return Fault("protocol", said)
    # A certificate does not become valid by asking again.
    return Fault("connection", said, retryable="CERTIFICATE_VERIFY_FAILED" not in said)
