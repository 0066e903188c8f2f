"""Tokens as a tokenizer counts them, where settings name one (`compaction.estimator`): a count goes into each message's record, so
whoever reads the log needs no tokenizer to come to the same decisions.

Others plug in by an entry point of the group `planrun.estimators`: a function from a model's name to a function from a text to
its number of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from planrun.core.events import Event, Said
from planrun.core.records import Record
from planrun.errors import ConfigError
from planrun.runner.world import Journal

Counter = Callable[[str], int]
GROUP = "planrun.estimators"
BUILTIN = "builtin"  # the estimate of `core.tokens`, which needs nothing
_PIECE = 20_000  # characters counted at once: some tokenizers take quadratic time on text without blanks
_FALLBACK = "o200k_base"


@cache
def counter(name: str, model: str) -> Counter | None:
    """The counter of this name for a model; None for the estimate that is built in. Raises ConfigError where there is none."""
    if name == BUILTIN:
        return None
    from importlib.metadata import entry_points

    made = {e.name: e for e in entry_points(group=GROUP)}
    try:
        if name in made:
            found: Counter = made[name].load()(model)
        elif name == "tiktoken":
            found = _tiktoken(model)
        else:
            known = ", ".join(sorted({BUILTIN, "tiktoken", *made}))
            raise ConfigError(f"compaction.estimator: there is no {name!r} here; there are: {known}")
        found("a")
    except ConfigError:
        raise
    except Exception as error:  # a plug-in may raise anything
        raise ConfigError(f"compaction.estimator: {name} cannot be used: {type(error).__name__}: {error}") from error
    return found


def _tiktoken(model: str) -> Counter:
    try:
        import tiktoken  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigError("compaction.estimator: tiktoken is not installed: pip install 'planrun[tiktoken]'") from None
    try:
        encoding = tiktoken.encoding_for_model(model.rpartition("/")[2])
    except KeyError:
        encoding = tiktoken.get_encoding(_FALLBACK)
    return lambda text: len(encoding.encode_ordinary(text))


class CountingJournal:
    """Stands before a log and counts each message on its way in."""

    def __init__(self, journal: Journal, count: Counter) -> None:
        self._journal, self._count = journal, count

    def append(self, event: Event) -> Record:
        if isinstance(event, Said):
            texts = [event.content or "", *(c["function"]["name"] + c["function"]["arguments"] for c in event.tool_calls)]
            event = replace(event, counted=sum(self._counted(text) for text in texts))
        return self._journal.append(event)

    def _counted(self, text: str) -> int:
        return sum(self._count(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))

    def sync(self) -> None:
        self._journal.sync()
