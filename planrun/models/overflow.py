"""Does an endpoint's error mean that the request is too long, and which limit does it name? For all vendors at once.

Codes and types decide first. The wordings are those of OpenAI, Azure, Anthropic, Gemini, Bedrock, Mistral, Cohere,
Groq, xAI, OpenRouter, Moonshot, DashScope, watsonx, vLLM, SGLang, TGI, llama.cpp, Ollama, LM Studio and a few more, reduced to
what they share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "context_overflow",
        "input_too_long",
        "prompt_too_long",
        "contextwindowexceeded",
        "request_too_large",
        "tokens_limit_reached",
    }
)

# Fields that some servers send beside the text; the first that holds a usable number is the window.
_FIELDS = ("n_ctx", "max_model_len", "max_context_length", "context_length", "context_window", "max_input_tokens")

# Words of a rate limit: "too many tokens per minute" says nothing about the window.
_RATE = re.compile(r"\bper[ -](second|minute|min|hour|day)\b|rate[ _-]?limit|\b[tr]p[md]\b|quota")
# Other limits: of time, and of the answer that was asked for.
_OTHER = re.compile(r"\bdeadline\b|\btimed? ?out\b|\bmaximum tokens you requested\b")

_SUBJECT = r"(prompt|input|inputs|request|messages?|conversation|context|content|payload|entity|body)"
_BIGGER = r"(above|over|exceed(s|ed|ing)?|beyond|(longer|larger|greater|bigger|more) than)"
_ROOM = r"(context|window|token limit|tokens? allowed|(maximum|max|allowed)\b.{0,24}\b(tokens?|length)|model'?s? limit)"
_WORDINGS = re.compile(
    "|".join(
        (
            rf"\b{_SUBJECT}\b.{{0,40}}(?<!took )\btoo (long|large|big)\b",
            r"\btoo (long|large|big) for (this |the |requested )*model\b",
            rf"\b{_BIGGER}\b.{{0,60}}\b{_ROOM}",
            rf"{_ROOM}.{{0,40}}\b(exceed(s|ed)?|overflow(s|ed)?|is full|reached)\b",
            r"\breached (the )?context length\b",
            rf"\b(input|prompt)( tokens?| token count| length)\b.{{0,80}}\b{_BIGGER}\b",
            r"\bmaximum (context|prompt|input|sequence|model) length\b.{0,20}\d",
            r"\b(too many|maximum number of) (input |prompt |total )?tokens\b",
            r"\b(reduce|shorten|decrease)\b.{0,16}\b(length|size|prompt|input|messages|context)\b",
            r"\binputs?\b.{0,60}\bmust (be <=|have less than) \d+",
            r"\brange of input length\b",
            r"\bcontext (the )?overflows?\b|\bcontext length of only \d",
            r"\bprompt token count of \d+",
            r"\bsize limit exceeded by \d+ tokens\b",
            r"\bconfigured context size is \d|\bmaximum supported sequence length\b",
            r"\bcurrent length is \d+ while (the )?limit is \d",
            r"\brequest size (can|must) ?not exceed\b|\bexpected maxlength: \d|\bmax(imum)? input (characters|length|tokens)\b",
            r"(输入|提示|上下文|prompt|messages?).{0,20}(超长|过长|超过|超出)|(超过|超出).{0,12}上下文",
        )
    ),
    re.DOTALL,
)

_NUMBER = r"(\d[\d,_]*\d)"
_FILLER = (
    r"(?:\W|\b(?:is|was|of|for|only|by|to|this|the|that|its|model|models|s|tokens?|length|size|window|number|count|total"
    r"|allowed|limit|maximum|max|context|prompt|input|sequence|current|configured|available|supported|just)\b)*?"
)
_LIMITS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:<=|>|at most|up to|less than|fewer than|(?:can|must )not exceed|no more than|above)\s{{0,3}}{_NUMBER}",
        rf"\[\s*\d+\s*,\s*{_NUMBER}\s*\]",
        rf"\b(?:maximum|max|limit|window|allowed|context (?:length|size|window)){_FILLER}{_NUMBER}",
        rf"{_NUMBER} (?:tokens? )?(?:maximum|max|limit)\b",
        rf"\b(?:takes|accepts|supports|allows|handles|over|than){_FILLER}{_NUMBER}",
    )
)
_PLAUSIBLE = range(256, 100_000_001)


def is_overflow(text: str, words: frozenset[str]) -> bool:
    """`text` is the error's wording, `words` its code and type in lower case."""
    text = text.lower()
    if words & CODES:
        return True
    if _RATE.search(text) or _OTHER.search(text):
        return False
    if "string too long" in text and ".content" not in text:
        return False  # an id or a name, which no compaction makes shorter
    return _WORDINGS.search(text) is not None or any(code in text for code in CODES)


def window_named(text: str, fields: Mapping[str, object]) -> int | None:
    """The limit in tokens that an overflow error teaches, never the size of the request; None where it is not clear."""
    for field in _FIELDS:
        value = fields.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and value in _PLAUSIBLE:
            return value
    text = text.lower().replace("limit (2013)", "limit")  # MiniMax's number of the error
    if _RATE.search(text) or "string too long" in text or "maxlength" in text:  # the latter two count characters
        return None
    for pattern in _LIMITS:
        for match in pattern.finditer(text):
            value = _integer(match.group(1))
            if value in _PLAUSIBLE:
                return value
    # Two sizes and no word that tells them apart: the request was refused, so it is the larger one.
    sizes = {n for n in map(_integer, re.findall(_NUMBER, text)) if n in _PLAUSIBLE}
    return min(sizes) if len(sizes) == 2 else None


def _integer(digits: str) -> int:
    plain = digits.replace(",", "").replace("_", "")
    return int(plain) if len(plain) < 12 else 0
