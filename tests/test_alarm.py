"""The alarm for walls: a page that absorbs pages of too many names of a host."""

import pytest

from dedup.filter import Counts
from dedup.filter.watch.alarm import PATHS, Alarm

WALL = "http://example.org/login"


def rings(limit: int, *urls: str) -> list[bool]:
    alarm = Alarm(limit, Counts())
    return [alarm.rings(url, WALL) for url in urls]


def test_once_it_has_rung_it_rings_for_any_page() -> None:
    urls = [f"http://example.org/{n}" for n in range(4)]
    assert rings(3, *urls, urls[0], WALL) == [False] * 3 + [True] * 3


def test_it_is_told_and_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    alarm = Alarm(1, counts)
    for number in range(5):
        alarm.rings(f"http://example.org/{number}", WALL)
    assert counts == {"dedup/alarms": 1}
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("Alarm: http://example.org/login looks like 2 different pages of example.org. ")


def test_each_host_and_each_kept_page_has_its_own_count() -> None:
    alarm = Alarm(1, Counts())
    assert not alarm.rings("http://example.org/a", WALL)
    assert not alarm.rings("http://example.com/a", WALL)
    assert not alarm.rings("http://example.org/a", "http://example.org/other")
    assert alarm.rings("http://example.org/b", WALL)


#: Near-duplicates of `WALL`, of which three names are allowed, and how many of them ring no alarm: all, if they are copies.
SCENES: dict[str, tuple[list[str], int]] = {
    "queries": ([f"{WALL}?page={n}" for n in range(3_000)], 3_000),
    "sessions": ([f"{WALL};jsessionid={n}?PHPSESSID={n:032x}" for n in range(200)], 200),
    "sessions in the path": ([f"http://example.org/s/{n:016x}a/login" for n in range(200)], 200),
    "versions": ([f"http://example.org/{n}.0/Login" for n in range(40)], 40),
    "homes of versions": ([f"http://example.org/{n}.0/" for n in range(40)], 40),
    "mirrors": ([f"http://{n}.example.org/pub/login" for n in range(200)], 200),
    "forms of a name": (
        [f"{WALL}{form}" for form in ("/", "/index.html", "/index.php?a", "#top", ";a=1")],
        5,
    ),
    "names": ([f"http://example.org/news/{n}" for n in range(5)], 3),
    "ids": ([f"http://example.org/news/{n:016x}a" for n in range(4)], 3),
    "folders": ([f"http://example.org/news/{n}/index.html" for n in range(4)], 3),
    "folders of one name": ([f"http://example.org/{n}/login" for n in range(3 * PATHS + 1)], 3 * PATHS),
}


@pytest.mark.parametrize("scene", SCENES)
def test_pages_of_many_names_or_folders_ring_it_and_copies_do_not(scene: str) -> None:
    urls, quiet = SCENES[scene]
    assert rings(3, *urls) == [False] * quiet + [True] * (len(urls) - quiet)


def test_a_page_of_very_many_queries_is_told_once_and_stays_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Such as a wall where stories are numbered so; it looks like a trap without end, so nothing is kept for it."""
    counts = Counts()
    alarm, of = Alarm(3, counts), "http://example.org/article?sid=0"
    told = [alarm.rings(f"http://example.org/article?sid={n}", of) for n in range(1, 3 * PATHS + 1)]
    assert counts == {}
    told += [alarm.rings(f"http://example.org/article?sid={n}", of) for n in range(1_000, 2_000)]
    assert not any(told)
    assert counts == {"dedup/alarms/queries": 1}
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("http://example.org/article?sid=0 is shown under 61 other queries of its path")


@pytest.mark.parametrize(
    "session", ["sid={:032x}", "sid={:08x}a", "PHPSESSID={}", "tok={:016x}a", "utm_source={}", "sid=1{:012}"]
)
def test_session_ids_are_no_queries(session: str) -> None:
    counts = Counts()
    alarm = Alarm(1, counts)
    for number in range(2 * PATHS):
        assert not alarm.rings(f"{WALL}?{session.format(number)}", WALL)
    assert counts == {}


def test_a_page_that_leads_to_the_path_of_the_kept_one_rings_it_at_once() -> None:
    counting, to = Alarm(3, Counts()), WALL + "?next=/b"
    assert counting.rings(to, WALL + "?next=/a", asked="http://example.org/b")
    assert not counting.rings(to, WALL + "?next=/a", asked="http://example.org/s/login")
    assert not counting.rings("http://example.org/new", WALL, asked="http://example.org/old")


def test_a_limit_of_zero_is_none() -> None:
    assert not any(rings(0, *(f"http://example.org/{n}" for n in range(2_000))))
