"""The table of a host: on how many kept pages a shingle is, and what that makes of a page's own part."""

import numpy as np
import pytest

from dedup.fingerprint.chrome import COPIES, KNOWN, MARKED, MOST, Chrome
from dedup.fingerprint.evidence import Evidence, Part
from dedup.fingerprint.fingerprint import Fingerprint, Own
from dedup.fingerprint.shingles import Hashes, ascending, mix
from dedup.fingerprint.sketch import Sketcher

SKETCHER = Sketcher(512, 2)


def shingles(name: int, count: int) -> Hashes:
    """Shingles that no other name has."""
    return ascending(mix(np.arange(count, dtype=np.uint64) + np.uint64(name << 32)))


def page(*parts: Hashes) -> Fingerprint:
    main = ascending(np.concatenate(parts))
    return Fingerprint(1, SKETCHER.pack(main), 99, 0, own=Own(main))


def part(chrome: Chrome, *parts: Hashes) -> Part:
    return Part(SKETCHER, page(*parts), chrome)


def site(pages: int, menu: int = 900, own: int = 60) -> Chrome:
    """A host of which pages were kept that share a menu."""
    chrome = Chrome()
    for number in range(pages):
        chrome.add(ascending(np.concatenate((shingles(0, menu), shingles(1 + number, own)))))
    return chrome


def test_what_was_met_is_counted_and_what_was_not_is_not() -> None:
    chrome = site(6)
    assert (chrome.pages, chrome.is_known) == (6, False)
    assert set(chrome.counts(shingles(0, 900)).tolist()) == {6}
    assert np.mean(chrome.counts(shingles(3, 60)) == 1) > 0.95
    assert np.mean(chrome.counts(shingles(99, 5000)) == 0) > 0.95


def test_what_was_met_once_is_forgotten() -> None:
    chrome = site(2 * MARKED // 600, own=600)
    assert np.mean(chrome.counts(shingles(0, 900)) > MOST) == 1
    assert np.mean(chrome.counts(shingles(1, 600))) < 0.3
    assert np.mean(chrome.counts(shingles(10**6, 5000)) > 2) < 0.01  # whatever was met, what is new looks new


def test_a_page_of_any_length_is_counted_in_part() -> None:
    chrome = Chrome()
    chrome.add(shingles(1, 300_000))
    assert chrome.pages == 1
    assert chrome._marked <= 2 * 8192


def test_a_table_comes_back_from_its_bytes() -> None:
    chrome = site(20)
    again = Chrome.from_bytes(chrome.to_bytes())
    assert (again.pages, again.few, again.to_bytes()) == (20, chrome.few, chrome.to_bytes())
    for octets in (b"", chrome.to_bytes()[:-1], chrome.to_bytes() + b"x"):
        with pytest.raises(ValueError, match="a table has"):
            Chrome.from_bytes(octets)


def test_merging_takes_the_higher_count() -> None:
    one, other = site(5), site(9)
    one.merge(other)
    assert one.pages == 9
    assert set(one.counts(shingles(0, 900)).tolist()) == {9}
    merged = one.to_bytes()
    one.merge(other)
    assert one.to_bytes() == merged


# --- A page's own part --------------------------------------------------------------------------------


def stored(chrome: Chrome, *parts: Hashes) -> Hashes:
    return SKETCHER.words([part(chrome, *parts).sketch])


def test_chrome_shows_neither_sameness_nor_difference() -> None:
    chrome = site(KNOWN)
    menu, own = shingles(0, 900), shingles(50, 60)
    (other,) = part(chrome, menu, shingles(51, 60)).weigh(stored(chrome, menu, own))
    assert other.matching < 8
    (copy,) = part(chrome, menu, own).weigh(stored(chrome, own))  # in a template without the menu
    assert copy.contains(0.85)


@pytest.mark.parametrize(("new", "is_near"), [(0, True), (20, True), (60, False)])
def test_each_part_has_to_contain_the_other_but_for_a_share(new: int, is_near: bool) -> None:
    chrome = site(KNOWN)
    menu, own, more = shingles(0, 900), shingles(50, 200), shingles(51, new)
    for one, other in (((menu, own), (menu, own, more)), ((menu, own, more), (menu, own))):
        (found,) = part(chrome, *one).weigh(stored(chrome, *other))
        assert found.contains(0.85) is is_near


def test_what_became_chrome_after_a_page_was_filed_is_set_aside() -> None:
    """A section's menu was the page's own when it was filed."""
    chrome = site(KNOWN)
    section, own = shingles(40, 300), shingles(50, 200)
    before = stored(chrome, section, own)
    for number in range(30):
        chrome.add(ascending(np.concatenate((section, shingles(60 + number, 50)))))
    (copy,) = part(chrome, section, own).weigh(before)
    (other,) = part(chrome, section, shingles(51, 200)).weigh(before)
    assert copy.contains(0.85)
    assert not other.contains(0.85)


def test_half_forgotten_chrome_is_no_difference() -> None:
    """A section's words were on eight pages when a page of it was filed, and are on four by what is remembered now."""
    chrome, section, own = site(200, menu=200, own=20), shingles(10**6, 60), shingles(10**6 + 1, 100)
    for number in range(8):
        chrome.add(ascending(np.concatenate((section, shingles(2 * 10**6 + number, 10)))))
    kept = stored(chrome, shingles(0, 200), section, own)
    others = 0
    while not chrome.has_forgotten:
        others += 1
        chrome.add(shingles(3 * 10**6 + others, 400))
    copy = part(chrome, shingles(0, 200), section, own)
    assert chrome.counts(section).max() < chrome.few
    with_more = part(chrome, shingles(0, 200), section, own, shingles(4 * 10**6, 60))
    assert [page.weigh(kept)[0].contains(0.85) for page in (copy, with_more)] == [True, False]


def test_a_page_is_found_by_rare_shingles_and_never_by_chrome() -> None:
    menu, own = shingles(0, 900), shingles(50, 200)
    assert part(site(KNOWN - 1), menu, own).keys == (0, 0, 0, 0), "nobody knows yet what is rare"
    keys = part(site(KNOWN), menu, own).keys
    assert set(keys) <= set(own.tolist())
    assert keys == part(site(20), own).keys, "in another template, too"


@pytest.mark.parametrize(
    ("changes", "suffices"),
    [({}, True), ({"siblings": True}, False), ({"gone": 50.0}, False)],
)
def test_who_is_told_apart_is_no_near_duplicate(changes: dict[str, object], suffices: bool) -> None:
    evidence = Evidence(matching=100, new=10, gone=0)._replace(**changes)  # type: ignore[arg-type]
    assert evidence.suffices(0.85) is suffices


def test_folders_of_copies_are_known_by_three_pairs() -> None:
    chrome, parts = site(KNOWN), ("print", "story")
    for _ in range(9):
        chrome.note_copies(parts, "/lamp")  # one name, again and again
    assert not chrome.has_copies(parts)
    for number in range(COPIES - 1):
        chrome.note_copies(parts, f"/{number}")
    assert chrome.has_copies(parts)
    for number in range(300):
        chrome.add(shingles(1_000 + number, 900))
        chrome.note_copies(parts, f"/more {number}")
        assert chrome.has_copies(parts)
    assert not chrome.has_copies(("print", "other"))


def test_folders_of_copies_survive_long_pages() -> None:
    """Between two such pages of another pair the counts are halved three times."""
    chrome, parts = site(KNOWN), ("38", "39")
    for number in range(COPIES):
        chrome.note_copies(parts, f"/{number}")
    for number in range(3 * MARKED // 1000):
        chrome.add(shingles(1_000 + number, 1000))
    assert chrome.has_copies(parts)
    for number in range(3 * MARKED // 1000):
        chrome.add(shingles(2_000 + number, 1000))
    assert not chrome.has_copies(parts)
