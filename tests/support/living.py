"""Living sites: whose every answer has another counter, token, session, advert, time of day and list of related pages."""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from dedup import Detector, open_index
from dedup.filter import Crawl, DropLog, Filter, Visit
from dedup.page.html import Page
from dedup.page.read import read
from tests.support.pages.everyday import Content, Maker, name, text

HOST, MIRROR = "http://www.example.org", "http://mirror.example.net"
#: How many contents of a kind there are, how many of them have copies, and how many articles stand beside them.
CONTENTS, COPIED, ARTICLES = 40, 12, 16


class Item(NamedTuple):
    """A content with its paths: its own, and another that shows the same."""

    content: Content
    key: str
    path: str
    other: str


class Chance(random.Random):
    """What is drawn for the answers of a site."""

    answers: int = 0  #: that it has made


class Answering(NamedTuple):
    """A page of a site: what it shows, and what it answers by chance."""

    url: str
    key: str
    html: Callable[[Chance], str]
    form: str = ""  #: of a copy


def slug(number: int, seed: object) -> str:
    return "-".join(name(number, seed).lower().split())


ASPECTS = ("view", "details", "reviews", "history")
ADDRESSES: dict[str, Callable[[int], str]] = {
    "id": lambda number: f"/view?id={number}",
    "words": lambda number: f"/{slug(number, 'address')}",
    "paths": lambda number: f"/item/{number}",
    "folders": lambda number: f"/{slug(number, 'address')}/view",
    "slashes": lambda number: f"/{slug(number, 'address')}/",
    "aspects": lambda number: f"/{slug(number // 4, 'address')}/{ASPECTS[number % 4]}",
    "language": lambda number: f"/{slug(number, 'address')}?lang=en",
}


def answering(
    html: Callable[[int, Chance], str], numbers: Iterable[int], *queries: str, addresses: str = "words"
) -> list[Answering]:
    """Pages that answer by their numbers, each at an address of its own, and at that with each of these queries."""
    return [
        Answering(f"{HOST}{ADDRESSES[addresses](number)}{query}", f"{number}", partial(html, number))
        for number in numbers
        for query in ("", *queries)
    ]


def plain_advert(number: int) -> str:
    return f"<p>{text(20, ('advert', number))}</p>"


def marked_advert(number: int) -> str:
    return f'<div class="ad"><a href="/go/{number}">{text(20, ("advert", number))}</a></div>'


def advert_of_blocks(number: int) -> str:
    said = text(20, ("advert", number))
    return f"<div><h4>{text(3, number)}</h4><p>{said}</p><ul><li><a href=/go/{number}>{text(2, number)}</a></ul></div>"


def slides(number: int) -> str:
    """Five slides of nine, each of several blocks."""
    said = "".join(
        f'<div class="slide"><img src="/slides/{at}.jpg"><h4>{text(4, ("slide", at))}</h4><p>{text(9, ("said", at))}</p></div>'
        for at in random.Random(number).sample(range(9), 5)
    )
    return f'<div class="slides">{said}</div>'


def boxes(number: int) -> str:
    """Three paragraphs in any order, two of which say something else each time."""
    chance = random.Random(number)
    said = (f"Seen {number} times", text(9, "boat"), f"Lamp {chance.randrange(10**6)} is lit")
    return f"<aside>{''.join(f'<p>{each}</p>' for each in chance.sample(said, 3))}</aside>"


class Noise(NamedTuple):
    """What is another in each answer."""

    advert: Callable[[int], str] = marked_advert
    is_above: bool = False  #: the advert
    may_miss: bool = False  #: likewise
    campaigns: bool = False  #: in the links of the menu
    ticks: int = 0  #: answers of the site from one minute to the next, which each tells
    related: Callable[[Sequence[Item], int, random.Random], Sequence[Item]] = lambda items, at, chance: (
        chance.sample([items[(at + step) % len(items)] for step in range(1, 7)], 6)
    )


NOISES: dict[str, Noise | None] = {
    "static": None,
    "shuffled": Noise(),
    "drawn": Noise(related=lambda items, at, chance: chance.sample(items, 6)),
    "popular": Noise(related=lambda items, at, chance: chance.sample(items[:6], 6)),
    "paragraph": Noise(plain_advert),
    "blocks": Noise(advert_of_blocks),
    "slides": Noise(slides),
    "missing": Noise(may_miss=True),
    "above": Noise(plain_advert, is_above=True, may_miss=True),
    "campaigns": Noise(campaigns=True),
    "clock": Noise(ticks=40),
    "boxes": Noise(boxes),
}


@cache
def menu() -> str:
    return "".join(f'<li><a href="/menu/{at}">{text(2, ("menu", at))}</a></li>' for at in range(60))


def in_site(items: Sequence[Item], at: int, noise: Noise | None, chance: Chance) -> str:
    """An answer of the page of an item."""
    content = items[at].content
    above = below = token = bottom = ""
    links = menu()
    if noise is not None:
        token = (
            f'<form action="/search"><input type="hidden" name="csrf" value="{chance.randbytes(16).hex()}"></form>'
            f'<a href="/basket?sid={chance.randbytes(16).hex()}">Basket</a> '
            f"<span>{chance.randrange(24)}:{chance.randrange(60):02}</span>"
        )
        if noise.campaigns:
            links = links.replace('">', f'?utm_source=a{chance.randrange(10**6)}">')
        advert = noise.advert(chance.randrange(12))
        if noise.may_miss and chance.random() < 1 / 3:
            advert = ""
        above, below = (advert, "") if noise.is_above else ("", advert)
        related = "".join(
            f'<li><a href="{item.path}">{item.content.title}</a></li>'
            for item in noise.related(items, at, chance)
        )
        bottom = f"<div><h3>Read also</h3><ul>{related}</ul></div><div>{chance.randrange(10**6)} visitors so far</div>"
        if noise.ticks:
            hours, minutes = divmod(chance.answers // noise.ticks, 60)
            bottom += f"<p>This page was made at {8 + hours}:{minutes:02}</p>"
    return (
        f"<html><head><title>{content.title}</title>{content.head}</head><body><div><ul>{links}</ul>{token}</div>{above}"
        f"<div><h1>{content.title}</h1>{content.body}</div>{below}{bottom}<div>{text(60, 'footer')}</div></body></html>"
    )


def in_print(content: Content, noise: Noise | None, chance: random.Random) -> str:
    when = f" at {chance.randrange(24)}:{chance.randrange(60):02}" if noise is not None else ""
    return (
        f"<html><head><title>{content.title} - print version</title>{content.head}</head><body><p>Printed from our site{when}"
        f"</p><h1>{content.title}</h1>{content.body}<p>{text(25, 'print')}</p></body></html>"
    )


def article(number: int) -> Content:
    title = text(5, ("title", number)).rstrip(".")
    return Content(title, "".join(f"<p>{text(40 + number, ('article', number, at))}</p>" for at in range(4)))


def pages_of(kind: str, make: Maker, addresses: str, noise: Noise | None) -> list[Answering]:
    """The pages of a kind with the copies of some, and articles of the same host."""
    address = ADDRESSES[addresses]
    items = [
        Item(make(number, random.Random(f"{kind} {number}")), f"{kind} {number}", address(number), address(number + 5_000))
        for number in range(CONTENTS)
    ] + [
        Item(article(number), f"article {number}", f"/story/{slug(number, 'story')}", "") for number in range(ARTICLES)
    ]  # fmt: skip
    pages = []
    for at, item in enumerate(items):
        url, there = HOST + item.path, partial(in_site, items, at, noise)
        pages.append(Answering(url, item.key, there))
        if at >= COPIED:
            continue
        mark = "&" if "?" in url else "?"
        sid = random.Random(item.key).randbytes(16).hex()
        urls = {
            "utm": f"{url}{mark}utm_source=mail",
            "session": f"{url}{mark}sid={sid}",
            "unknown": f"{url}{mark}x=mail",
            "mirror": MIRROR + item.path,
            "other": HOST + item.other,
        }
        pages += [Answering(copy, item.key, there, form) for form, copy in urls.items()]
        printed = partial(in_print, item.content, noise)
        pages.append(Answering(f"{HOST}/print{item.path}", item.key, printed, "print"))
    assert len({page.url for page in pages}) == len(pages), kind
    assert len({item.content for item in items}) == len(items), kind
    return pages


@dataclass
class Fates:
    """What became of the pages of a crawl."""

    order: list[Answering]  #: as they were met first
    kept: set[str] = field(default_factory=set)  #: URLs
    drops: dict[str, tuple[str, str]] = field(default_factory=dict)  #: URL -> the kept page's, and the rule
    requests: int = 0  #: beside one for each page
    seconds: float = 0.0  #: of the processor, the making of answers left out

    def lost(self) -> set[str]:
        """Contents of which no page was kept."""
        return {page.key for page in self.order} - {page.key for page in self.order if page.url in self.kept}


class Living(Crawl):
    """Pages that are met in an order, and answer by chance."""

    fetches = True

    def __init__(self, order: Sequence[Answering], seed: object) -> None:
        self.pages = {page.url: page for page in order}
        self.chance = Chance(f"answers {seed}")
        self.order = [*order]
        self.fates = Fates([*order])

    def html(self, page: Answering) -> str:
        started = time.process_time()
        self.chance.answers += 1
        html = page.html(self.chance)
        self.fates.seconds -= time.process_time() - started
        return html

    async def fetch(self, url: str) -> Page | None:
        self.fates.requests += 1
        for _ in range(20):  # in the time of an answer others are judged
            await asyncio.sleep(0)
        return read(self.html(self.pages[url]), url) if url in self.pages else None

    def fetch_again(self, origin: str, *, judged: bool = True) -> None:
        self.fates.requests += 1
        if judged:
            self.order.append(self.pages[origin])
        else:
            self.fates.kept.add(origin)
            self.fates.drops.pop(origin, None)


async def crawl(
    order: Sequence[Answering],
    *,
    seed: object = 0,
    at_once: int = 1,
    index: str = "memory:",
    **settings: object,
) -> Fates:
    """What becomes of pages, and of those that are fetched again behind them."""
    site = Living(order, seed)
    fates, started = site.fates, time.process_time()
    filter = Filter(open_index(index, Detector()), DropLog(""), crawl=site, **settings)

    async def judge(pages: Iterator[Answering]) -> None:
        for page in pages:
            url = page.url
            outcome = await filter.judge(Visit(url, url, partial(read, site.html(page), url), origin=url))
            if outcome.action == "keep":
                fates.kept.add(url)
                fates.drops.pop(url, None)
                await filter.handed_over(url)
            else:
                fates.kept.discard(url)
                assert outcome.record is not None
                fates.drops[url] = outcome.record["duplicate_of"], outcome.record["rule"]

    pages = iter(site.order)
    await asyncio.gather(*(judge(pages) for _ in range(at_once)))
    await filter.close()
    fates.seconds += time.process_time() - started
    return fates


def shuffled(pages: Sequence[Answering], seed: int | str) -> list[Answering]:
    return random.Random(seed).sample(pages, len(pages))
