"""Base urls as people write them."""

import pytest

from planrun.errors import ConfigError
from planrun.models.address import parse_address


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://h:1/v1", "http://h:1/v1"),
        ("http://h:1/v1/", "http://h:1/v1"),
        ("  HTTPS://h//v1//  ", "https://h/v1"),
        ("http://h:1", "http://h:1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_spellings(text: str, url: str) -> None:
    address = parse_address(text)
    assert (address.url, address.shown, address.warning) == (url, url, None)


def test_a_known_suffix_is_cut_off_with_a_warning() -> None:
    address = parse_address("http://h:1/v1/chat/completions/")
    assert address.url == "http://h:1/v1"
    assert address.warning is not None and "/chat/completions" in address.warning


def test_credentials_and_queries_are_used_but_not_shown() -> None:
    address = parse_address("https://me:pw@h/v1?api-version=2&key=s3cret")
    assert address.url == "https://me:pw@h/v1"
    assert address.query == {"api-version": "2", "key": "s3cret"}
    assert address.shown == "https://h/v1"
    assert "pw" not in repr(address) and "s3cret" not in repr(address)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no base url"),
        ("127.0.0.1:8001/v1", "has no scheme"),
        ("me:pw@h/v1?key=s3cret", "has no scheme"),
        ("ftp://h/v1", "is not an http"),
        ("http:///v1", "is not an http"),
        ("http://h:port/v1", "is not valid"),
        ("http://[::1/v1", "is not valid"),
    ],
)
def test_what_cannot_be_an_address(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_address(text)
    assert "pw" not in str(caught.value) and "s3cret" not in str(caught.value)
