"""Pages that are kept because of their own content, and those of them that look like a trap."""

from collections.abc import Iterable

import pytest

from dedup.filter import Counts
from dedup.filter.watch.traps import LEAST, Traps, way_of
from dedup.fingerprint.evidence import Evidence
from dedup.index.verdict import Near
from dedup.page.read import read

KEPT = "http://example.org/x?i=0"
NEW_WORDS = Near(KEPT, Evidence(matching=30, new=30, gone=0))


def told(near: Near, pages: int, url: str = "http://example.org/x?i={}") -> Counts:
    """What is counted of so many pages."""
    counts = Counts()
    traps = Traps(counts)
    for number in range(1, pages + 1):
        traps.add(url.format(number), near)
    return counts


def test_many_pages_of_one_pattern_that_differ_in_a_few_words_look_like_a_trap() -> None:
    assert told(NEW_WORDS, LEAST - 1) == {"dedup/own_content": LEAST - 1}
    assert told(NEW_WORDS, 300) == {
        "dedup/own_content": 300,
        "dedup/trap": "http://example.org/x?i=*: 300 pages that differ in about 30 shingles each",
    }


def test_pages_of_a_host_that_is_not_known_yet_are_counted_apart() -> None:
    assert told(Near(KEPT, None), 7) == {"dedup/own_content": 7, "dedup/own_content/host_unknown": 7}


def test_urls_without_a_pattern_are_no_trap() -> None:
    assert told(NEW_WORDS, 300, "http://example.org/x") == {"dedup/own_content": 300}


def test_what_a_url_holds_is_fit_to_be_printed() -> None:
    trap = told(NEW_WORDS, LEAST, "http://example.org/\x1b[2J?i={}")["dedup/trap"]
    assert trap.isascii()
    assert trap.isprintable()


# --- Ways without end -----------------------------------------------------------------------------------


def met(pages: Iterable[tuple[str, str]]) -> Traps:
    """What is known of traps after these pages were kept: their paths and their HTML."""
    traps = Traps(Counts())
    for path, html in pages:
        url = f"http://example.org{path}"
        traps.meet(url, read(html, url), kept=True)
    return traps


def parks(traps: Traps, path: str, found_on: str) -> bool:
    return traps.parks(f"http://example.org{path}", f"http://example.org{found_on}")


EMPTY = "<title>Events</title>Nothing is on on day {0} <a href=/day/{1}>next"
DAYS = [(f"/day/{n}", EMPTY.format(n, n + 1)) for n in range(LEAST + 2)]


def test_links_in_a_trap_are_parked_once_enough_pages_in_a_row_have_said_nothing_new() -> None:
    assert not parks(met(DAYS[:-1]), f"/day/{LEAST + 1}", f"/day/{LEAST}")
    assert parks(met(DAYS), f"/day/{LEAST + 2}", f"/day/{LEAST + 1}")


def test_other_links_on_such_pages_and_links_on_other_pages_are_followed() -> None:
    traps = met([*DAYS, ("/news", "<title>News</title>The days are here")])
    assert not parks(traps, "/news", f"/day/{LEAST + 1}")
    assert not parks(traps, f"/day/{LEAST + 2}", "/news")
    assert not traps.parks("http://example.org/day/7", None)


@pytest.mark.parametrize(
    "new",
    [
        "A concert is on on day {0} <a href=/day/{1}>next",
        EMPTY + "</a><a href=/concert>and",
        EMPTY + "</a><img src=/day/{0}/poster.jpg>",
        EMPTY + "</a><img src=//other.org/{0}.jpg>",
        "<title>Concerts</title>Nothing is on on day {0} <a href=/day/{1}>next",
    ],
    ids=["word", "link", "image", "host", "title"],
)
def test_a_page_that_says_anything_new_ends_the_row(new: str) -> None:
    at = LEAST // 2
    row = [*DAYS[:at], (f"/day/{at}", new.format(at, at + 1)), *DAYS[at + 1 :]]
    assert not parks(met(row), f"/day/{LEAST + 2}", f"/day/{LEAST + 1}")


def test_links_to_a_spent_way_are_nothing_new() -> None:
    """So months without end come to theirs."""
    months = [
        (
            f"/month/{n}",
            f"<title>Month {n}</title>Events in month {n} <a href=/day/{n}>a</a><a href=/month/{n + 1}>next",
        )
        for n in range(LEAST + 2)
    ]
    last = f"/month/{LEAST + 2}", f"/month/{LEAST + 1}"
    assert not parks(met(months), *last)
    assert parks(met(DAYS + months), *last)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/best?p=1", "/best?amp%253Bp=3&amp%3Bp=1&p=2"),
        ("/a/b/", "/a/b/a/b/a/"),
        ("/login?back=/", "/login?back=%2Flogin%3Fback%3D%252Flogin%253Fback%253D%25252F"),
        ("/s/9f86d081884c7d65/cart", "/s/4c7d659a2feaa0c5/cart"),
        ("/2026/11/26?day=3", "/2027/1/3?day=28"),
    ],
)  # fmt: skip
def test_addresses_that_grow_or_count_are_of_one_way(one: str, other: str) -> None:
    a, b = (way_of(f"http://example.org{path}")[1] for path in (one, other))
    assert (a.names - {"amp"}, a.numbers) == (b.names - {"amp"}, b.numbers)


def test_a_long_address_takes_no_long_time() -> None:
    for part in ("%25" * 700, "/a" * 1000, "?" + "&a=%2525" * 300):
        assert way_of("http://example.org/" + part)
