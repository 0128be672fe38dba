"""The contract of dedup.page.urls: which token stands for an HREF or SRC, and the parts of an address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.page.urls import (
    MAX_FOLDERS,
    MAX_URL,
    host,
    join,
    strip_session,
    strip_user,
    url_token,
    usable_base,
)
from tests.support.pages.oracle import LINKS, fold, steady, url_tokens

PAGE_URL = "http://example.org/docs/page.html"

# --- URL tokens ---------------------------------------------------------------------------------------


@steady(400)
@given(LINKS, st.sampled_from([PAGE_URL, "http://example.org", "http://example.org/docs/a/B/c?q"]))
def test_a_url_token_is_what_urljoin_and_a_plain_rule_give(link: str, base: str) -> None:
    token = url_token(link, base)
    assert ([] if token is None else [fold(token)]) == url_tokens(link, base)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("b.html", "/b.html"),
        ("../up.html", "/up.html"),
        ("?p=2", "/page.html?p=2"),
        ("//cdn.example.com/i.png", "//cdn.example.com/i.png"),
        ("https://Example.ORG/docs/B", "/B"),
        ("http://example.org:80/docs/b", "//example.org:80/docs/b"),
        ("http://[", "//[/"),
        ("/a b", "/a%20b"),
        ("/é", "/%C3%A9"),
        ("x" * (MAX_URL + 1), None),
        ("", None),
        ("#top", None),
        ("mailto:a@example.org", None),
        ("javascript:go(1)", None),
        ("data:,x", None),
    ],
)
def test_these_are_the_tokens_of_links(value: str, token: str | None) -> None:
    assert url_token(value, PAGE_URL) == token


@pytest.mark.parametrize(
    "at", ["http://mirror.example.com/docs/", "https://example.org/v2/", "http://[::1]:8000/"]
)
def test_a_mirror_has_the_same_tokens_for_its_own_pages(at: str) -> None:
    for path in ("", "b.html", "x/c.html?q=1"):
        assert url_token(at + path, at + "page.html") == "/" + path


# --- Parts of an address ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "jsessionid",
        "PHPSESSID",
        "ASPSESSIONIDABC",
        "sid",
        "session_id",
        "CFID",
        "cftoken",
        "utm_source",
        "gclid",
    ],
)
def test_session_ids_and_campaigns_are_stripped_from_a_url(name: str) -> None:
    url = "http://example.org/a"
    assert strip_session(f"{url};{name}=1F") == url
    assert strip_session(f"{url}?{name}=1F") == url
    assert strip_session(f"{url}?p=2&{name}=1F#top") == f"{url}?p=2"
    assert strip_session(f"{url}?{name}=1F&p=2") == f"{url}?p=2"
    assert strip_session(f"{url}?x{name}=1F") == f"{url}?x{name}=1F"


@pytest.mark.parametrize(
    ("url", "at", "without"),
    [
        ("http://me:secret@Example.org:8000/a", "example.org:8000", "http://Example.org:8000/a"),
        ("https://me@example.org?q=@", "example.org", "https://example.org?q=@"),
        ("http://example.org/@a", "example.org", "http://example.org/@a"),
        ("http://[::1]:80/", "[::1]:80", "http://[::1]:80/"),
        ("mailto:me@example.org", "", "mailto:me@example.org"),
        ("/a", "", "/a"),
        ("", "", ""),
    ],
)
def test_the_host_of_a_url_is_shown_and_its_user_is_not(url: str, at: str, without: str) -> None:
    assert host(url) == at
    assert strip_user(url) == without


@pytest.mark.parametrize("value", ["http://[", "//[x"])
def test_what_can_not_be_resolved_stays_as_it_is(value: str) -> None:
    assert join(PAGE_URL, value) == value


def test_links_are_not_resolved_against_an_address_too_long_or_too_deep() -> None:
    deep = "http://example.org/" + "a/" * MAX_FOLDERS
    assert usable_base(deep) == deep
    assert usable_base(deep + "a/") == ""
    long = "http://example.org/".ljust(MAX_URL, "x")
    assert usable_base(long) == long
    assert usable_base(long + "x") == ""
