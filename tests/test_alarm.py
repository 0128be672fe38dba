"""The alarm for walls: a page that absorbs too many URLs of a host."""

import pytest

from dedup.filter import Counts
from dedup.filter.alarm import Alarm

WALL = "http://example.org/login"


def test_it_rings_from_the_first_near_duplicate_beyond_the_limit_on() -> None:
    alarm = Alarm(3, Counts())
    assert [alarm.rings(f"http://example.org/{n}", WALL) for n in range(5)] == [False] * 3 + [True] * 2


def test_it_is_told_and_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    alarm = Alarm(1, counts)
    for number in range(5):
        alarm.rings(f"http://example.org/{number}", WALL)
    assert counts == {"dedup/alarms": 1}
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("Alarm: 1 near-duplicates of http://example.org/login on example.org. ")


def test_each_host_and_each_kept_page_has_its_own_count() -> None:
    alarm = Alarm(1, Counts())
    assert not alarm.rings("http://example.org/a", WALL)
    assert not alarm.rings("http://example.com/a", WALL)
    assert not alarm.rings("http://example.org/a", "http://example.org/other")
    assert alarm.rings("http://example.org/b", WALL)


def test_copies_under_session_ids_are_not_counted() -> None:
    alarm = Alarm(1, Counts())
    assert not any(alarm.rings(f"{WALL}?PHPSESSID={n:032x}", f"{WALL}?PHPSESSID={99:032x}") for n in range(9))


def test_stories_whose_number_is_called_sid_are_counted() -> None:
    alarm = Alarm(3, Counts())
    assert [alarm.rings(f"{WALL}?sid={n}", f"{WALL}?sid=99") for n in range(5)] == [False] * 3 + [True] * 2


def test_a_limit_of_zero_is_none() -> None:
    alarm = Alarm(0, Counts())
    assert not any(alarm.rings(f"http://example.org/{n}", WALL) for n in range(2_000))
