"""The chrome of a host: its table against a slow one in plain Python, and what suffices for a near-duplicate."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from dedup import Fingerprint
from dedup.fingerprint.chrome import DEPTH, Chrome, View
from dedup.fingerprint.evidence import Evidence, is_mirror, is_other_name, is_same_heading, match_counts
from dedup.fingerprint.fingerprint import Called, Own
from dedup.fingerprint.sketch import Sketcher

SLOTS = 64
SKETCHER = Sketcher(SLOTS, 2)


def page(rng: random.Random, words: int = 40) -> Fingerprint:
    """A page of few possible shingles, so that tables meet them again."""
    ids = np.array([rng.randrange(words) for _ in range(SLOTS)], np.uint16)
    filled = np.array([rng.random() < 0.9 for _ in range(SLOTS)])
    main = np.array([rng.random() < 0.7 for _ in range(SLOTS)]) & filled
    least = np.where(filled, ids.astype(np.uint64) * np.uint64(2**32 + 1), np.uint64(2**64 - 1))
    called = Called(heading=rng.randrange(5))
    return Fingerprint(0, SKETCHER.pack(least), 99, 0, called=called, own=Own(ids, filled, main, main, 200))


class Slow:
    """The table as its documentation says it, slot by slot."""

    def __init__(self) -> None:
        self.pages = 0
        self.rows: list[list[list[int]]] = [[[0, 0] for _ in range(DEPTH)] for _ in range(SLOTS + 1)]
        self.next = [0] * (SLOTS + 1)

    def add(self, page: Fingerprint, kept: bool) -> None:
        self.pages += kept
        for slot, number in shingles_of(page).items():
            self._count(slot, number)

    def _count(self, slot: int, number: int) -> None:
        row = self.rows[slot]
        for cell in row:
            if cell[0] == number and cell[1]:
                cell[1] = min(255, cell[1] + 1)
                return
        round_ = [(self.next[slot] + step) % DEPTH for step in range(DEPTH)]
        once = [place for place in round_ if row[place][1] <= 1]
        if once:
            row[once[0]] = [number, 1]
            self.next[slot] = (once[0] + 1) % DEPTH
        else:
            row[min(round_, key=lambda place: row[place][1])][1] -= 1

    def met(self, slot: int, number: int) -> int:
        return max((count for seen, count in self.rows[slot] if seen == number), default=0)

    def own(self, page: Fingerprint, spare: int) -> list[bool]:
        few = max(2.0, min(8.0, 0.05 * self.pages))
        numbers = shingles_of(page)
        return [slot in numbers and self.met(slot, numbers[slot]) - spare < few for slot in range(SLOTS)]


def shingles_of(page: Fingerprint) -> dict[int, int]:
    """The shingles of a page, by slot; the last is its heading."""
    assert page.own is not None
    found = {slot: int(page.own.ids[slot]) for slot in range(SLOTS) if page.own.filled[slot]}
    return found | ({SLOTS: page.called.heading} if page.called.heading else {})


def unmasked(mask: bytes) -> list[bool]:
    """The slots that a mask marks."""
    bits = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little").reshape(SLOTS, 2)
    assert not bits[:, 1].any()
    return bits[:, 0].astype(bool).tolist()


def assert_same(chrome: Chrome, slow: Slow, pages: Sequence[Fingerprint]) -> None:
    for one in pages:
        assert one.own is not None
        view = chrome.view(one, SKETCHER)
        assert unmasked(view.own_if_equal) == slow.own(one, 1)
        assert unmasked(view.own_if_new) == slow.own(one, 0)
        assert unmasked(view.main) == one.own.main.tolist()
        heading = shingles_of(one).get(SLOTS)
        rare = max(4.0, 0.1 * slow.pages)
        assert view.heading_tells == (heading is not None and slow.met(SLOTS, heading) - 1 < rare)


@pytest.mark.parametrize("words", [3, 15, 40, 1000])
def test_a_table_counts_as_a_dictionary_does(words: int) -> None:
    rng = random.Random(words)
    chrome, slow = Chrome(SLOTS), Slow()
    for _ in range(300):
        one, kept = page(rng, words), rng.random() < 0.8
        chrome.add(one, kept=kept)
        slow.add(one, kept)
    assert chrome.pages == slow.pages
    assert_same(chrome, slow, [page(rng, words) for _ in range(20)])


def test_a_table_is_stored_and_read_as_it_is() -> None:
    rng = random.Random(1)
    chrome, slow = Chrome(SLOTS), Slow()
    for at in range(100):
        if at == 50:
            chrome = Chrome.from_bytes(chrome.to_bytes(), SLOTS)
        one = page(rng)
        chrome.add(one)
        slow.add(one, True)
    again = Chrome.from_bytes(chrome.to_bytes(), SLOTS)
    assert again.to_bytes() == chrome.to_bytes()
    assert_same(again, slow, [page(rng) for _ in range(10)])


@pytest.mark.parametrize("octets", [b"", bytes(7), bytes(10_000)])
def test_what_is_no_table_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError, match="a table of 64 slots has"):
        Chrome.from_bytes(octets, SLOTS)


def test_merged_tables_know_what_either_has_met() -> None:
    rng = random.Random(2)
    mine, theirs = Chrome(SLOTS), Chrome(SLOTS)
    menu, other_menu, unknown = (page(random.Random(seed), 10**4) for seed in (1, 2, 3))
    for _ in range(10):
        mine.add(menu)
        theirs.add(other_menu)
        theirs.add(page(rng, 1000))
    mine.merge(theirs)
    assert mine.pages == 20
    assert not any(unmasked(mine.view(menu, SKETCHER).own_if_new))
    assert not any(unmasked(mine.view(other_menu, SKETCHER).own_if_new))
    assert unmasked(mine.view(unknown, SKETCHER).own_if_new) == shown_filled(unknown)


def test_a_table_merged_with_itself_is_the_same() -> None:
    rng = random.Random(4)
    chrome = Chrome(SLOTS)
    for _ in range(50):
        chrome.add(page(rng))
    before = chrome.to_bytes()
    chrome.merge(Chrome.from_bytes(before, SLOTS))
    assert chrome.to_bytes() == before


def shown_filled(page: Fingerprint) -> list[bool]:
    assert page.own is not None
    return page.own.filled.tolist()


def test_own_slots_are_compared_as_slot_by_slot() -> None:
    rng = random.Random(5)
    one, others = page(rng, 4), [page(rng, 4) for _ in range(10)]
    masks = [np.array([[rng.random() < 0.5 for _ in range(SLOTS)]]) for _ in range(2)]
    assert one.own is not None
    filled = one.own.filled
    if_equal, if_new = ((mask & filled) for mask in masks)
    (main,) = SKETCHER.masks(one.own.main[np.newaxis])
    view = View(SKETCHER.masks(if_equal)[0], SKETCHER.masks(if_new)[0], main, True, False)
    stored = SKETCHER.words(other.sketch for other in others)
    for other, counts in zip(others, match_counts(SKETCHER, stored, one, view).T.tolist(), strict=True):
        expected = [0] * 5
        for slot, (a, b) in enumerate(zip(values(one), values(other), strict=True)):
            equal = bool(a and a == b)
            if (if_equal if equal else if_new)[0, slot]:
                if one.own.main[slot]:
                    expected[0] += 1
                    expected[1] += bool(b)
                    expected[2] += equal
                else:
                    expected[3] += 1
                    expected[4] += not equal
        assert counts == expected


def values(page: Fingerprint) -> list[int]:
    """The two bits of each slot of a page's sketch."""
    bits = np.unpackbits(np.frombuffer(page.sketch, np.uint8), bitorder="little").reshape(SLOTS, 2)
    return [int(low) + 2 * int(high) for low, high in bits]


#: Evidence, and what it is worth if half of the own shingles have to match.
SENTENCES = {
    "Another name: never the same page, however much matches.": (
        Evidence(400, 400, 0, 200, 1000, True, True),
        False,
    ),
    "The same heading, and a counter differs.": (Evidence(20, 0, 20, 10, 1000, True, False), True),
    "The same heading, and half of its own matches.": (Evidence(400, 210, 190, 200, 1000, True, False), True),
    "The same heading, but most of its own is new.": (Evidence(400, 150, 250, 200, 1000, True, False), False),
    "The same heading, but on a short page a counter is much.": (
        Evidence(20, 0, 20, 10, 100, True, False),
        False,
    ),
    "The heading tells nothing, and half of its own is not enough.": (
        Evidence(400, 210, 190, 200, 1000, None, False),
        False,
    ),
    "The heading tells nothing, and most of its own matches.": (
        Evidence(400, 300, 100, 200, 1000, None, False),
        True,
    ),
    "The heading tells nothing, and hardly a word is new.": (
        Evidence(8, 0, 8, 4, 1000, None, False),
        True,
    ),
    "The heading tells nothing, and a sentence is new.": (
        Evidence(24, 0, 24, 12, 1000, None, False),
        False,
    ),
    "Another heading, and hardly anything is its own.": (Evidence(6, 6, 0, 3, 1000, False, False), False),
    "Another heading, and all of its own matches.": (
        Evidence(400, 390, 10, 200, 1000, False, False),
        True,
    ),
    "Another heading, and a sentence of its own is new.": (
        Evidence(400, 360, 40, 200, 1000, False, False),
        True,
    ),
    "Another heading, and a paragraph of its own is new, which may be all the page is about.": (
        Evidence(400, 345, 55, 200, 1000, False, False),
        False,
    ),
    "Another heading, and a paragraph is new, but hardly anything of it all.": (
        Evidence(1000, 940, 60, 400, 1000, False, False),
        True,
    ),
    "Another heading, and some of its own is new.": (
        Evidence(400, 300, 100, 200, 1000, False, False),
        False,
    ),
}


@pytest.mark.parametrize(("evidence", "is_enough"), SENTENCES.values(), ids=SENTENCES)
def test_what_suffices(evidence: Evidence, is_enough: bool) -> None:
    assert evidence.suffices(0.5) is is_enough


def called(heading: int = 0, names: int = 0, place: int = 0, said: int = 0) -> Fingerprint:
    return Fingerprint(0, b"", 99, 0, called=Called(heading, names, place), said=said)


TELLS, TELLS_NOTHING = (View(b"", b"", b"", tells, False) for tells in (True, False))


def test_an_equal_heading_tells_if_it_is_rare_or_the_addresses_agree() -> None:
    page = called(heading=3, names=4, place=5)
    assert is_same_heading(page, Called(3), TELLS) is True
    assert is_same_heading(page, Called(3), TELLS_NOTHING) is None
    assert is_same_heading(page, Called(3, names=4), TELLS_NOTHING) is True
    assert is_same_heading(page, Called(3, place=5), TELLS_NOTHING) is True
    assert is_same_heading(page, Called(7, names=4, place=5), TELLS) is False


def test_a_page_without_a_heading_says_nothing_by_it() -> None:
    assert is_same_heading(called(), Called(3), TELLS) is None
    assert is_same_heading(called(heading=3), Called(), TELLS) is None


def test_two_pages_have_other_names_if_each_is_called_what_the_other_does_not_say() -> None:
    bolts = called(heading=0b0001, names=0b0001, said=0b0001)
    assert is_other_name(bolts, Called(heading=0b0010, names=0b0010))
    assert not is_other_name(bolts, Called(heading=0b0011, names=0b0010))  # it says "bolts", too
    assert not is_other_name(called(heading=0b11, names=0b01, said=0b11), Called(0b10, names=0b10))
    assert not is_other_name(called(), Called())


def test_a_mirror_is_not_called_otherwise() -> None:
    assert is_mirror(called(heading=3), Called(3))
    assert is_mirror(called(), Called(3))
    assert not is_mirror(called(heading=3), Called(7))
    assert not is_mirror(called(heading=0, names=0b0001, said=0b0001), Called(heading=0, names=0b0010))
