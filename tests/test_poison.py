"""What one page shows, or what hostile pages show, is no law of their kind: other pages are kept."""

import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest

from tests.support import slow
from tests.support.coroutines import driven
from tests.support.living import Answering, crawl
from tests.support.pages.everyday import text

HOST = "http://pins.example.org"
NOTES, HONEST = 60, 40


def pinned(number: int, said: Callable[[random.Random], str]) -> Answering:
    """A note on a board."""
    frame = "<ul><li><a href=/>All notes</a><li><a href=/clerk>The clerk</a></ul><h1>Pinned</h1><p>{}</p><p>Tear off a strip to answer</p>"

    def html(chance: random.Random) -> str:
        return f"<title>Our board</title>{frame.format(said(chance))}<p>{text(12, 'village')}</p>"

    return Answering(f"{HOST}/pins.php?note={number}", f"note {number}", html)


def steady(seed: object, words: int) -> Callable[[random.Random], str]:
    return lambda chance: text(words, seed)


def other_each_time(words: int) -> Callable[[random.Random], str]:
    return lambda chance: text(words, chance.random())


@pytest.mark.parametrize("place", [0, slow(7), 8, slow(NOTES - 1)])
@driven
async def test_a_note_by_chance_costs_no_other_note(place: int) -> None:
    notes = [pinned(number, steady(("note", number), 25 + number % 35)) for number in range(NOTES)]
    notes[place] = pinned(place, other_each_time(60))
    assert (await crawl(notes)).lost() == set()


def entry(number: int, heading: str, said: Callable[[random.Random], str]) -> Answering:
    """What somebody has written into a book of guests."""

    def html(chance: random.Random) -> str:
        head = f"<title>{heading}</title><nav>{text(60, 'menu')}</nav><h2>{heading}</h2><p>Written by a guest</p>"
        return f"{head}<div class=entry>{said(chance)}</div><p>Answer this guest</p><footer>{text(60, 'foot')}</footer>"

    return Answering(f"{HOST}/guests?entry={number}", f"entry {number}", html)


def in_order(hostile: Sequence[Answering], honest: Sequence[Answering], where: str) -> list[Answering]:
    if where == "mixed":
        return random.Random(11).sample([*hostile, *honest], len(hostile) + len(honest))
    at = {"first": 0, "behind eight": 8, "last": len(honest)}[where]
    return [*honest[:at], *hostile, *honest[at:]]


#: Where hostile pages are met, how many, of how many words, and whether each has a heading of its own.
CASES = product(["first", "behind eight", "mixed", "last"], [1, 8, 9, 12, 30], [30, 200], [False, True])


@pytest.mark.parametrize(
    ("where", "count", "words", "own_heading"),
    [slow(*case) if number % 11 else case for number, case in enumerate(CASES)],
)
@driven
async def test_hostile_pages_cost_no_others(where: str, count: int, words: int, own_heading: bool) -> None:
    def heading(number: int) -> str:
        return text(3, ("heading", number)) if own_heading else "Book of guests"

    hostile = [
        entry(1_000 + number, heading(1_000 + number), other_each_time(words)) for number in range(count)
    ]
    honest = [entry(number, heading(number), steady(("entry", number), words)) for number in range(HONEST)]
    lost = (await crawl(in_order(hostile, honest, where))).lost()
    assert lost & {page.key for page in honest} == set()
