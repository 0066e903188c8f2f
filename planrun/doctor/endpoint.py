"""Trying a model endpoint with three small requests: does it answer, know the key and the model, stream, count, call tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from planrun.core.room import A_GUESS, window_of
from planrun.core.state import State
from planrun.endpoint import shown
from planrun.errors import ConfigError, PlanrunError, ProviderError
from planrun.models.base import Reply
from planrun.models.faults import AnswerFault, Fault, classify, masked, raised
from planrun.models.once import Answer, send
from planrun.models.said import one_line
from planrun.models.wire import read_reply
from planrun.settings import Settings

Status = Literal["ok", "warning", "failed"]
ANSWER = 256  # tokens of an answer, at most: some models think before they speak
_PROMPT = 150  # tokens of a request, about
_WINDOWS = ("max_model_len", "n_ctx", "context_length", "context_window", "max_context_length", "n_ctx_train")
_TOOL = {
    "type": "function",
    "function": {
        "name": "note_word",
        "description": "Note a word",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}
_ABOUT = {"auth": "key", "model": "model"}  # which check a fault of an answer belongs to
_TOOLS = "a server may have to be told to: llama.cpp --jinja, vLLM --enable-auto-tool-choice"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried. `exit_code` is that of a failure: 2 where something here has to change, 75 where trying later may help."""

    name: str
    status: Status
    text: str
    advice: str = ""
    exit_code: int = 0


@dataclass(slots=True)
class Endpoint:
    """The endpoint that a run with these settings would use. Raises ConfigError where no model is named."""

    settings: Settings
    model: str = field(init=False)

    def __post_init__(self) -> None:
        if not self.settings.model or self.settings.model.startswith("replay:"):
            raise ConfigError("no model of an endpoint is named: use --model, PLANRUN_MODEL or `model` in settings.json")
        self.model = self.settings.model

    def announcement(self) -> str:
        """What will be sent, before it is."""
        key = "with the key of OPENAI_API_KEY" if self.settings.api_key else "without a key"
        return (
            f"to {shown(self.settings.base_url)}, {key}: the list of models, then two requests to {self.model}, "
            f"about {_PROMPT} tokens each, answers of at most {ANSWER} tokens each; nothing of yours is sent"
        )

    def checks(self) -> Iterator[Check]:
        """Each check as it comes in; one that failed may be the last."""
        try:
            listed = self._send("GET", "/models")
        except PlanrunError as error:
            yield _failure("reachable", error)
            return
        yield Check("reachable", "ok", f"it answered after {listed.seconds:.2f} s")
        row = None
        if listed.status in (401, 403):
            yield _failure("key", self._told(_fault(listed)))
            return
        models = _models(listed)
        row = next((m for m in models if m.get("id") == self.model), None)
        yield self._listed(models, row)
        try:
            yield from self._reply()
            yield self._calls()
        except AnswerFault as error:
            yield _failure(_ABOUT.get(error.fault.kind, "reply"), self._told(error.fault))
            return
        except PlanrunError as error:
            yield _failure("reply", error)
            return
        yield self._window(row)

    def _listed(self, models: list[dict[str, Any]], row: dict[str, Any] | None) -> Check:
        if row is not None:
            return Check("model", "ok", f"{self.model} is in the list of {len(models)}")
        if not models:
            return Check("model", "warning", "it offers no list of models; the reply will tell")
        names = [str(m.get("id")) for m in models]
        close = ", ".join(get_close_matches(self.model, names, 3, 0.3) or names[:3])
        return Check(
            "model", "warning", f"{self.model} is not among the {len(models)} that it lists", f"is one of these meant? {close}"
        )

    def _reply(self) -> Iterator[Check]:
        answer, reply = self._ask("Say the word ready and nothing else.")
        said = one_line(reply.message.content or "", 40) if reply.message else ""
        if said:
            yield Check("reply", "ok", f"it said {said!r} after {answer.seconds:.2f} s")
        else:
            yield Check(
                "reply",
                "warning",
                f"an empty answer (it ended with {reply.finish_reason})",
                f"perhaps it thinks for more than {ANSWER} tokens",
            )
        yield _streaming(answer)
        used = reply.usage
        if used.prompt_tokens is not None and used.completion_tokens is not None:
            yield Check("usage", "ok", f"{used.prompt_tokens} tokens in, {used.completion_tokens} out")
        else:
            yield Check("usage", "warning", "it reports no usage", "limits and costs will count by estimate")

    def _calls(self) -> Check:
        _, reply = self._ask("Call the tool note_word with the word ready.", [_TOOL])
        call = next(iter(reply.message.tool_calls), None) if reply.message else None
        if call is None:
            return Check("tools", "warning", "it was asked to call a tool and used words instead", _TOOLS)
        if call.fault or call.name != "note_word":
            return Check(
                "tools",
                "warning",
                f"it called {one_line(call.name, 40)} with arguments that do not fit: {one_line(call.fault or call.arguments, 120)}",
                _TOOLS,
            )
        return Check("tools", "ok", f"it called note_word({one_line(call.arguments, 60)})")

    def _window(self, row: dict[str, Any] | None) -> Check:
        used, origin = window_of(State(settings=self.settings.public()), self.model)
        text = f"planrun takes it for {used:,} tokens, by {origin}"
        said = _window_of(row or {})
        if said is None:
            known = origin != A_GUESS
            advice = "" if known else "name it with --window or modelOverrides in settings.json"
            return Check("window", "ok" if known else "warning", f"{text}; the endpoint does not say", advice)
        if used > said:
            return Check(
                "window",
                "warning",
                f"{text}; the endpoint says {said:,}",
                f"--window {said}, or modelOverrides in settings.json",
            )
        return Check("window", "ok", f"{text}; the endpoint says {said:,}")

    def _ask(self, text: str, tools: list[dict[str, Any]] | None = None) -> tuple[Answer, Reply]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": ANSWER,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {"tools": tools} if tools else {}
        answer = self._send("POST", "/chat/completions", body | {"messages": [{"role": "user", "content": text}]})
        if answer.status >= 300:
            raise AnswerFault(_fault(answer))
        return answer, read_reply(answer.kind, [answer.body])

    def _told(self, fault: Fault) -> PlanrunError:
        return raised(masked(fault, self.settings.api_key or ""), shown(self.settings.base_url))

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        return send(self.settings.base_url, self.settings.api_key or "", method, path, body)


def _fault(answer: Answer) -> Fault:
    return classify(answer.status, answer.body.decode("utf-8", "replace"), answer.headers)


def _failure(name: str, error: PlanrunError) -> Check:
    later = isinstance(error, ProviderError) and error.kind != "refused"
    text = str(error)
    advice = {
        "reachable": "is the address right, the server up, the name known, the certificate valid? --base-url, OPENAI_BASE_URL",
        "key": "set OPENAI_API_KEY",
        "model": "name one with --model",
    }.get(name, "")
    return Check(name, "failed", text, advice, 75 if later else 2)


def _models(answer: Answer) -> list[dict[str, Any]]:
    try:
        found = json.loads(answer.body) if answer.status < 300 else None
    except (ValueError, RecursionError):
        return []
    rows = found.get("data") if isinstance(found, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _streaming(answer: Answer) -> Check:
    if "event-stream" not in answer.kind.lower():
        return Check(
            "streaming",
            "warning",
            f"it was asked to stream and answered in one piece ({one_line(answer.kind, 40) or 'no type'})",
        )
    if b"[DONE]" not in answer.body:
        return Check(
            "streaming", "warning", "its stream does not end with [DONE]", "a connection that breaks off may go unnoticed"
        )
    return Check("streaming", "ok", "it streams and ends properly")


def _window_of(row: dict[str, Any]) -> int | None:
    """The context window that an entry of the list of models tells of, in the words of several servers."""
    for name in _WINDOWS:
        for table in (row, *(v for v in row.values() if isinstance(v, dict))):
            value = table.get(name)
            if isinstance(value, int) and value > 0:
                return value
    return None
