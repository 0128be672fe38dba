"""Noise is measured: a kept page is fetched twice more, and only what differs between its own versions is forgiven."""

import asyncio
import random
import threading
from calendar import month_name
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from scrapy.http.request import NO_CALLBACK

from dedup.droplog.log import DropLog
from dedup.filter import Counts, Crawl, Filter, Visit
from dedup.filter.noise.kept import KeptPages, Shown
from dedup.fingerprint.detector import Detector
from dedup.index import open_index
from dedup.page.html import Page
from dedup.page.read import read
from dedup.scrapy.requests.manner import Manner, asking, manner_of
from dedup.scrapy.requests.visits import OWN
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.counting import grows
from tests.support.crawls import ADDON, words
from tests.support.foreign import gather, serving
from tests.support.foreign.site import Asked
from tests.support.foreign.site import Site as Served
from tests.support.pages.everyday import KINDS
from tests.support.pages.everyday import text as text_of
from tests.support.pages.unseen import UNSEEN
from tests.support.waiting import LIMIT

#: Entries of `benchmarks` whose end may be met in front of an advert.
REGISTERS = [
    "flats of a house", "cars of a model", "concerts of a tour", "matches of two teams", "rooms of a hotel",
    "trends of shares",
]  # fmt: skip
END = f"<p>{text_of(70, 'end')}"
MENU = " ".join(f"<li><a href=/menu/{n}>menu item {n} of the site</a>" for n in range(36))


def entry(size: int) -> Callable[[int], str]:
    """Makes contents of so many words."""
    return lambda number: words(f"content {number}", size)


class Site(Crawl):
    """Pages under /view?id=N, some of which are copies of others; each is served with another counter or advert."""

    fetches = True
    at_once = 1  #: pages that are judged at a time
    shuffle = True

    def __init__(
        self,
        noise: Callable[[int], str] = str,
        content: Callable[[int], str] | None = None,
        copies: int = 2,
        served: int = 0,
    ) -> None:
        self.noise, self.copies, self.served = noise, copies, served
        self.content = content or entry(120)
        self.asked = Counter[str]()
        self.wall: str | None = None
        self.order: list[int] = []  # in which pages are met, by their numbers

    def url(self, number: int) -> str:
        return f"http://example.org/view?id={number}"

    def html(self, number: int) -> str:
        """An answer: what the page shows, at another time."""
        self.served += 1
        return self.shown(number, random.Random(self.served))

    def shown(self, number: int, chance: random.Random) -> str:
        text = self.content(number // self.copies)
        return f"<title>Register entry</title>{MENU}<p>{text}<p>Visitors {self.noise(self.served)} so far"

    def fetch_again(self, origin: int, *, judged: bool = True) -> None:
        self.order.append(origin)

    async def fetch(self, url: str) -> Page | None:
        self.asked[url] += 1
        return read(self.wall or self.html(self.number(url)), url)

    def number(self, url: str) -> int:
        return int(url.partition("=")[2])


async def crawl(site: Site, pages: int, **settings: object) -> tuple[list[str], Counts]:
    """What becomes of pages, mostly in a shuffled order, and those behind them that are fetched again, and the stats."""
    counts, found = Counts(), [""] * pages
    site.order = random.Random(1).sample(range(pages), pages) if site.shuffle else [*range(pages)]
    filter = Filter(open_index("memory:", Detector()), DropLog(""), stats=counts, crawl=site, **settings)

    async def judge(numbers: Iterator[int]) -> None:
        for number in numbers:
            url = site.url(number)
            visit = Visit(url, url, partial(read, site.html(number), url), origin=number)
            found[number] = (await filter.judge(visit)).action
            if found[number] == "keep":
                await filter.handed_over(url)

    numbers = iter(site.order)
    await asyncio.gather(*(judge(numbers) for _ in range(site.at_once)))
    await filter.close()
    return found, counts


def contents_of(site: Site, found: list[str]) -> int:
    return len({number // site.copies for number, action in enumerate(found) if action == "keep"})


NOISES = {
    "a counter": str,
    "an advert": lambda served: words(f"advert {served}", served * 7 % 20),
    "a date": lambda served: f"{served % 28} March, {served % 24}:{served % 60}",
    "none": lambda served: "",
}


# --- Sites with copies --------------------------------------------------------------------------------


class Adverts(Site):
    """Right behind its words, each answer has another advert in a block, and then a counter."""

    def shown(self, number: int, chance: random.Random) -> str:
        return (
            f"<title>A page</title><ul>{MENU}</ul><div><h1>A page</h1><p>{self.content(number // self.copies)}</div>"
            f"{self.advert(chance)}<div>Visitors: {self.noise(self.served)}, online {self.served % 7}</div>{END}"
        )

    def advert(self, chance: random.Random) -> str:
        return f"<div>{text_of(25, chance.random())}</div>"


class Boxes(Adverts):
    """An advert has a heading, a text and a link, each in a block."""

    def advert(self, chance: random.Random) -> str:
        number = chance.random()
        return f"<div><h4>{text_of(3, number)}</h4><p>{text_of(20, number)}</p><ul><li><a href=/go/{number}>{text_of(2, number)}</a></ul></div>"


class Lists(Boxes):
    """Each list has links to all copies of some pages, and eight of these are met at a time.

    What five copies of a page have was chrome once they were kept, and no answer was known any more for that page.
    """

    at_once, shuffle = 8, False

    async def fetch(self, url: str) -> Page | None:
        for _ in range(50):  # in the time of an answer others are judged
            await asyncio.sleep(0)
        return await super().fetch(url)


def in_another_order(titles: list[str], seed: object) -> str:
    """Returns titles as the lines of a list, in an order of their own."""
    return "".join(f"<li>{title}" for title in random.Random(str(seed)).sample(titles, len(titles)))


class Related(Site):
    """Each answer has a list in another order, of five pages that are like this one, or of five of the site."""

    is_own = True

    def shown(self, number: int, chance: random.Random) -> str:
        content = number // self.copies
        titles = [text_of(5, ("title", at, content * self.is_own)) for at in range(5)]
        lines = in_another_order(titles, self.served)
        return f"<ul>{MENU}</ul><p>{self.content(content)}<h2>Read also</h2><ul>{lines}</ul>{END}"


class RelatedToAll(Related):
    is_own = False


class Boards(Site):
    """Three adverts in another order in each answer, each of which says something else each time."""

    def shown(self, number: int, chance: random.Random) -> str:
        adverts = [
            f"<p>{text_of(12, ('advert', at))} {chance.randrange(10**6)} {text_of(3, at)}</p>"
            for at in range(3)
        ]
        lines = "".join(chance.sample(adverts, 3))
        return f"<ul>{MENU}</ul><p>{self.content(number // self.copies)}</p><div>{lines}</div>{END}"


class Twins(Site):
    """The copies are on another host, whose name doesn't say that it is a mirror."""

    def url(self, number: int) -> str:
        return f"http://host{number % self.copies}.example/page/{number // self.copies}"

    def number(self, url: str) -> int:
        return int(url.rpartition("/")[2]) * self.copies + int(url[11])


#: A site, its noise, words and copies of a content; how many pages are met, how many of them are dropped at least, and
#: for how many requests at most.
WITH_COPIES: list[Any] = [
    (Site, "an advert", 120, 2, 60, 25, 24),
    slow(Site, "a counter", 120, 2, 120, 50, 24),
    slow(Site, "a date", 120, 2, 120, 50, 24),
    (Adverts, "a counter", 60, 2, 60, 23, 24),
    (Boxes, "a counter", 60, 2, 60, 23, 24),
    (Lists, "a counter", 90, 5, 100, 55, 40),  # 49 of 240 were when it was written
    slow(Lists, "a counter", 90, 5, 300, 200, 101),
    (Related, "a counter", 150, 4, 80, 55, 24),  # 3 of 120
    slow(RelatedToAll, "a counter", 150, 4, 160, 110, 24),
    (Boards, "a counter", 150, 4, 80, 10, 24),  # none
    slow(Boards, "a counter", 150, 4, 160, 30, 24),
    (Twins, "a date", 120, 2, 50, 15, 35),
    slow(Twins, "a counter", 120, 2, 100, 30, 51),
    slow(Twins, "an advert", 120, 2, 100, 30, 51),
]


@pytest.mark.parametrize(
    ("kind", "noise", "size", "copies", "pages", "least", "most"),
    WITH_COPIES,
    ids=lambda it: getattr(it, "__name__", None),
)
@driven
async def test_copies_that_differ_in_noise_are_dropped_and_no_content_is(
    kind: type[Site], noise: str, size: int, copies: int, pages: int, least: int, most: int
) -> None:
    site = kind(NOISES[noise], entry(size), copies)
    found, counts = await crawl(site, pages)
    assert contents_of(site, found) == pages // copies
    assert found.count("drop") >= least
    assert counts["dedup/probes"] <= most


# --- Sites without copies -------------------------------------------------------------------------------


class Sometimes(Site):
    """A short paragraph is all that a page has of its own; in front of it, or behind it, stand adverts that may be missing.

    It was taken for an advert where it was first in its box, or changed with it: up to 50 of 60 pages were lost.
    """

    many: tuple[int, ...] = (0, 3)
    own = 8
    is_first = False

    def advert(self, at: int, chance: random.Random) -> str:
        return f"{text_of(6, ('advert', at))} {text_of(3, at)}"

    def seen(self, chance: random.Random) -> str:
        return ""

    def shown(self, number: int, chance: random.Random) -> str:
        adverts = [f"<p>{self.advert(at, chance)}</p>" for at in range(chance.choice(self.many))]
        chance.shuffle(adverts)
        name = "".join("abcdefghij"[int(digit)] for digit in str(number))
        own = f"<p>{text_of(self.own - 1, ('own', number))} q{name} {self.seen(chance)}</p>"
        box = "".join([own, *adverts] if self.is_first else [*adverts, own])
        return f"<ul>{MENU}</ul><p>{text_of(60, 'shared')}</p><div>{box}</div>{END}"


class Counting(Sometimes):
    """The paragraph has a counter, too; and there is one advert of twelve, or none."""

    many, own, is_first = (0, 1), 3, True

    def advert(self, at: int, chance: random.Random) -> str:
        return text_of(12, ("advert", chance.randrange(12)))

    def seen(self, chance: random.Random) -> str:
        return f"seen {chance.randrange(10**6)} times"


class CountingBehind(Counting):
    own, is_first = 2, False


#: No two of which are the same.
CHOICES = random.Random("choices").sample([*combinations(range(12), 6)], 60)


class Chosen(Related):
    """A list in another order each time is all that a page has of its own: six of twelve titles, or titles of its own."""

    def shown(self, number: int, chance: random.Random) -> str:
        titles = [text_of(20, ("title", at, number * self.is_own)) for at in CHOICES[number]]
        return f"<ul>{MENU}</ul><h2>Our choice</h2><ul>{in_another_order(titles, self.served)}</ul>{END}"


class ChosenOfAll(Chosen):
    is_own = False


class Rankings(Site):
    """Where every second page has a list in another order each time, the others have it in the order that is their content."""

    def shown(self, number: int, chance: random.Random) -> str:
        titles = [text_of(6, ("title", at)) for at in range(6)]
        lines = in_another_order(titles, number if number % 2 else f"served {self.served}")
        about = "the ranking" if number % 2 else self.content(number)
        return f"<ul>{MENU}</ul><p>{about} of the week</p><h2>The best</h2><ul>{lines}</ul>{END}"


class Without(Adverts):
    """Each second page has no advert, and its last paragraph stands where others have that; nothing else tells it apart."""

    def advert(self, chance: random.Random) -> str:
        return super().advert(chance) if self.served % 2 else ""


class Register(Site):
    """Entries that end where an advert of another 25 words begins, many of them common, and a counter behind it.

    Where words in front of the advert were met in the entry, too, all between them had been taken for the advert.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(
            content=lambda number: (KINDS | UNSEEN)[kind](number, random.Random(f"{kind} {number}")).body,
            copies=1,
        )

    def shown(self, number: int, chance: random.Random) -> str:
        advert, counter = text_of(25, ("advert", chance.randrange(12))), chance.randrange(10**6)
        time, stars = f"12:{chance.randrange(60)} o'clock", "★" * chance.randrange(6)
        return f"<ul>{MENU}</ul><div>{self.content(number)}</div><p>{advert} {stars}<p>Visitors: {counter}, {time}{END}"


class Quotes(Site):
    """Articles that show another quote at each request, and, at every second address, one quote in the place of that."""

    def __init__(self, address: Callable[[int], str] = "view?id={}".format) -> None:
        super().__init__(content=lambda number: text_of(150, ("article", number)), copies=1)
        self._urls = [f"http://example.org/{address(number)}" for number in range(80)]

    def url(self, number: int) -> str:
        return self._urls[number]

    def number(self, url: str) -> int:
        return self._urls.index(url)

    def is_quote(self, number: int) -> bool:
        return number % 2 == 1

    def shown(self, number: int, chance: random.Random) -> str:
        is_quote = self.is_quote(number)
        quote = text_of(14, ("quote", number if is_quote else -chance.randrange(1, 30)))
        about = text_of(80, "about quotes") if is_quote else self.content(number)
        return (
            f"<title>{'Quotes' if is_quote else text_of(3, number)}</title><ul>{MENU}</ul><p>{about}"
            f"<p>Quote of the day: {quote} share this with friends{END}"
        )


class FewQuotes(Quotes):
    """Two pages with a quote of their own, which nothing else tells apart."""

    def is_quote(self, number: int) -> bool:
        return number in {15, 30}


class Branches(Twins):
    """The price is another on another host."""

    def shown(self, number: int, chance: random.Random) -> str:
        return f"{super().shown(number, chance)}<p>The price here is {100 + 7 * number} euros"


def few_words(number: int) -> str:
    """All but the name and the number of an entry is on the others, too; each of them is there once."""
    return f"{words('shared', 90)} Name {words(number, 2)} Number {number * 7919}"


def ticket(number: int, other: str = "") -> str:
    """It says which other one it belongs to, or none: it is no page of a calendar, and its number is content."""
    return f"Ticket {number} {other.format(at=number * 7 % 80)}"


def other_ticket(number: int) -> str:
    return ticket(number, "<a href='/view?id={at}'>more</a>")


#: Sites all of whose pages are kept.
WITHOUT_COPIES: dict[str, Callable[[], Site]] = {
    "adverts that may be missing": Sometimes,
    "and a counter": Counting,
    "a list of its own": Chosen,
    "a list of some": ChosenOfAll,
    "an order that is content": Rankings,
    "a paragraph in the place of an advert": lambda: Without(
        content=lambda number: f"{words('shared', 60)}<p>{words(number, 9)}", copies=1
    ),
    "ticks beside an advert": lambda: Register("options in ticks"),
    "stars beside an advert": lambda: Register("ratings in stars"),
    "quotes by number": Quotes,
    "two quotes": FewQuotes,
    "another price on another host": Branches,
    "a few words": lambda: Site(NOISES["an advert"], few_words, copies=1),
    "numbers of tickets": lambda: Site(content=ticket, copies=1),
    "tickets that belong together": lambda: Site(content=other_ticket, copies=1),
}
MORE: dict[str, Callable[[], Site]] = {
    "and a counter behind": CountingBehind,
    "quotes by words": lambda: Quotes(lambda number: "-".join(text_of(3, ("address", number)).split())),
    **{
        f"a few words and {noise}": partial(Site, NOISES[noise], few_words, 1)
        for noise in ("a counter", "a date")
    },
    **{f"{kind} beside an advert": partial(Register, kind) for kind in REGISTERS},
    **{
        f"{kind.__name__} {seed}": partial(kind, served=1_000 * seed)
        for kind in (Sometimes, Counting, CountingBehind)
        for seed in (1, 4)
    },
}


@pytest.mark.parametrize("name", [*WITHOUT_COPIES, *map(slow, MORE)])
@driven
async def test_what_is_content_is_no_noise(name: str) -> None:
    found, counts = await crawl((WITHOUT_COPIES | MORE)[name](), 40)
    assert found.count("keep") == 40
    assert counts["dedup/probes"] > 0


@pytest.mark.parametrize("answered", [0, 1, 2, slow(3), 4, slow(5), slow(6)])
@driven
async def test_no_page_is_dropped_if_the_kept_page_can_not_be_asked_whether_it_changes_itself(
    answered: int,
) -> None:
    """After so many answers, the site gives none any more."""

    class Away(Quotes):
        async def fetch(self, url: str) -> Page | None:
            if self.asked.total() >= answered:
                raise OSError("no route")
            return await super().fetch(url)

    found, counts = await crawl(Away(), 40)
    assert found.count("keep") == 40
    assert 0 < counts["dedup/probe/failed"] <= 26


class Calendar(Site):
    """A page for each month without end; all have the same programme, but for one in thirty."""

    def __init__(self, noise: Callable[[int], str], address: str) -> None:
        super().__init__(noise, lambda number: words("programme", 100), copies=1)
        self.address = "http://example.org/" + address
        self.months = {self.url(number): number for number in range(240)}

    def url(self, number: int) -> str:
        return self.address.format(year=2000 + number // 12, month=number % 12 + 1)

    def number(self, url: str) -> int:
        return self.months[url]

    def shown(self, number: int, chance: random.Random) -> str:
        month = f"{month_name[number % 12 + 1]} {2000 + number // 12}"
        event = words(f"event {number}", 12) if number % 30 == 7 else ""
        near = "".join(f"<a href='{self.url(at)}'>more</a>" for at in (number - 1, number + 1))
        return f"<title>Calendar</title>{MENU}<p>{month} {near} {event} {self.content(0)} {self.noise(self.served)}"


PATH, QUERY = "calendar/{year}/{month:02}", "calendar?month={month}&year={year}"


@pytest.mark.parametrize(
    ("noise", "address", "months", "most"),
    [
        ("none", PATH, 120, 30),
        ("a date", QUERY, 120, 30),
        # How soon an advert is known depends on how long it happens to be where it is measured: of 40 such calendars, half keep more
        # than 30, and none more than 54; of 240 months, none more than 77.
        ("an advert", QUERY, 120, 60),
        *(
            slow(noise, address, 240, 80 if noise == "an advert" else 60)
            for noise in NOISES
            for address in (PATH, QUERY)
        ),
    ],
)
@driven
async def test_pages_that_differ_only_in_their_names_are_few_and_those_with_an_event_are_all_kept(
    noise: str, address: str, months: int, most: int
) -> None:
    found, _ = await crawl(Calendar(NOISES[noise], address), months)
    kept = {number for number, action in enumerate(found) if action == "keep"}
    assert {*range(7, months, 30)} <= kept
    assert len(kept) <= most


class Still(Site):
    """Pages without noise, in ten folders."""

    shuffle = False

    def url(self, number: int) -> str:
        return f"http://example.org/{'abcdefghij'[number // 10]}/view?id={number}"


@driven
async def test_a_host_whose_pages_stay_as_they_are_is_asked_a_few_times() -> None:
    site = Still(NOISES["none"], copies=1)
    found, counts = await crawl(site, 100)
    assert (found.count("keep"), counts["dedup/probes"]) == (100, 3)


@driven
async def test_without_a_second_fetch_such_pages_are_kept() -> None:
    site = Site()
    found, counts = await crawl(site, 40, probe=False)
    assert contents_of(site, found) == 20
    assert not site.asked
    assert "dedup/probes" not in counts


@driven
async def test_a_wall_that_is_served_twice_is_no_noise() -> None:
    site = Site()
    site.wall = f"<title>Sign in</title>{MENU}<p>Please sign in to go on. " + words("wall", 60)
    found, counts = await crawl(site, 40)
    assert (contents_of(site, found), found.count("keep")) == (20, 40)
    assert counts["dedup/probes"]


@driven
async def test_no_page_is_dropped_for_a_wall_that_stands_where_a_kept_page_was() -> None:
    """After 40 pages, all that is asked for is the wall, in the site's own frame."""
    site = Site(copies=1)
    wall = f"<title>Register entry</title>{MENU}<p>Please sign in to go on. {words('wall', 20)}"
    shown = site.html
    site.html = lambda number: shown(number) if site.served < 40 else wall  # type: ignore[method-assign]
    _, counts = await crawl(site, 80)
    assert "dedup/probed" not in counts


def shown(url: str) -> Shown:
    return Shown(url, url, url, 0, 0, 0, "<p>a")


def test_a_page_is_compared_with_every_version_of_its_name_that_is_kept() -> None:
    """The first may be a print version, of which it is no copy."""

    kept, print_version, page = KeptPages(), "http://a.org/print/lamp", "http://a.org/lamp"
    for url in (print_version, page):
        kept.add(shown(url))
    assert [found.url for found in kept.like(shown("http://mirror.net/lamp"))] == [print_version, page]


def test_a_page_is_compared_with_one_that_has_a_parameter_more_unless_several_have() -> None:
    kept, page = KeptPages(), shown("http://mirror.net/lamp")
    kept.add(shown("http://a.org/lamp?x=mail"))
    assert [found.url for found in kept.like(page, more=True)] == ["http://a.org/lamp?x=mail"]
    kept.add(shown("http://a.org/lamp?x=web"))
    assert kept.like(page, more=True) == []


def test_a_page_is_read_in_as_many_steps_however_many_are_held() -> None:
    def held(count: int) -> KeptPages:
        kept = KeptPages()
        for number in range(count):
            kept.read(Shown(f"{number}", "http://a.org/", "", 0, 0, 0, "<p>a"))
        return kept

    page = Shown("page", "http://a.org/", "", 0, 0, 0, "<p>a")
    assert grows(lambda kept: kept.read(page), held, 100) < 1.5


def test_lines_of_read_pages_are_held_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.filter.noise.kept.MAX_READ", 30)
    kept = KeptPages()
    first, *others = (Shown(f"{number}", "http://a.org/", "", 0, 0, 0, "<p>a word") for number in range(4))
    kept.read(first)
    kept.read(others[0])
    kept.read(first)  # now it is the last
    kept.read(others[1])
    assert [bool(page.lines) for page in (first, *others)] == [True, True, True, False]
    kept.read(others[2])
    assert [bool(page.lines) for page in (first, *others)] == [True, False, True, True]


# --- Over HTTP --------------------------------------------------------------------------------------

ENTRIES = 12
SETTINGS: dict[str, Any] = {
    "ADDONS": ADDON,
    "DEDUP_INDEX": "memory:",
    "DEDUP_LOG": "",
    "DEDUP_KEEP_START": False,
}


def register(site: Served, asked_for: list[tuple[int, str, str]]) -> type[scrapy.Spider]:
    """Entries that are shown to a key alone, in the region of a cookie; each has two addresses, and a counter."""

    def entry(asked: Asked) -> str:
        key, region = asked.headers.get("x-key", ""), asked.cookies.get("region", "")
        number = int(asked.query["id"])
        asked_for.append((number, key, region))
        is_let_in = key == f"key {region}"
        shown = f"<p id=entry>{words(f'{number // 4} {region}', 100)}" if is_let_in else "Sign in"
        return f"<title>Entry</title>{MENU}{shown}<p>Visitors {len(asked_for)} so far"

    site.pages["/view"] = entry

    class Register(scrapy.Spider):
        name = "register"

        async def start(self) -> Any:
            for number in range(4 * ENTRIES):
                region = number % 2
                yield scrapy.Request(
                    f"{site.url}/view?id={number}",
                    headers={"X-Key": f"key {region}"},
                    cookies={"region": str(region)},
                    meta={"cookiejar": region},
                )

        def parse(self, response: Any) -> Any:
            yield {"entry": response.css("#entry::text").get()}

    return Register


def test_a_kept_page_is_fetched_again_as_it_was_asked_for() -> None:
    """Else the site would show a wall, or the entry of another region."""
    asked_for: list[tuple[int, str, str]] = []
    with serving() as site:
        found = gather(lambda at: register(at, asked_for), site, **SETTINGS)
    assert all((key, region) == (f"key {at % 2}", str(at % 2)) for at, key, region in asked_for)
    assert len(asked_for) == 4 * ENTRIES + found.stats["dedup/probes"]
    assert len(found.contents) == 2 * ENTRIES
    assert found.stats["dedup/probed"] >= 2 * ENTRIES - 12
    assert "dedup/probe/failed" not in found.stats


@pytest.mark.parametrize(
    ("kept", "copy", "is_asked"),
    [
        ("http://a.org/view?id=1", "http://a.org/view?id=2", True),
        ("http://a.org/view?id=1", "http://a.org/view?id=1", False),
        ("http://a.org/view?id=1", "http://b.org/view?id=1", False),
    ],
)
@driven
async def test_a_page_that_another_crawl_has_kept_is_asked_for_as_its_copy_was(
    kept: str, copy: str, is_asked: bool
) -> None:
    """At the copy's own URL that would show the copy itself, and the cookies of a host are for no other."""
    site = Site(str, lambda number: words("content", 120))
    index = open_index("memory:", Detector())
    for number in range(10):
        shown = site.html(0) if not number else f"<p>{words(number, 200)}"
        url = kept if not number else f"http://a.org/{number}"
        await index.claim(f"kept {number}", url, index.detector.fingerprint(shown, url))
        await index.confirm(f"kept {number}")
    index.run = "a" * 32
    filter = Filter(index, DropLog(""), crawl=site)
    await filter.judge(Visit("copy", copy, partial(read, site.html(1), copy), origin=copy))
    await filter.close()
    assert site.asked == ({kept: 2, copy: 1} if is_asked else {})


def test_a_request_that_sends_something_is_not_sent_once_more() -> None:
    get = scrapy.Request("http://a.org/", headers={"Cookie": "a=1", "Referer": "http://a.org/b"})
    assert manner_of(get) == Manner(((b"Cookie", (b"a=1",)),), ())
    assert manner_of(get.replace(method="POST")) is manner_of(get.replace(body=b"query")) is None


@driven
async def test_of_pages_that_were_asked_for_alike_the_manner_is_kept_once_for_each_host() -> None:
    class Alike(Crawl):
        fetches = True

        def manner(self, origin: Any) -> Any:
            return manner_of(origin)

    index = open_index("memory:", Detector())
    filter = Filter(index, DropLog(""), crawl=Alike())
    for number in range(40):
        url = f"http://{'ab'[number % 2]}.org/{number}"
        request = scrapy.Request(
            url, headers={"Accept": "text/html"}, meta={"download_slot": "ab"[number % 2]}
        )
        html = f"<p>{words(number, 60)}"
        await filter.judge(Visit(url, url, partial(read, html, url), origin=request))
    manners = filter._probe._manners._manners.values()
    assert (len(manners), len({*map(id, manners)})) == (40, 2)
    await filter.close()


def test_the_filters_own_request_leaves_the_cookies_of_the_crawl_alone() -> None:
    kept = scrapy.Request("http://a.org/1", meta={"proxy": "http://p", "playwright": True, "depth": 3})
    copy = scrapy.Request("http://a.org/2", cookies={"a": "2"}, meta={"item": "mine", "proxy": "http://q"})
    manner = manner_of(kept)
    assert manner is not None
    asked = asking(kept.url, copy, manner)
    assert (asked.url, asked.cookies, asked.callback) == (kept.url, {}, NO_CALLBACK)
    own = {"dont_merge_cookies": True, "dedup": False, OWN: True, "download_timeout": 10}
    assert asked.meta == {"proxy": "http://p", "playwright": True, "item": "mine"} | own


@pytest.mark.parametrize(
    ("latency", "timeout", "patience"),
    [(None, None, 10), (0.1, 180, 10), (8.0, 180, 16), (8.0, 12, 12), (0.1, 5, 5)],
)
def test_the_filters_own_request_is_answered_in_due_time_or_not_at_all(
    latency: float | None, timeout: float | None, patience: float
) -> None:
    kept = scrapy.Request("http://a.org/1", meta={"download_timeout": timeout} if timeout else {})
    copy = scrapy.Request("http://a.org/2", meta={"download_latency": latency} if latency else {})
    manner = manner_of(kept)
    assert manner is not None
    assert asking(kept.url, copy, manner).meta["download_timeout"] == patience


def test_an_answer_that_is_held_back_holds_no_other_page_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site answers each address once; later requests of it are let go when the crawl has ended."""
    monkeypatch.setattr("dedup.scrapy.requests.manner.PATIENCE", 1.0)
    asked, has_ended = Counter[str](), threading.Event()

    def entries(site: Served) -> type[scrapy.Spider]:
        def entry(request: Asked) -> str:
            number = request.query["id"]
            asked[number] += 1
            if asked[number] > 1:
                has_ended.wait(LIMIT)
            text = words(int(number) // 2, 100)
            return f"<title>Entry</title>{MENU}<p id=entry>{text}<p>Visitors {asked.total()} so far"

        site.pages["/view"] = entry

        class Entries(scrapy.Spider):
            name = "entries"

            async def start(self) -> Any:
                for number in random.Random(1).sample(range(80), 80):
                    yield scrapy.Request(f"{site.url}/view?id={number}")

            def parse(self, response: Any) -> Any:
                yield {"entry": response.css("#entry::text").get(), "url": response.url}

        return Entries

    with serving() as site:
        found = gather(entries, site, DOWNLOAD_TIMEOUT=LIMIT, **SETTINGS)
        has_ended.set()
    assert len(found.contents) == 40
    assert found.stats["dedup/new"] == 80, "without a probe, all are kept"
    assert asked.total() - 80 == found.stats["dedup/probe/failed"] <= 3
    assert found.stats["elapsed_time_seconds"] < LIMIT / 2


@driven
async def test_a_host_that_lets_the_filter_wait_in_vain_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("dedup.filter.noise.again.time", SimpleNamespace(monotonic=lambda: now))

    class Hanging(Site):
        def html(self, number: int) -> str:
            nonlocal now
            now += 5
            return super().html(number)

        async def fetch(self, url: str) -> Page | None:
            nonlocal now
            now += 10
            raise TimeoutError

    site = Hanging()
    found, counts = await crawl(site, 120)
    assert found.count("keep") == 120
    assert 3 <= counts["dedup/probes"] <= 1 + 600 // 100, "a tenth of the time, no more"
