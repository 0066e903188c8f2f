"""One estimate of tokens for everything: budgets, the screen, compaction.

A raw estimate is made from the text alone and errs on the high side; `calibrate` learns from reported usage how far it is off
for a model. A raw estimate of ASCII text costs the same however long it is: a sample of fixed size says how dense the text is."""

from __future__ import annotations

import re

PER_MESSAGE = 4  # tokens of framing that chat templates add to a message

# Roughly what a byte-pair encoder makes one token of: part of a word with the blank before it, up to three digits, a little
# punctuation, a run of blanks.
_PIECES = re.compile(
    r" ?[A-Z]?[a-z]{1,6}|[A-Z]{1,2}|\d{1,3}|[\x00-\x08\x0e-\x1f]|[^\sA-Za-z\d]{1,3}|\s(?=\d)|\n\s{0,15}|\s{2,16}"
)
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RANDOM = 1.3  # how much denser base64 is than its pieces: every fourth character of it, or more, is a capital letter
_SPOTS, _SPOT = 6, 64  # the sample: so many pieces of so many characters
_BYTE = 0.675  # tokens of each byte of UTF-8 that a character takes beyond its first
_OUTSIDE = 0xF0  # the first byte of characters outside the basic plane that are in use: they take four
_RARE = 0.975  # tokens more of each of these
_SETTLED = 2_000  # reported tokens that count as much as everything reported before
_LOWEST, _HIGHEST = 0.3, 4.0


def raw_tokens(text: str) -> float:
    """Tokens of `text`, uncalibrated: at least 1 for a character of CJK, 2 outside the basic plane."""
    size = len(text)
    if not size:
        return 0.0
    if text.isascii():
        return size * _density(text, size)
    data = text.encode("utf-8", "surrogatepass")
    beyond = len(data) - size
    plain = max(0.0, size - beyond / 2)  # ASCII characters: as if all others took three bytes, as most do
    outside = data.count(_OUTSIDE) if _OUTSIDE in data else 0  # mostly there is none, which is soon found
    return beyond * _BYTE + outside * _RARE + plain * _density(text, size)


def _density(text: str, size: int) -> float:
    """Tokens of an ASCII character of this text."""
    sample = text
    if size > _SPOTS * _SPOT:
        step = (size - _SPOT) // (_SPOTS - 1)
        sample = "".join([text[at : at + _SPOT] for at in range(0, size, step)][:_SPOTS])
    data = sample.encode("ascii", "ignore")
    plain = sample if sample.isascii() else data.decode("ascii")
    random = 4 * (len(data) - len(data.translate(None, _CAPITALS))) > len(data)
    return (len(_PIECES.findall(plain)) + 1) / (len(plain) + 1) * (_RANDOM if random else 1.0)


def calibrate(factor: float, raw: float, reported: int) -> float:
    """The factor that turns raw estimates into tokens, after an endpoint reported `reported` prompt tokens for `raw`.

    With it the estimate of that request is never below what was reported, but for endpoints whose numbers make no sense. It
    follows a rise at once, with 2 % on top, and a fall as far as the request was long: a first short one proves little."""
    if raw <= 0 or reported <= 0:
        return factor
    seen = min(_HIGHEST, max(_LOWEST, reported / raw * 1.02))
    weight = reported / (reported + _SETTLED)
    return seen if seen >= factor else factor + (seen - factor) * weight
