"""Tokens that are known by their form: a distinctive prefix and a length, or a place where nothing else stands.

Sources: the rules of gitleaks, detect-secrets and trufflehog, and what the vendors document; only forms that nothing else
has. A word between `<` and `>` or of one repeated `x` is an example, not a token."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import cache

# By name: `_TOKENS` after a boundary and before one, in runs of at least `_RUN` characters out of A-Z a-z 0-9 _ -.
_TOKENS = {
    "github-token": r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255}",
    "anthropic-key": r"sk-ant-[\w-]{20,}",
    "openai-key": r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,}|sk-(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}",
    "openrouter-key": r"sk-or-v1-[0-9a-f]{64}",
    "aws-access-key-id": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    "google-key": r"AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{20,}",
    "slack-token": r"xox[abeoprs]-(?=[A-Za-z-]*\d)[A-Za-z0-9-]{16,}|xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{20,}",
    "stripe-key": r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{32,}",
    "gitlab-token": r"gl(?:pat|dt|ptt|rt|oas|cbt|agent|ft|imt|soat)-(?=[A-Za-z_-]*\d)[\w-]{20,}",
    "npm-token": r"npm_[A-Za-z0-9]{36}",
    "pypi-token": r"pypi-(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{50,}",
    "huggingface-token": r"hf_[A-Za-z0-9]{34,}",
    "jwt": r"eyJ[\w-]{10,}\.eyJ[\w-]{8,}\.[\w-]{16,}",
    "sendgrid-key": r"SG\.[\w-]{22}\.[\w-]{43}",
    "twilio-key": r"SK[0-9a-f]{32}",
    "digitalocean-token": r"do[opr]_v1_[0-9a-f]{64}",
    "docker-token": r"dckr_[op]at_[\w-]{27,}",
    "shopify-token": r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "square-token": r"sq0(?:atp|csp)-[\w-]{22,43}",
    "databricks-token": r"dapi[0-9a-f]{32}(?:-\d)?",
    "heroku-key": r"HRKU-AA[\w-]{58}",
    "telegram-token": r"\d{8,10}:AA[\w-]{33}",
    "postman-key": r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    "grafana-token": r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}",
    "vault-token": r"hv[bs]\.[\w-]{24,}",
    "age-key": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "linear-key": r"lin_api_[A-Za-z0-9]{40}",
    "rubygems-key": r"rubygems_[0-9a-f]{48}",
    "groq-key": r"gsk_[A-Za-z0-9]{52}",
    "replicate-token": r"r8_[A-Za-z0-9]{37}",
    "supabase-token": r"sbp_[0-9a-f]{40}",
    "atlassian-token": r"ATATT3[\w=-]{60,}",
}
# What may stand before a token: no letter or digit, but for an escape (`\n`, `\x3d`, `\u003d`, `%3D`) or a colour (`[1;32m`).
_ESCAPES = (
    r"\\[nrt]",
    r"\\x[\da-fA-F]{2}",
    r"\\u[\da-fA-F]{4}",
    r"%[\da-fA-F]{2}",
    *(rf"[\[;]\d{{{n}}}[mK]" for n in range(4)),
)
_BEFORE = f"(?:(?<![A-Za-z0-9_])|{'|'.join(f'(?<={escape})' for escape in _ESCAPES)})"
_STARTS = (
    r"gh[pousr]_|github_pat_|sk-|A(?:KI|SI|BI|CC)A|AIza|GOCSPX-|ya29\.|xox[abeoprs]-|xapp-"
    r"|rk_(?:live|test|prod)_|sk_(?:live|test|prod)_|whsec_"
    r"|gl(?:pat|dt|ptt|rt|oas|cbt|agent|ft|imt|soat)-|npm_|pypi-|hf_|eyJ|SG\.|SK[0-9a-f]{8}|do[opr]_v1_|dckr_|shp(?:at|ca|pa|ss)_"
    r"|sq0[ac]|dapi[0-9a-f]|HRKU-|PMAK-|glsa_|hv[bs]\.|AGE-S|lin_api_|rubygems_|gsk_|r8_|sbp_|ATATT3|"
    + "|".join(rf"{digit}\d{{7,9}}:AA" for digit in "0123456789")
)  # each begins with a character that stands for itself: others are passed over at once
_PLACES = {
    # What a place says: the value is the group of its own.
    "aws-secret-key": r"(?i:secret_?access_?key)[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    "azure-key": r"AccountKey=([A-Za-z0-9/+]{86}==)",
    "basic-auth": r"\b[Bb]asic\s{1,4}([A-Za-z0-9+/]{6,1000}={0,2})(?![A-Za-z0-9+/=])",
    "bearer-token": r"\b[Bb]earer\s{1,4}([\w.~+/-]{16,4000}={0,2})",
    "url-password": r"://[^\s/:@\"'<>\\]{0,200}:([^\s/@\"'<>\\]{3,300})@",
}
_KEY_LINE = r"(?:\\+[nrt]|[\s\"',>|#*\\]|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): [^\n\\]*|[A-Za-z0-9+/=]+)"
_PRIVATE_KEY = re.compile(
    rf"-----BEGIN [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----({_KEY_LINE}*+)(-----END [A-Z0-9 ]{{0,30}}-----)?"
)
_AT = {name: re.compile(form) for name, form in _PLACES.items()}
_MARKS = {
    "aws-secret-key": ("SECRET_ACCESS_KEY", "secret_access_key", "ecretAccessKey"),
    "azure-key": ("AccountKey=",),
    "basic-auth": ("asic ",),
    "bearer-token": ("earer ",),
    "url-password": ("://",),
}
NAMES = (*_TOKENS, *_PLACES, "private-key")
REACH = 1 << 14  # characters that one token, key or header takes at most

_PLACED = ("PRIVATE KEY", *(mark for marks in _MARKS.values() for mark in marks))
_SHORTEST = 9  # characters: `://:pwd@x` and more
_RUN = 20
_ESCAPE = 5  # characters of an escape that look like those of tokens
_LONG = re.compile(r"[A-Za-z0-9_\-]{20,}+")
_START = re.compile(_STARTS)
_BEHIND = re.compile(f"-(?:{_STARTS})")
_IN_RUN = bytes(0x61 if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "_-") else 0x20 for b in range(256))
_NO_WORDS = frozenset({"password", "passwd", "pass", "pwd", "pw", "secret", "token", "key", "user", "username", "foo", "bar"})
_TEMPLATE = re.compile(r"^[$%{(\[*.x]|[{}$]")

Span = tuple[int, int, str]  # from, to, name


def spans(text: str) -> Iterator[Span]:
    """Where tokens stand in `text`, in no order. Costs little where there are none."""
    if len(text) < _SHORTEST:
        return
    for start in _starts(text):
        found = _token().match(text, start)
        if found is not None and not _repeated(found[0]):
            yield *found.span(), (found.lastgroup or "").replace("_", "-")
    for name, marks in _MARKS.items():
        if any(mark in text for mark in marks):
            yield from ((*found.span(1), name) for found in _AT[name].finditer(text) if _believed(name, found[1]))
    if "PRIVATE KEY" in text:
        for found in _PRIVATE_KEY.finditer(text):
            longest = max(map(len, re.findall("[A-Za-z0-9+/=]+", found[1])), default=0)
            if longest >= (16 if found[2] else 40):
                yield *found.span(), "private-key"


def possible(text: str) -> bool:
    """Whether there may be a token in the text, or in one of which this is the JSON; cheap, as every record is asked."""
    return next(_starts(text), None) is not None or any(mark in text for mark in _PLACED)


@cache
def _token() -> re.Pattern[str]:
    """Any token. Made when there may be one for the first time: it takes longer than all else that is loaded here."""
    return re.compile("|".join(f"{_BEFORE}(?P<{n.replace('-', '_')}>{form})(?![A-Za-z0-9_])" for n, form in _TOKENS.items()))


def _starts(text: str) -> Iterator[int]:
    """Where a long run of the characters of tokens begins as a token does."""
    if b"a" * _RUN not in text.encode("utf-8", "surrogatepass").translate(_IN_RUN):
        return
    for run in _LONG.finditer(text):
        start, end = run.span()
        # A token begins where the run does, or behind an escape that the run begins with the rest of, or before a dot or colon
        # before it, or behind a dash in it: anything else is no boundary.
        opens = text[start - 1 : start]
        first = max(0, start - 12) if opens in (".", ":") else start
        last = start + _ESCAPE if opens in ("\\", "%", "[", ";") else start
        yield from [at for at in range(first, last + 1) if _START.match(text, at)]
        yield from (found.start() + 1 for found in _BEHIND.finditer(text, start, end))


def _repeated(token: str) -> bool:
    """`ghp_xxxxxxxx`: the example in a manual."""
    return len(set(token[-16:]) - set("xX0*.-_")) == 0


def _believed(name: str, value: str) -> bool:
    match name:
        case "basic-auth":
            try:
                return b":" in b64decode(value + "=" * (-len(value) % 4), validate=True)
            except ValueError:
                return False
        case "bearer-token":
            return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not _repeated(value)
        case "url-password":
            return value.lower() not in _NO_WORDS and not _TEMPLATE.search(value)
    return True
