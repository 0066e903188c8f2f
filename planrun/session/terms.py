"""What counts as a word. The index and a scan share this, so that they cannot disagree.

Words are runs of letters and digits, whatever their case and accents. Scripts that put no blanks between words (Chinese,
Japanese, Korean, Thai, …) are cut into pairs of neighbouring characters, and each run ends with its last character alone: a
text of two characters and more is then found as a phrase of pairs, a single one as the beginning of a word. A symbol is a
word of its own. What comes out is read by FTS5's `ascii` tokenizer, for which every character beyond ASCII is part of a word,
and upper case is lower case in ASCII only.

Source: Unicode 15, chapter 4 (general categories); UAX #15 (normal forms); SQLite FTS5, sections 4.3.2 and 4.5.
"""

from __future__ import annotations

import re
import unicodedata

OPERATORS = ("AND", "OR", "NOT")
MARK = "\ue000"  # private use: `fold` lets none through, so no text can hold it
_LONGEST = 32_768  # bytes of a word that FTS5 looks at
_WORD = re.compile(rb"[0-9a-z\x80-\xff]+")
# Compiled when first needed, as a search should not wait for them.
_BEYOND = r"[\x00-\x7f]?[^\x00-\x7f]+"  # with the letter that a combining mark may belong to
_ACCENTS = "[\u0300-\u036f]+"
_OPERATOR = rf"(?<![^\W_])(?:{'|'.join(OPERATORS)})(?![^\W_])"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)


class _Kinds(dict[int, str]):
    """What becomes of a character, by its code, as far as it was ever asked for."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if code < 128 or (category[0] in "LNM" and not 0xFE00 <= code <= 0xFE0F):
            kept = character
        elif category in ("So", "Sm", "Sc"):
            kept = f" {character} "
        else:
            kept = "" if category in ("Cf", "Mn") else " "
        self[code] = kept
        return kept


_KINDS = _Kinds()


def fold(text: str) -> str:
    """`text` so that the tokenizer finds our words in it."""
    return text if text.isascii() else re.sub(_BEYOND, _folded, text)


def _folded(found: re.Match[str]) -> str:
    plain = re.sub(_ACCENTS, "", unicodedata.normalize("NFKD", found[0]))
    return re.sub(f"[{_UNSPACED}]+", _pairs, unicodedata.normalize("NFKC", plain).casefold().translate(_KINDS))


def _pairs(found: re.Match[str]) -> str:
    run = found[0]
    return f" {' '.join([run[i : i + 2] for i in range(len(run))])} "


def marks(text: str) -> list[str]:
    """One word for each operator that `text` spells in capitals: who looks for AND does not mean every `and`."""
    if not any(word in text for word in OPERATORS):
        return []
    return sorted({f"{MARK}{word.lower()}" for word in re.findall(_OPERATOR, text)})


def indexed(text: str) -> str:
    """What FTS5 gets to read of a text. The marks stand where no phrase reaches them."""
    found = marks(text)
    return " ".join((fold(text), MARK, *found)) if found else fold(text)


def words(text: str) -> list[str]:
    """The words of a text in their order, as the index holds them."""
    return [word[:_LONGEST].decode("utf-8", "replace") for word in _WORD.findall(fold(text).encode("utf-8").lower())]


def line(text: str) -> str:
    """All of the words and marks of a text with a blank before and behind each: a phrase is in the text where it is in this."""
    return f" {' '.join([*words(text), MARK, *marks(text)])} "


def sought(text: str) -> tuple[tuple[str, ...], bool]:
    """The words to look for where somebody types `text`, and whether the last is only the beginning of one; none where there is
    no word in it."""
    found = words(text)
    if not found or len(found[-1]) > 1 or not _unspaced(found[-1]):
        return tuple(found), False
    before = found[-2] if len(found) > 1 else ""
    if len(before) == 2 and before[1] == found[-1] and _unspaced(before):
        return tuple(found[:-1]), False
    return tuple(found), True


def _unspaced(word: str) -> bool:
    return not word.isascii() and re.match(f"[{_UNSPACED}]", word) is not None
