"""One estimate of tokens for everything: budgets, the screen, compaction.

A raw estimate is made from the text alone and errs on the high side; `calibrate` learns from reported usage how far it is
off for this model. Raw estimates cost O(1) on ASCII text: a fixed-size sample decides how dense the text is."""

from __future__ import annotations

PER_MESSAGE = 4  # tokens of framing that chat templates add to a message
_SAMPLE = 96
_PROSE, _DENSE = 3.3, 2.05  # ASCII characters per token: words with spaces; hex, digits, base64, log lines


def raw_tokens(text: str) -> float:
    """Tokens of `text`, uncalibrated: at least 1 for a character outside ASCII, 2 outside the basic plane."""
    size = len(text)
    if not size:
        return 0.0
    if text.isascii():
        return size / _density(text, size)
    encoded = len(text.encode("utf-8", "surrogatepass"))
    ascii_size = sum(map(str.isascii, text)) if encoded < 3 * size else len(text.encode("ascii", "ignore"))
    wide = (len(text.encode("utf-16-le", "surrogatepass")) // 2) - size  # characters outside the basic plane
    return (size - ascii_size - wide) * 1.1 + wide * 2.2 + ascii_size / _DENSE


def _density(text: str, size: int) -> float:
    if size <= 3 * _SAMPLE:
        sample = text
    else:
        middle = size // 2
        sample = text[:_SAMPLE] + text[middle : middle + _SAMPLE] + text[-_SAMPLE:]
    spaces = sample.count(" ") + sample.count("\n")
    digits = sum(map(sample.count, "0123456789"))
    wordy = spaces * 12 >= len(sample) and digits * 8 <= len(sample)
    return _PROSE if wordy else _DENSE


def calibrate(factor: float, raw: float, reported: int) -> float:
    """The factor that turns raw estimates into tokens, after an endpoint reported `reported` prompt tokens for `raw`.

    It follows a rise at once and a fall by halves, within 0.4 to 4, with a margin of 2 % so that it stays above."""
    if raw <= 0 or reported <= 0:
        return factor
    seen = min(4.0, max(0.4, reported / raw * 1.02))
    return seen if seen >= factor else (factor + seen) / 2
