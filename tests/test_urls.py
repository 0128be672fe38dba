"""The contract of dedup.page.urls: which token stands for an HREF or SRC, and the parts of an address."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup.page.ids import MAX_URL, is_opaque, strip_ids, strip_session
from dedup.page.urls import MAX_FOLDERS, folder, host, join, strip_user, url_tokens, usable_base
from tests.support.pages import oracle
from tests.support.pages.oracle import LINKS, fold, steady

PAGE_URL = "http://example.org/docs/page.html"


def url_token(value: str, base: str) -> str | None:
    found = url_tokens(value, base, folder(base))
    return found and found[0]


# --- URL tokens ---------------------------------------------------------------------------------------


@steady(4)
@given(LINKS, st.sampled_from([PAGE_URL, "http://example.org", "http://example.org/docs/a/B/c?q"]))
def test_a_url_token_is_what_urljoin_and_a_plain_rule_give(link: str, base: str) -> None:
    token = url_token(link, base)
    assert ([] if token is None else [fold(token)]) == oracle.url_tokens(link, base)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("https://Example.ORG/docs/B", "/B"),
        ("http://example.org:80/docs/b", "//example.org:80/docs/b"),
        ("http://[", "//[/"),
        ("/a b", "/a%20b"),
        ("/é", "/%C3%A9"),
        ("x" * (MAX_URL + 1), None),
        ("data:,x", None),
    ],
)
def test_these_are_the_tokens_of_links(value: str, token: str | None) -> None:
    assert url_token(value, PAGE_URL) == token


# --- Parts of an address ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "jsessionid", "PHPSESSID", "ASPSESSIONIDABC", "cftoken", "utm_source", "gclid",
    ],
)  # fmt: skip
def test_session_ids_and_campaigns_are_stripped_from_a_url(name: str) -> None:
    url = "http://example.org/a"
    assert strip_session(f"{url};{name}=1F") == url
    assert strip_session(f"{url}?{name}=1F") == url
    assert strip_session(f"{url}?p=2&{name}=1F#top") == f"{url}?p=2"
    assert strip_session(f"{url}?{name}=1F&p=2") == f"{url}?p=2"
    assert strip_session(f"{url}?x{name}=1F") == f"{url}?x{name}=1F"


@pytest.mark.parametrize("name", ["sid", "SID", "session_id", "sessionid", "sessid", "CFID"])
def test_stories_are_told_from_sessions(name: str) -> None:
    url = "http://example.org/a"
    for value in ("77c1d05e", "9f86d081884c7d65", "1763767000123", "9f86d081-884c-7d65-9a2f-eaa0c55ad015"):
        assert strip_session(f"{url}?p=2&{name}={value}#top") == f"{url}?p=2"
    for value in ("17", "20261121", "2", "storm", "storm-2-0", "", "storm released"):
        assert strip_session(f"{url}?{name}={value}&p=2") == f"{url}?{name}={value}&p=2"


@pytest.mark.parametrize(
    ("token", "without"),
    [
        ("/a?tok=9f86d081884c7d65", "/a"),
        ("/a?9f86d081884c7d65", "/a"),
        ("/a?sid=77c1d05e&p=2", "/a?p=2"),
        ("/a?page=2&tok=9f86d081884c7d65&v=1", "/a?page=2&v=1"),
        ("/s/9f86d081884c7d65/a.html", "/s/*/a.html"),
        ("/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "/*/a.aspx"),
        ("/a;s=9f86d081884c7d65/b", "/a/b"),
        ("/a?at=1763767000123", "/a"),
        ("/a?key=9f86d081-884c-7d65-9a2f-eaa0c55ad015", "/a"),
        ("/a?key=aGVsbG8gd29ybGQ-x_4kQ%3D", "/a"),
        ("/a?key=QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "/a"),
        *(
            (token, token)
            for token in (
                "/a?sid=17", "/a?id=77c1d05e", "/a?id=20261121", "/a/123456789", "/9f86d081884c7d65.jpg",
                "/notes/release-notes-for-storm-2-0-1", "/a?q=Release_Notes_For_Storm_2_0",
                "/watch?v=dQw4w9WgXcQ", "/internationalisation/a",
                "//d111111abcdef8x9f86d081.example.net/a", "/SuperCalifragilistic/a",
            )
        ),
    ],
)  # fmt: skip
def test_what_looks_like_nothing_but_an_id_is_left_out(token: str, without: str) -> None:
    assert strip_ids(token) == without


@pytest.mark.parametrize(
    ("url", "at", "without"),
    [
        ("http://me:secret@Example.org:8000/a", "example.org:8000", "http://Example.org:8000/a"),
        ("https://me@example.org?q=@", "example.org", "https://example.org?q=@"),
        ("http://example.org/@a", "example.org", "http://example.org/@a"),
        ("http://[::1]:80/", "[::1]:80", "http://[::1]:80/"),
        ("mailto:me@example.org", "", "mailto:me@example.org"), ("/a", "", "/a"), ("", "", ""),
    ],
)  # fmt: skip
def test_the_host_of_a_url_is_shown_and_its_user_is_not(url: str, at: str, without: str) -> None:
    assert host(url) == at
    assert strip_user(url) == without


@pytest.mark.parametrize("value", ["http://[", "//[x"])
def test_broken_urls_are_tokens(value: str) -> None:
    assert join(PAGE_URL, value) == ""
    assert url_token(value, PAGE_URL) is not None


def test_usable_bases() -> None:
    deep = "http://example.org/" + "a/" * MAX_FOLDERS
    assert usable_base(deep) == deep
    assert usable_base(deep + "a/") == ""
    long = "http://example.org/".ljust(MAX_URL, "x")
    assert usable_base(long) == long
    assert usable_base(long + "x") == ""


@given(st.text(st.sampled_from("aZ09-_+=%3D()S"), min_size=8, max_size=40))
@example("c313b866446-770648217%3D%3D")
@example("(S(9f86d081884c7d65))")
def test_whatever_looks_like_an_id_is_taken_from_a_token(value: str) -> None:
    if is_opaque(value):
        assert strip_ids(f"/s/{value}/a") == "/s/*/a"
        assert strip_ids(f"/s/a?tok={value}&b=2") == "/s/a?b=2"
