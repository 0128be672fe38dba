"""What noise is on a page: its lines, and the gaps in them that it and other pages of its kind have shown."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dedup import Detector, open_index
from dedup.filter.noise import gaps, kept
from dedup.filter.noise.answers import Changes, changes, compared
from dedup.filter.noise.gaps import MANY, Gaps
from dedup.filter.noise.kept import KeptPages, Shown
from dedup.filter.noise.known import Known
from dedup.filter.noise.left import Own, as_on, changed_of, least_of, left_of
from dedup.filter.noise.likeness import Likeness
from dedup.filter.noise.lines import BREAK, Line, lines_of
from dedup.filter.noise.names import nameless
from dedup.filter.reading import LARGE
from dedup.page.read import read
from tests.support.coroutines import driven
from tests.support.crawls import words
from tests.support.strangers import ROWS
from tests.support.waiting import LIMIT

HOST = "http://a.example"
Make = Callable[[str, int], str]  #: the markup of a page, by its name and the number of the answer


def lines(markup: str, url: str = f"{HOST}/view?id=7") -> list[Line]:
    return lines_of(markup, url)


def learned(make: Make, *names: str) -> Gaps:
    """What two answers of each page have shown."""
    known = Gaps()
    for name in names:
        known.learn(name, changes(lines(make(name, 1)), lines(make(name, 2))))
    return known


def own_of(make: Make, name: str) -> Own:
    """What two answers of one page have shown of it."""
    own = Own()
    own.learn(changes(lines(make(name, 1)), lines(make(name, 2))))
    return own


def left(markup: str, *kinds: Gaps, own: Own | None = None, name: str = "another") -> list[Line]:
    """What is left of a page, without its ``own`` noise and that of its ``kinds``."""
    page = lines(markup)
    return left_of(page, name, own or Own(), *kinds)


# --- Lines ------------------------------------------------------------------------------------------------

NAMES = some.sampled_from(["p", "div", "li", "b", "i", "td", "pre", "h2"])
WORDS = some.text("aB1.-✓é", min_size=1, max_size=3)
#: Blocks in blocks: a name, a class, and what is in it.
BLOCKS = some.recursive(
    WORDS,
    lambda inside: some.tuples(NAMES, some.sampled_from(["", "on", "off"]), some.lists(inside, max_size=3)),
    max_leaves=6,
)
Block = Any  #: a text, or a block's name and class and what is in it


def written(block: Block, at: str = "") -> str:
    if isinstance(block, str):
        return f"{block} "
    name, of, inside = block
    return f"<{name} class='{of}'>{''.join(map(written, inside))}</{name}>"


def said(block: Block) -> Block:
    """The same, in which texts that stand beside each other are one."""
    if isinstance(block, str):
        return block
    name, of, inside = block
    one = list[Block]()
    for each in map(said, inside):
        if isinstance(each, str) and one and isinstance(one[-1], str):
            each = f"{one.pop()} {each}"
        one.append(each)
    return name, of, one


@given(BLOCKS, BLOCKS)
def test_whatever_tells_two_markups_apart_tells_their_lines_apart(one: Block, other: Block) -> None:
    a, b = (written(("main", "", [block])) for block in (one, other))
    if said(one) == said(other):
        assert lines(a) == lines(b)
    elif "".join(a.split()) != "".join(b.split()):
        assert lines(a) != lines(b) or _implied(a) == _implied(b)


def _implied(markup: str) -> str:
    """Markup without ends of blocks that the next one's beginning implies."""
    return "".join(markup.replace("</li>", "").replace("</p>", "").replace("</td>", "").split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<p>a", "<!-- 3 ms --><p>a<!-- 4 -->"),
        ("<p>a  b", "<P>a\nb</P>"),
        ("<p title='x'>a", '<p  title="x" >a'),
        ("<link rel=canonical href=/1><p>a", "<link rel=canonical href=/2><p>a"),
        ("<p>&eacute;", "<p>é"),
    ],
)
def test_what_cannot_be_seen_is_left_out(one: str, other: str) -> None:
    assert lines(one) == lines(other)


def test_a_page_says_its_own_address() -> None:
    def page(number: int, to: int) -> list[Line]:
        url = f"{HOST}/view?id={number}"
        to_it = f"{HOST}/view?id={to}"
        return lines(
            f"<a href='{to_it}'>this</a><a href='/view?id={to}#top'>up</a><a href='/mail?at={to_it}'>", url
        )

    assert page(7, 7) == page(8, 8) != page(8, 9)


@pytest.mark.parametrize("path", ["/view?id={}", "/stars/{}"])
def test_an_address_that_goes_on_and_a_number_that_is_none_are_not_its_own(path: str) -> None:
    def page(number: int, says: str) -> list[Line]:
        return lines(says.format(number=number, url=HOST + path.format(number)), HOST + path.format(number))

    for says in ("<a href='{url}1'>", "<meter value={number}>", "<td colspan={number}>"):
        assert page(1, says) != page(2, says)


# --- Gaps -------------------------------------------------------------------------------------------------


def counter(name: str, answer: int) -> str:
    return f"<h1>{name}</h1><p>seen {answer * 1_017:,} times"


def dated(name: str, answer: int) -> str:
    return f"<h1>{name}</h1><p>as of 12/0{answer}/2026, 1{answer}:30 o'clock"


def beside_a_date(name: str, answer: int) -> str:
    return f"<h1>{name}</h1><p>2026-05-{10 + len(name)} {answer * 1_017:,} views"


def token(name: str, answer: int) -> str:
    return f"<h1>{name}</h1><form><input type=hidden name=csrf value={random.Random(answer + len(name)).randbytes(16).hex()}></form>"


def advert(name: str, answer: int) -> str:
    return f"<h1>{name}</h1><div>{words(('advert', answer), 12)}</div><p>the end"


def hole(name: str, answer: int) -> str:
    return f"<h1>{name}</h1>{'<div>our offer of the day</div>' * (answer % 2)}<p>the end"


def shuffled_list(name: str, answer: int) -> str:
    items = [f"<li>{words(('item', at), 4)}" for at in range(6)]
    return f"<h1>{name}</h1><ul>{''.join(random.Random(answer + len(name)).sample(items, 6))}</ul>"


def cards_with_counters(name: str, answer: int) -> str:
    items = (f"<li><h4>{words((name, at), 3)}</h4><p>seen {answer * at} times</p>" for at in range(3))
    return f"<h1>{name}</h1><ul>{''.join(items)}</ul>"


@pytest.mark.parametrize(
    "make", [counter, dated, beside_a_date, token, advert, hole, shuffled_list, cards_with_counters]
)
def test_what_several_pages_have_shown_is_no_difference_on_another(make: Make) -> None:
    known = learned(make, "one", "three", "fourteen")
    one, other = (left(make("another", answer), known) for answer in (1, 2))
    assert one == other
    assert one != left(make("quite", 1), known), "its heading is its own"
    assert make is hole or left(make("another", 1)) != left(make("another", 2)), (
        "it is none of a kind that is not known"
    )


@pytest.mark.parametrize("make", [counter, advert, hole, shuffled_list])
def test_what_one_page_has_shown_is_its_own(make: Make) -> None:
    known = learned(make, "one")
    assert left(make("another", 1), known) != left(make("another", 2), known)
    own = own_of(make, "one")
    assert left(make("one", 1), own=own) == left(make("one", 2), own=own)


def test_a_gap_forgives_only_what_it_has_shown() -> None:
    known = learned(counter, *map(str, range(2 * MANY)))
    assert left("<h1>a</h1><p>seen 4,000 times", known) == left("<h1>a</h1><p>seen 99,000 times", known)
    assert left("<h1>a</h1><p>seen many times", known) != left("<h1>a</h1><p>seen 99,000 times", known)
    assert left("<h1>a</h1><p>sold 4,000 times", known) != left("<h1>a</h1><p>sold 99,000 times", known)


def test_an_advert_that_no_page_has_shown_is_forgiven_once_many_have_others() -> None:
    names = [f"page {number}" for number in range(MANY)]
    for count, is_forgiven in ((MANY - 1, False), (MANY, True)):
        known = learned(advert, *names[:count])
        assert (left(advert("another", 8), known) == left(advert("another", 9), known)) is is_forgiven


ORDERS = [*permutations(["rope", "lamps", "oil", "tea", "tar"])]


def in_order(at: int) -> str:
    return f"<h1>a</h1><p>Only today at Fenwick's: {', '.join(ORDERS[at])}."


def reordered(name: str, answer: int) -> str:
    return in_order(11 * len(name) if answer == 1 else -11 * len(name) - 1)


def test_words_that_have_moved_are_forgiven_in_any_order_and_other_words_are_not() -> None:
    known = learned(reordered, "one", "four")
    assert len({tuple(left(in_order(at), known)) for at in range(120)}) == 1
    for name in ("three", "eleven", "thirteen"):
        known.learn(name, changes(lines(reordered(name, 1)), lines(reordered(name, 2))))
    assert "mead" in str(left(in_order(0).replace("tea", "mead"), known))


def test_words_that_a_page_has_moved_are_compared_in_order() -> None:
    own = own_of(reordered, "one")
    orders = [left(in_order(at), own=own) for at in (33, 86)]
    assert orders[0] == orders[1]
    others = own_of(lambda name, answer: reordered(name, answer).replace("tea", "mead"), "one")
    mead = in_order(33).replace("tea", "mead")
    assert left(mead, own=others) != orders[0]
    others.learn(
        changes(lines(mead), lines(mead.replace("oil", "tin")))
    )  # what changes as well hides none of them
    assert "mead" in str(left(mead, own=others))


@pytest.mark.parametrize(
    ("between", "parts", "others"),
    [
        (", ", ("rope 5", "oil 7", "tea 9"), ("rope 7", "oil 5", "tea 9")),
        (", ", ("rope 1,50", "oil 1,75"), ("rope 1,75", "oil 1,50")),
        ("; ", ("Ann: rope, oil", "Bob: rope, tar"), ("Ann: rope, tar", "Bob: rope, oil")),
        (", ", ("<a href=/u>Ann</a>", "<a href=/v>Bob</a>"), ("<a href=/u>Bob</a>", "<a href=/v>Ann</a>")),
        (" | ", ("<i class=a id=u>Ann</i>", "<i class=b id=v>Bob</i>"), ("<i class=b id=u>Ann</i>", "<i class=a id=v>Bob</i>")),
        (", ", ("<i title='a, x'>Ann</i>", "<i title='b, x'>Bob</i>"), ("<i title='b, x'>Ann</i>", "<i title='a, x'>Bob</i>")),
    ],
)  # fmt: skip
def test_what_belongs_together_is_compared_together(
    between: str, parts: tuple[str, ...], others: tuple[str, ...]
) -> None:
    def page(parts: tuple[str, ...], more: str = "") -> str:
        return f"<h1>a</h1><p>{more}Stock: {between.join(parts)}."

    def answer(name: str, number: int) -> str:
        return page(parts[:: 2 * number - 3])

    own, kind = own_of(answer, "one"), learned(answer, "one", "two")
    orders = parts, parts[::-1], others
    for same, turned, crossed in (
        [left(page(each), own=own) for each in orders],
        [left(page(each), kind) for each in orders],
    ):
        assert same == turned != crossed
    own.learn(changes(lines(page(parts)), lines(page(parts, "Our "))))
    assert left(page(parts), own=own) != left(page(others), own=own)


def test_what_a_page_has_shown_itself_hides_no_gap_of_its_kind() -> None:
    known = learned(reordered, "one", "four")
    for at in range(120):
        own = Own()
        own.learn(changes(lines(in_order(7)), lines(in_order(at))))
        assert left(in_order(7), known, own=own) == left(in_order(99), known)


TOKENS = some.lists(
    some.sampled_from(["1", "23", "234", "567", "07", *",.:/-", "a", "lamp", BREAK, "<p"]), max_size=12
)


@given(TOKENS, TOKENS)
def test_two_answers_are_equal_but_for_what_differs(a: list[str], b: list[str]) -> None:
    one, other = (Line("p", tuple(tokens), "p0") for tokens in (a, b))
    pair, own = compared(one, other), Own()
    own.learn(Changes([pair], [], [], set()))
    assert own.left([one]) == own.left([other]) or pair.has_moved


def test_a_line_that_stays_on_each_page_is_no_gap_where_others_come() -> None:
    """Of two notes in one place, one page's answers change both, and what others show there is theirs."""

    def notes(name: str, answer: int) -> str:
        stays = "".join(f"<li>{words((name, at), 6)}" for at in range(4))
        return f"<h1>{name}</h1><ul>{stays}<li>{words(('new', answer), 6)}</ul>"

    known = learned(notes, *(f"page {number}" for number in range(MANY)))
    assert left(notes("one", 1), known) == left(notes("one", 2), known)
    assert left(notes("one", 1), known) != left(
        notes("one", 1).replace(words(("one", 2), 6), "other words"), known
    )

    mine = lines(notes("one", 1))
    assert len(least_of(mine, known)) == len(mine) - 1
    assert len(least_of(mine, known, some=True)) == 2


def test_a_line_that_a_page_has_not_shown_is_none_of_its_own_gaps() -> None:
    own = own_of(advert, "one")
    assert (
        left(advert("one", 1), own=own) == left(advert("one", 2), own=own) != left(advert("one", 9), own=own)
    )


def test_siblings_that_change_their_order_and_what_they_say_are_one_group() -> None:
    """Which of them stands where in the first answers says nothing of the next."""

    def adverts(name: str, answer: int) -> str:
        three = [
            f"Seen {answer} times by our guests",
            "Boats to the island, today",
            f"Lamp number {answer} is lit",
        ]
        return f"<h1>{name}</h1><aside><p>{'<p>'.join(three[answer % 3 :] + three[: answer % 3])}</aside>"

    known = learned(adverts, "one", "two")
    assert left(adverts("new", 3), known) == left(adverts("new", 4), known) == left(adverts("new", 5), known)
    assert left(adverts("new", 3), known) != left(adverts("other", 3), known)
    assert left("<main><p>now<p>later</main>", known) != left("<main><p>later<p>now</main>", known)


def test_of_lines_that_are_alike_nobody_can_tell_which_has_become_which() -> None:
    def seats(name: str, answer: int) -> str:
        taken = ("window", "aisle", "front", "back")[answer:]
        return "".join(f"<li>this seat at the {where} is free today" for where in taken[:2])

    known = Gaps()
    known.learn("one", changes(lines(seats("one", 0)), lines(seats("one", 2))))
    assert not any(known.within.values())
    assert known.coming


def cards(*cards: tuple[str, ...]) -> list[Line]:
    """A list of cards, each of some blocks."""
    blocks = ("h4", "p", "div")
    items = (
        "".join(f"<{block}>{said}</{block}>" for block, said in zip(blocks, card, strict=False))
        for card in cards
    )
    return lines(f"<ul><li>{'<li>'.join(items)}</ul>")


def test_a_card_comes_and_goes_as_a_whole() -> None:
    lamp, rope, chair = (
        ("Brass lamp", "12 EUR", "Buy"),
        ("Tarred rope", "7 EUR", "Buy"),
        ("Oak chair", "9 EUR", "Buy"),
    )
    found = changes(cards(lamp, rope), cards(rope, chair))
    assert [line.tokens[3:5] for line in found.alone] == [("Brass", "lamp"), ("Oak", "chair")]
    assert not found.pairs


@pytest.mark.parametrize(
    ("before", "after", "is_one"),
    [
        (("Brass lamp", "12 EUR", "seen 7 times"), ("Brass lamp", "12 EUR", "seen 8 times"), True),
        (("Brass lamp", "posted just now"), ("Brass lamp", "posted yesterday"), True),
        (("Lamp", "a word of the day"), ("Lamp", "quite another saying"), False),
        (("Brass lamp", "in red"), ("Oak chair", "in red"), False),
    ],
)  # fmt: skip
def test_a_card_is_the_same_if_it_says_mostly_the_same_and_something_alone(
    before: tuple[str, ...], after: tuple[str, ...], is_one: bool
) -> None:
    other = ("Tarred rope", "7 EUR", "seen 3 times")
    found = changes(cards(before, other), cards(after, other))
    assert (len(found.alone), len(found.pairs)) == ((0, 1) if is_one else (2, 0))


@pytest.mark.parametrize("form", ["table", "terms", "items", "cards", "headings"])
@pytest.mark.parametrize("said", [str, lambda value: words(value, 1)])
def test_what_is_live_in_a_row_is_known_by_its_label(form: str, said: Callable[[int], str]) -> None:
    rows, row = ROWS[form]

    def facts(name: str, answer: int, size: int = 7) -> str:
        found = {"seen": said(10 + answer), "size": said(size), "free": said(50 + 2 * answer)}
        return f"<h1>{name}</h1>{rows.format(''.join(row.format(*each) for each in found.items()))}"

    known = learned(facts, "one", "three", "fourteen", "another")
    assert left(facts("a", 1), known) == left(facts("a", 2), known) != left(facts("a", 1, size=8), known)


def test_a_number_beside_a_gap_may_change() -> None:
    def page(name: str, answer: int, day: int = 1) -> str:
        return f"<h1>{name}</h1><p>day {day} visits {answer} on 3 of our pages"

    known = learned(page, "one", "two")
    for day in (1, 30):
        assert left(page("a", 7, day), known) == left(page("a", 8, day), known)
    assert left(page("a", 7, 1), known) != left(page("a", 7, 2), known)


def test_an_entry_that_stayed_by_chance_and_came_elsewhere_does_not_stay() -> None:
    def page(*drawn: str) -> str:
        return f"<h1>Lamp</h1><ul>{''.join(f'<li>{entry}' for entry in drawn)}</ul>"

    def left_of_new(*stay: str) -> list[Line]:
        known = Gaps()
        for at in range(MANY):
            one, other = (page(words((at, answer), 3), stay[at]) for answer in (1, 2))
            known.learn(f"page {at}", changes(lines(one), lines(other)))
        known.learn("more", changes(lines(page("by chance", "one")), lines(page("other", "two"))))
        return left_of(lines(page("new")), "another", Own(), known)

    assert left_of_new(*["by chance"] * MANY) == lines(page())
    assert left_of_new(*["by chance"] * (MANY - 1), "own") == lines(page("new"))


def test_gaps_do_not_depend_on_the_order_of_answers() -> None:
    one, other = Gaps(), Gaps()
    for name in ("one", "two"):
        one.learn(name, changes(lines(advert(name, 1)), lines(advert(name, 2))))
        other.learn(name, changes(lines(advert(name, 2)), lines(advert(name, 1))))
    assert left(advert("another", 1), one) == left(advert("another", 1), other)


# --- Names in a row ---------------------------------------------------------------------------------------


def month(number: int, *, at: str = "/2026/{}", more: str = "") -> list[Line]:
    near = "".join(f"<a href='{at.format(number + step)}'>go</a>" for step in (-1, 1))
    return nameless(f"<h1>Month {number} of 2026</h1>{near}{more.format(number)}", HOST + at.format(number))


def test_pages_in_a_row_are_equal_but_for_their_names() -> None:
    assert month(5) == month(7) != []
    assert month(5, more="<p>a concert on the 9th") != month(7)
    assert nameless("<h1>Month 5</h1>", f"{HOST}/2026/5") == [], "it leads to none beside it"


def test_where_a_link_leads_is_no_name() -> None:
    days = "<a href='/2026/{0}/01/'>1</a>"
    assert month(5, more=days) != month(7, more=days)


# --- Bounds -----------------------------------------------------------------------------------------------


def some_words(seed: object, count: int, odd: int = 0) -> str:
    """Words, of which one in so many is another with each seed."""
    chance = random.Random(str(seed))
    return " ".join(f"w{at}" if not odd or at % odd else f"z{chance.getrandbits(60)}" for at in range(count))


def lines_alike(seed: object, count: int) -> str:
    return "".join(f"<p>{some_words((seed, at), 500, 3)}" for at in range(count))


#: Two answers of pages that somebody made to be slow.
HOSTILE: dict[str, Callable[[str], str]] = {
    "nested": lambda seed: "<div>" * 40_000 + seed,
    "in deep blocks": lambda seed: "<div>" * 63 + f"<p>{seed}" * 40_000,
    "in long names": lambda seed: f"<div class={'c' * 2_000}>" * 63 + f"<p>{seed}" * 8_000,
    "in a long tag": lambda seed: f"<q{'b' * 100_000}>" + f"<p>{seed}" * 8_000,
    "quotes": lambda seed: "<p a=\"x><p b='y>" * 40_000 + seed,
    "programs": lambda seed: "<script>" + "</script " * 70_000 + seed,
    "one line": lambda seed: f"<p>{'a ' * 100_000}{seed}",
    "one line of words": lambda seed: f"<p>{some_words(seed, 100_000, 3)}",
    "a line with many gaps": lambda seed: f"<p>{some_words(seed, 2_000, 7)}",
    "lines alike": lambda seed: lines_alike(seed, 250),
    "paths": lambda seed: "".join(f"<p class=c{at:b}>{some_words((seed, at), 500, 3)}" for at in range(250)),
    "a gap all over a line": lambda seed: "<p>" + f"see {len(seed) + ord(seed[0])} now " * 9_000,
    "a list in other order": lambda seed: f"<p>{', '.join(random.Random(seed).sample([f'w{at}' for at in range(9_000)], 9_000))}",
    "many lines": lambda seed: "".join(f"<p>{seed} {at}" for at in range(70_000)),
    "other order": lambda seed: "".join(random.Random(seed).sample([f"<p>w{at}" for at in range(9_000)], 9_000)),
    "cards": lambda seed: "".join(f"<li><h4>{some_words((seed, at), 9, 3)}</h4><p>{at}</p></li>" for at in range(9_000)),
    "cards of many kinds": lambda seed: "".join(f"<i-{at} class=c>{seed} {at}<p></i-{at}><i-{at} class=c>{at}<p></i-{at}>" for at in range(9_000)),
    "a card of many blocks": lambda seed: "".join(f"<li>{''.join(f'<b{at}>{name} {at}</b{at}>' for at in range(20_000))}</li>" for name in (seed, "two")),
    "wide": lambda seed: f"<p>a a a {some_words(seed, 9_000, 1)} b b b{' a' * 90_000}",
    "alike around": lambda seed: "<p>" + " ".join(f"a a x{at} a {seed}{at} a y{at} a a" for at in range(250)) + " a" * 90_000,
}  # fmt: skip
#: Seconds of the processor for one page: many times what was measured.
SECONDS = 12


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_page_takes_long(kind: str) -> None:
    answers = [HOSTILE[kind](seed) for seed in ("one", "other")]
    began = time.process_time()
    a, b = map(lines, answers)
    known, own = Gaps(), Own()
    for name, two in (("first", (a, b)), ("second", (b, a))):
        found = changes(*two)
        known.learn(name, found)
        own.learn(found)
    for page in (a, b):
        left_of(page, "third", own, known)
        least_of(page, known)
    assert time.process_time() - began < SECONDS
    assert sum(len(line.path) + len(line.place) for line in a) < 5_000 * len(a)


def test_what_a_page_shows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "MAX_KNOWN", 9)
    known = Gaps()
    for seed in map(str, range(30)):
        for make in partial(lines_alike, count=4), partial(advert, "a"):
            two = (lines(make(name)[:4_000]) for name in (seed, f"{seed}x"))  # type: ignore[arg-type]
            known.learn(seed, changes(*two))
    assert len(known.within) <= 9
    assert all(len(each) <= 9 for each in known.within.values())
    assert len(known.coming) <= 9
    assert all(len(shown.values) <= 9 for shown in known.coming.values())


def test_a_line_that_stays_in_its_place_has_not_come_though_others_say_the_same() -> None:
    first, second = ("<p>sold out<p>in stock<p>new", "<p>sold out<p>sold out<p>new")
    found = changes(lines(first), lines(second))
    assert {line.place for line in found.alone} | {pair.line.place for pair in found.pairs} == {"p1"}


@pytest.mark.parametrize("name", ["7", "7x", "1-" * 30 + "x", "1-" * 900 + "x", "x7"])
def test_looking_for_pages_beside_takes_time_linear_in_a_page(name: str) -> None:
    began = time.process_time()
    for markup in ("1" * 1_000_000, "1-" * 500_000, "x" * 1_000_000):
        nameless(f"<p>{markup}", f"{HOST}/{name}")
    assert time.process_time() - began < SECONDS


def test_a_name_that_many_pages_have_is_lengthened() -> None:
    pages = KeptPages()
    pages.name("host", "http://view/")  # which has no folder
    for number in range(2 * MANY):
        pages.name(f"{number}", f"{HOST}/lamp-{number}/view")
    for number in range(2 * MANY):
        print_version = shown(99, 1)
        print_version.url = f"http://b.example/print/lamp-{number}/view"
        assert pages.address_like(shown(number, 1), print_version.url) == f"{HOST}/lamp-{number}/view"


def shown(number: int, size: int) -> Shown:
    url = f"{HOST}/{number}"
    return Shown(str(number), url, url, number, number, 0, f"<p>{number}{'<p>a' * size}")


def test_what_is_held_of_kept_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "PAGES", 50)
    monkeypatch.setattr(kept, "MAX_HELD", 4_000)
    monkeypatch.setattr(kept, "MAX_READ", 2_000)
    pages, all_of_them = KeptPages(), [shown(number, 200) for number in range(60)]
    for page in all_of_them:
        pages.add(page)
        assert pages.read(page)
    assert sum(len(page.markup) for page in all_of_them) <= 4_000
    all_of_them[-1].last = "<p>a" * 600  # it was fetched again
    pages.add(all_of_them[-1])
    assert sum(page.size for page in all_of_them) <= 4_000
    assert sum(len(page.markup) for page in all_of_them if page.lines) <= 2_000
    assert [page.page_id for page in all_of_them if pages.get(page.page_id)] == [*map(str, range(10, 60))]
    assert pages.read(all_of_them[-1])


@driven
async def test_an_answer_without_its_name_is_no_answer_without_content() -> None:
    html = "<h1>Lamp</h1><p>Made of brass<p>Seen {} times <a href=/lamp/{}>more</a>"
    index, url = open_index("memory:", Detector()), f"{HOST}/lamp/7"
    page = Shown("lamp", url, url, 0, 0, 0, html.format(1, 8))  # leads to the page beside it
    assert page.read_nameless()
    await Known(index, KeptPages(), Likeness(index)).learn(page, url, read(html.format(2, 30), url))
    assert page.own
    assert [line.tokens for line in page.own.left(page.read_nameless())][:2] == [
        ("<h1", "Lamp"),
        ("<p", "Made", "of", "brass"),
    ]


def test_pages_agree_that_were_seen_in_one_minute() -> None:
    def answer(minute: int, session: str, more: str = "") -> str:
        return f"<h1>Lamp</h1><script>at={minute};session='{session}'</script><p>{minute}{more}"

    its, own = Own(), Own()
    its.learn(changes(lines(answer(1, "a1b2")), lines(last := answer(9, "c3d4"))))
    own.learn(changes(lines(answer(9, "e5f6")), lines(answer(9, "a7b8"))))

    def as_seen(markup: str) -> list[Line]:
        return as_on(lines(markup), own, lines(last), lambda line: its.left([line]))

    assert as_seen(answer(9, "e5f6")) == its.left(lines(last))
    assert as_seen(answer(8, "e5f6")) != its.left(lines(last))
    assert as_seen(answer(9, "e5f6", " brass")) != its.left(lines(last))


@driven
async def test_answers_of_large_pages_are_compared_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = threading.Event()

    def compare(a: list[Line], b: list[Line]) -> Changes:
        assert runs.wait(LIMIT), "the event loop waits for this"
        return changes(a, b)

    monkeypatch.setattr("dedup.filter.noise.known.changes", compare)
    html = f"<p>{words('large', LARGE // 4)}<p>Seen {{}} times"
    index, pages, url = open_index("memory:", Detector()), KeptPages(), f"{HOST}/large"
    page = Shown("large", url, url, 0, 0, 0, html.format(1))
    learning = asyncio.create_task(
        Known(index, pages, Likeness(index)).learn(page, url, read(html.format(2), url))
    )
    await asyncio.sleep(0)
    runs.set()
    assert await learning
    assert page.own


def test_a_place_has_changed_if_a_part_of_it_has() -> None:
    def page(name: str, time: str) -> str:
        return f"<h1>{name}</h1><p>Next at {time} o'clock"

    def often(name: str, answer: int) -> str:
        return page(name, "7" if answer == 1 else "8 past 5")

    known = learned(often, "one", "two", "three")
    own = own_of(lambda name, answer: page(name, f"4 past {answer}"), "new")
    there, other = (lines(page("new", time)) for time in ("4 past 1", "9"))
    assert changed_of(there, "new", own) != left_of(other, "new", Own(), known)
    assert changed_of(there, "new", own, known) == left_of(other, "new", Own(), known)
    assert changed_of(there, "new", Own(), known) == there
