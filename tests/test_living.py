"""No content of a site is lost whose every answer is another: a fast part of `benchmarks.living`."""

import random
from collections.abc import Callable
from functools import partial
from itertools import cycle

import pytest

from benchmarks.living import ALL, copies
from dedup.filter.noise import again, lines
from dedup.filter.noise.gaps import SEVERAL
from dedup.filter.noise.kinds import SECTION
from dedup.filter.noise.lines import Line
from dedup.filter.stats import Counts
from dedup.scrapy.log.summary import summary
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.living import (
    ADDRESSES,
    HOST,
    NOISES,
    Answering,
    Chance,
    answering,
    crawl,
    pages_of,
    shuffled,
    slug,
)
from tests.support.pages.everyday import name, text

#: Of each noise one kind: names, times, prices, a list, an image, signs, a long text, data in a script, and Chinese.
KINDS = [
    "staff", "tides", "price lists", "lists, a fifth new", "stamps", "options in ticks", "law as amended", "linked data",
    "notices, Chinese",
]  # fmt: skip
#: And of kinds whose pages have all words in common.
SIGNED = [
    "ticks", "stars by class", "case of units", "spaces in a listing", "lines of an outline", "one link",
    "link of ten digits", "checked boxes", "superscript",
]  # fmt: skip


@pytest.mark.parametrize(
    ("noise", "kind", "addresses"),
    [
        (pytest.param if number % 3 == 1 else slow)(*params)
        for number, params in enumerate(zip(NOISES, SIGNED, cycle(ADDRESSES), strict=False))
    ],
)
@driven
async def test_no_sign_of_a_living_site_is_lost(noise: str, kind: str, addresses: str) -> None:
    pages = pages_of(kind, ALL[f"signs: {kind}"], addresses, NOISES[noise])
    assert (await crawl(shuffled(pages, 1))).lost() == set()


@pytest.mark.parametrize(
    ("noise", "kind", "addresses", "at_once"),
    [
        (pytest.param if (number, at_once) in {(0, 1), (2, 8), (4, 1), (6, 8)} else slow)(
            noise, kind, addresses, at_once
        )
        for number, (noise, kind, addresses) in enumerate(zip(NOISES, KINDS, cycle(ADDRESSES), strict=False))
        for at_once in (1, 8)
    ],
)
@driven
async def test_no_content_of_a_living_site_is_lost(
    noise: str, kind: str, addresses: str, at_once: int
) -> None:
    pages = pages_of(kind, ALL[kind], addresses, NOISES[noise])
    assert (await crawl(shuffled(pages, 1), at_once=at_once)).lost() == set()


@pytest.mark.parametrize("noise", ["static", "shuffled", slow("drawn")])
@driven
async def test_requests_are_few_and_print_copies_found_with_eight_at_once(noise: str) -> None:
    pages = pages_of("coins", ALL["coins"], "words", NOISES[noise])
    fates = await crawl(shuffled(pages, 3), seed=3, at_once=8)
    assert fates.requests <= (0.04 if noise == "static" else 0.2) * len(fates.order)
    assert sum("/print/" in url for url in fates.drops) >= 3


@driven
async def test_a_kept_page_is_found_by_the_name_of_its_copy() -> None:
    pages = pages_of("coins", ALL["coins"], "words", NOISES["static"])
    rank = {"unknown": 0, "": 1, "print": 2}  # kept at ?x=mail, met without, and only then in print
    order = sorted((page for page in pages if page.form in rank), key=lambda page: rank[page.form])
    fates = await crawl(order)
    kept = {page.key for page in order if page.form == "print" and page.url in fates.kept}
    assert len(kept) == SEVERAL  # until it is known what pages have in common, and what addresses mean


@driven
async def test_a_print_version_teaches_what_its_address_means_whichever_came_first() -> None:
    pages = pages_of("coins", ALL["coins"], "words", NOISES["shuffled"])
    own, prints = ([page for page in pages if page.form == form] for form in ("", "print"))
    fates = await crawl([*own[12:], own[0], *prints[:3], *own[1:12], *prints[3:]])
    assert [page.url for page in prints[3:] if page.url in fates.kept] == []


@driven
async def test_a_copy_at_another_address_is_found_however_long_ago_its_page_was_kept() -> None:
    order = shuffled(pages_of("proverbs", ALL["proverbs"], "words", NOISES["shuffled"]), 2)
    fates = await crawl(order, seed=1)
    own = {page.key: at for at, page in enumerate(order) if page.url in fates.kept and not page.form}
    others = {
        page.key: at for at, page in enumerate(order) if page.url in fates.kept and page.form == "other"
    }
    late = len(order) // 2  # before that, not all of the noise is known
    assert [key for key, at in others.items() if at > max(late, own.get(key, at))] == []


#: Kinds, noises and addresses, in which orders pages are met, and how many of 128 pages, which show 56 contents, are kept at most.
FEW = {
    "own attributes alone": ("signs: data attributes", "drawn", "id", 1, 80),
    "a second answer with the same advert": ("grants", "shuffled", "words", 5, 74),
    "addresses with a slash at the end": ("coins", "shuffled", "slashes", 1, 74),
    "names in folders": ("coins", "shuffled", "folders", 1, 74),
    "names before a query": ("coins", "shuffled", "language", 1, 74),
    "slides that are drawn anew in each answer": ("coins", "slides", "words", 1, 79),
}


@pytest.mark.parametrize("scene", FEW)
@driven
async def test_copies_are_dropped_and_no_content_is_lost(scene: str) -> None:
    kind, noise, addresses, order, most = FEW[scene]
    fates = await crawl(shuffled(pages_of(kind, ALL[kind], addresses, NOISES[noise]), order), seed=1)
    assert fates.lost() == set()
    assert len(fates.kept) <= most


@pytest.mark.parametrize("seed", [1, slow(2), slow(3)])
@driven
async def test_a_clock_that_stands_still_is_noise(seed: int) -> None:
    """Two answers of a page are of one minute, and the page that it copies was kept in another."""
    order = shuffled(pages_of("cities", ALL["cities"], "words", NOISES["clock"]), seed)
    fates = await crawl(order, seed=seed)
    assert fates.lost() == set()
    assert fates.requests <= 0.2 * len(
        order
    )  # 34 to 55 of 128, if such a page counts as one that stays as it is
    met, dropped = copies(fates)
    assert dropped["unknown"] + dropped["mirror"] >= 0.7 * (met["unknown"] + met["mirror"])


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("count", [4, 40])
@driven
async def test_pages_are_kept_that_say_whose_they_are_only_where_each_answer_is_another(
    count: int, at_once: int
) -> None:
    """So addresses of mail are hidden: in an attribute, with another key in each answer."""

    def office(at: int, chance: Chance) -> str:
        key = chance.randrange(17, 217)
        hidden = bytes([key, *(octet ^ key for octet in f"office{at}@a.org".encode())]).hex()
        return f"<h1>Office</h1><p>{text(90, 'office')}</p><a href=/mail data-mail={hidden}>Write to us</a>"

    pages = answering(office, range(count), "?x=mail", addresses="paths")
    for seed in range(3):
        assert (await crawl(shuffled(pages, seed), seed=seed, at_once=at_once)).lost() == set()


@pytest.mark.parametrize(
    ("copy", "minutes"),
    [("?x=mail", ("8:01", "8:02")), (f"?sid={'9f86d081' * 4}", ("one", "two"))],
    ids=["x", "sid"],
)
@driven
async def test_a_copy_may_show_what_its_page_shows_by_now(copy: str, minutes: tuple[str, str]) -> None:
    def lamp(chance: Chance) -> str:
        return f"<h1>Lamp</h1><p>{text(60, 'lamp')}<p>Made at {minutes[chance.answers > 1]}"

    own, other = (Answering(f"{HOST}/lamp{query}", "lamp", lamp) for query in ("", copy))
    assert (await crawl([own, other])).kept == {own.url}


@driven
async def test_what_a_page_says_by_now_is_not_what_was_kept_of_it() -> None:
    """A menu of today has another soup by the time that the page is met which keeps that menu for good."""

    def menu(cook: int, chance: Chance, *, is_today: bool) -> str:
        soup = text(2, ("soup", cook, int(chance.answers > 12) if is_today else 1))
        return f"<h1>{text(3, cook)}</h1><p>{text(60, cook)}<p>Soup: {soup}<p>{chance.randrange(10**6)} guests so far"

    pages = [
        Answering(f"{HOST}/{folder}/{slug(cook, 'cook')}", f"{cook} {folder}", partial(menu, cook, is_today=is_today))
        for folder, is_today in (("today", True), ("menus", False))
        for cook in range(12)
    ]  # fmt: skip
    assert (await crawl(pages)).lost() == set()


STATES = ("in stock", "sold out", "reserved", "on request")


def page_with(list_of: list[str], thing: object, chance: random.Random) -> str:
    said = f"<h1>{name(thing, 'thing')}</h1><p>{text(60, ('thing', thing))}</p>"
    return f"<div>{said}</div>{''.join(list_of)}<p>{chance.randrange(10**6)} visitors"


def offer(number: int, chance: random.Random, *, is_first: bool) -> str:
    """A thing, of which four differ in one block alone, among others of its class that come and go, and say the same of others."""
    said = [
        f'<div class="card"><h4>{text(3, at)}</h4><p>{chance.choice(STATES)}</p></div>' for at in range(9)
    ]
    cards = chance.sample(said, 5)
    own = f'<div class="card"><h4>This one</h4><p>{STATES[number % 4]}</p></div>'
    cards.insert(0 if is_first else chance.randrange(6), own)
    return page_with(["<div>", *cards, "</div>"], number // 4, chance)


def label(number: int, chance: random.Random) -> str:
    """The same, in one line of a list of which the others come and go."""
    items = [f"<li>{text(3, at)}" for at in chance.sample(range(40), 5)]
    items.insert(chance.randrange(6), f"<li>This one {STATES[number % 4]}")
    return page_with(["<ul>", *items, "</ul>"], number // 4, chance)


def rare_label(number: int, chance: random.Random) -> str:
    """Only each sixth thing has such a line, and is like the one before it but for that."""
    items = [f"<li>{text(3, at)}" for at in chance.sample(range(40), 5)]
    if is_labelled := number % 6 == 5:
        items.insert(chance.randrange(6), f"<li>This one {STATES[number // 6 % 4]}")
    return page_with(["<ul>", *items, "</ul>"], number - is_labelled, chance)


def counted(number: int, chance: random.Random) -> str:
    """Cards of its own, each with a counter; one of them tells four things apart."""
    names = [*(name(number // 4 * 5 + at, "card") for at in range(5)), name(number, "own")]
    cards = [
        f'<div class="card"><h4>{each}</h4><div>seen {chance.randrange(999)} times</div></div>'
        for each in names
    ]
    return page_with(cards, number // 4, chance)


def beside(said: str, number: int, chance: random.Random) -> str:
    """Four things that differ in what stands for "own", amid counters and adverts."""
    own = {"own": f"{10 + number % 4}", "state": STATES[number % 4]}
    counts = {name: f"{chance.randrange(10, 999)}" for name in ("some", "more")}
    advert = f"{chance.choice(['big', 'red', 'new', 'old'])} offer {chance.choice(['lamp', 'rope', 'sail', 'keel'])}"
    names = {name: chance.choice(["anna", "bert", "carl", "dora", "emil"]) for name in ("who", "whom")}
    tokens = {name: chance.randbytes(6).hex() for name in ("token", "its")}
    return page_with([said.format(advert=advert, **own, **counts, **names, **tokens)], number // 4, chance)


BESIDE = [
    "<p>{own} / {some}", "<p>2026-05-{own} {some} views", "<img src=/pictures/{own}-{some}.jpg>",
    "<a href=/buy/{own}/{some}>Buy</a>", "<p>{some} {state} {more}", "<p>The one {state}<p>The {advert}",
    "<div><p>{some}</div><div><p>{own}</div>", "<b>{some}</b> <b>{own}</b> <b>{more}</b>",
    "<p>{who} calls it {state} to {whom}", "<img src=/{token}/{own}.jpg?{its}>",
    "<script type=application/json>['{who}', {own}, '{whom}']</script>", "<p>Line {own}: {more} min",
    "<p>售价{own}元已售{some}件", "<img src=/IMG_{own}_{some}.jpg>", "<img src=/lamp-{own}-view-{token}.jpg>",
    "<p>{some}kg of {own}",
]  # fmt: skip
LISTS: dict[str, Callable[[int, random.Random], str]] = {
    "own block first": partial(offer, is_first=True),
    "own block anywhere": partial(offer, is_first=False),
    "own line": label,
    "own line on some": rare_label,
    "own cards": counted,
    **{said: partial(beside, said) for said in BESIDE},
}


def in_another_block(number: int, chance: random.Random) -> str:
    """What a thing is stands in another heading, or in another box, in some answers."""
    heading, box = chance.choice(["h2", "h3"]), chance.choice(["dark", "light"])
    own = f"<{heading}>It is {STATES[number % 2]}</{heading}><p class={box}>And {STATES[number // 2 % 2]}"
    return page_with([own], number // 4, chance)


ALL_LISTS = {**LISTS, "in another block": in_another_block}


@pytest.mark.parametrize("kind", ALL_LISTS)
@pytest.mark.parametrize("at_once", [1, slow(8)])
@driven
async def test_nothing_is_lost_that_stands_among_what_changes(kind: str, at_once: int) -> None:
    pages = answering(ALL_LISTS[kind], range(48))
    assert (await crawl(shuffled(pages, 1), at_once=at_once)).lost() == set()


@pytest.mark.parametrize("kind", LISTS)
@driven
async def test_copies_at_a_page_s_own_address_are_dropped_where_others_are_content(kind: str) -> None:
    pages = answering(LISTS[kind], range(48), "?utm_source=news")
    own, copies = pages[::2], pages[1::8]
    fates = await crawl(shuffled([*own, *copies], 3))
    assert fates.lost() == set()
    assert len(fates.kept) <= 49


#: What two pages of a name say in the same words: which is first, by a class, and in an attribute.
SEASONS: dict[str, Callable[[random.Random], str]] = {
    "order": lambda own: "".join(f"<li>{text(2, at)}" for at in own.sample(range(7), 7)),
    "class": lambda own: "".join(f"<tr><td class={own.choice(['free', 'busy'])}>{day}" for day in range(14)),
    "attribute": lambda own: f"<img src=/map.png alt='{text(4, own.random())}'>",
}


@pytest.mark.parametrize("kind", SEASONS)
@driven
async def test_folders_do_not_mean_one_where_the_same_words_say_something_else(kind: str) -> None:
    def html(number: int, folder: str, _: random.Random) -> str:
        said = SEASONS[kind](random.Random(f"{number} {folder}"))
        return f"<h1>{name(number, 'inn')}</h1><p>{text(60, number)}</p><table>{said}</table><p>{text(12, 'foot')}"

    pages = [
        Answering(
            f"{HOST}/{folder}/{slug(number, 'inn')}", f"{number} {folder}", partial(html, number, folder)
        )
        for number in range(20)
        for folder in ("summer", "winter")
    ]
    assert (await crawl(shuffled(pages, 1))).lost() == set()


@driven
async def test_where_a_page_was_asked_for_from_may_tell_pages_apart() -> None:
    """On half of them the next bus is live: what stays on the others is not forgiven, though their addresses may mean one."""

    def html(stop: int, at: int, chance: random.Random) -> str:
        minutes = 3 + 7 * at if stop % 2 else chance.randrange(2, 60)
        return page_with([f"<p>Next bus in {minutes} min"], stop, chance)

    cities = enumerate(["berlin", "paris", "rome", "oslo"])
    pages = [
        Answering(f"{HOST}/{slug(stop, 'stop')}?from={city}", f"{stop} {city if stop % 2 else ''}", partial(html, stop, at))
        for at, city in cities
        for stop in range(24)
    ]  # fmt: skip
    assert (await crawl(shuffled(pages, 1), seed=1)).lost() == set()


@pytest.mark.parametrize("order", range(1, 5))
@driven
async def test_a_page_is_asked_as_long_as_its_copies_differ(order: int) -> None:
    """Pages of six templates have addresses of one kind: the others change nothing that is not known already."""
    kinds = ["own line", "own cards", "<p>{own} / {some}", "<p>{some} {state} {more}", "<p>Line {own}: {more} min", "<p>{some}kg of {own}"]  # fmt: skip
    pages = [
        Answering(
            f"{HOST}/{at % 6}/{slug(at, 'offer')}{query}", f"{at}", partial(LISTS[kinds[at % 6]], at // 6)
        )
        for query, step in (("", 1), ("?utm_source=news", 3), ("?gclid=x1", 3))
        for at in range(0, 144, step)
    ]
    fates = await crawl(shuffled(pages, order), seed=order)
    assert fates.lost() == set()
    assert len(fates.kept) <= 176  # of 240


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ("rope, oil, tea, tar, wick, {}", "<p>Tags: {}."),
        ("data-shop=mill, lang=en, data-kind=lamp, id={}", "<p {}>A lamp of brass and of glass."),
    ],
)
@driven
async def test_words_or_attributes_that_change_their_order_each_time_tell_pages_apart_by_what_they_are(
    parts: str, line: str
) -> None:
    def html(at: int, chance: Chance) -> str:
        own = parts.format(name(at).replace(" ", "")).split(", ")
        shown = (" " if "=" in parts else ", ").join(chance.sample(own, len(own)))
        return f"<h1>Lamps</h1><p>{text(80, 'all')}</p>{line.format(shown)}<p>Seen {chance.randrange(10**6)} times"

    pages = answering(html, range(48), "?utm_source=news", "?x=mail")
    fates = await crawl(shuffled(pages, 1), seed=1)
    assert fates.lost() == set()
    assert len(fates.kept) <= 60  # of 144
    assert fates.requests <= 20


@pytest.mark.parametrize("item", ["{0} {1}", "<a href=/{1}>{0}</a>"])
@driven
async def test_items_that_change_their_order_each_time_tell_pages_apart_by_what_belongs_together(
    item: str,
) -> None:
    def html(at: int, chance: Chance) -> str:
        names = [name(3 * (at // 2) + number).replace(" ", "") for number in range(3)]
        states = ["many", "few", "none"] if at % 2 else ["few", "many", "none"]
        listed = chance.sample([item.format(*each) for each in zip(names, states, strict=True)], 3)
        return f"<h1>Stock</h1><p>{text(80, 'all')}</p><p>Stock: {', '.join(listed)}.<p>Seen {chance.randrange(10**6)}"

    pages = answering(html, range(40))
    for order in range(1, 4):
        assert (await crawl(shuffled(pages, order), seed=order)).lost() == set()


@driven
async def test_the_summary_tells_how_many_kept_pages_may_be_copies() -> None:
    stats = Counts()
    await crawl(shuffled(answering(LISTS["own line"], range(48)), 1), stats=stats)
    unknown = stats["dedup/probe/unknown"]
    assert unknown > 0
    assert f"{unknown} of the kept pages may be copies" in summary(stats, "")


@driven
async def test_so_it_does_where_what_all_of_them_say_has_become_boilerplate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their adverts have nothing in common then, and one or another of them was seen to change."""
    monkeypatch.setattr(again, "FIRST", 1)
    monkeypatch.setattr(again, "SHARE", 0)
    adverts = [name(at) for at in range(300)]

    def html(chance: Chance) -> str:
        advert = ", ".join(chance.sample(adverts, 40))
        return f"<h1>What goes on</h1><p>{text(120, 'programme')}</p><aside><p>Today: {advert}.</p></aside>"

    stats = Counts()
    fates = await crawl(
        [Answering(f"{HOST}/on/{slug(at, 'month')}", "programme", html) for at in range(60)], stats=stats
    )
    assert len(fates.kept) > 50
    assert stats["dedup/probe/unknown"] >= len(fates.kept) - 10


@driven
async def test_a_page_that_links_to_its_copy_is_the_same_there() -> None:
    """On the copy, that link leads to itself."""

    def html(number: int, chance: random.Random) -> str:
        links = "".join(
            f"<a href='{ADDRESSES['words'](number)}{query}'>link</a>" for query in ("", "?x=mail")
        )
        return page_with([links], number, chance)

    fates = await crawl(shuffled(answering(html, range(20), "?x=mail"), 1))
    assert fates.lost() == set()
    assert len(fates.kept) <= 22  # of 40


@driven
async def test_few_pages_are_read_line_by_line_where_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def lines_of(markup: str, url: str) -> list[Line]:
        read.append(url)
        return lines.lines_of(markup, url)

    monkeypatch.setattr("dedup.filter.noise.kept.lines_of", lines_of)
    pages = [page for page in pages_of("coins", ALL["coins"], "words", NOISES["static"]) if not page.form]
    fates = await crawl(pages)
    assert len(fates.kept) == len(pages) > 3 * SECTION
    assert len(read) <= 2 * SECTION  # articles and coins
