"""Ways without end come to an end, and none that leads to contents does."""

import asyncio
import calendar
import html
import random
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
import scrapy
from scrapy import signals
from scrapy.utils.test import get_crawler

from tests.support import slow
from tests.support.foreign import serving
from tests.support.foreign.site import Reply, links, shell
from tests.support.pages.everyday import text

PRODUCTS = {f"/product/{at}" for at in range(12)}
TODAY = date(2026, 11, 26)

#: What a site answers to a path and query; None where nothing is.
Answer = Callable[[str], str | None]


class Found(NamedTuple):
    """What came of a crawl."""

    kept: list[str]  #: the paths of the pages that the spider was given, in their order
    stats: dict[str, Any]


def crawl(answer: Answer, tmp_path: Path, **settings: Any) -> Found:
    """Follows every link of a site from its front page, with the add-on."""
    with serving() as site:

        class Everything(dict[str, Any]):
            def get(self, target: str, default: Any = None) -> Any:
                return lambda asked: answer(target) or Reply("Not found", 404)

        site.pages = Everything()

        class Spider(scrapy.Spider):
            name = "everything"
            start_urls = (site.url + "/",)

            def parse(self, response: Any) -> Iterator[Any]:
                yield {"path": response.url.removeprefix(site.url)}
                yield from response.follow_all(css="a")

        ours = {
            "ADDONS": {"dedup.scrapy.Addon": 500},
            "DEDUP_INDEX": "memory:",
            "DEDUP_LOG": str(tmp_path / "log"),
            "CLOSESPIDER_PAGECOUNT": 2000,
        }
        crawler = get_crawler(Spider, ours | settings)
        kept: list[str] = []

        def scraped(item: Any) -> None:
            kept.append(item["path"])

        crawler.signals.connect(scraped, signals.item_scraped)
        asyncio.run(crawler.crawl_async())
    return Found(kept, crawler.stats.get_stats())


def shop(way: str, more: Answer) -> Answer:
    """A shop of twelve products in three lists, and what more it answers; its front page links to both."""

    def answer(target: str) -> str | None:
        if target == "/":
            return shell("Shop", "<h1>Shop</h1>" + links(*(f"/list/{at}" for at in range(3)), way))
        if target in PRODUCTS:
            return leaf(target)
        if match := re.fullmatch("/list/([012])", target):
            return listed(int(match[1]))
        return more(target)

    return answer


def leaf(target: str) -> str:
    title = text(3, target)
    return shell(title, f"<h1>{title}</h1><p>{text(60, (target, 'body'))}</p>")


def listed(at: int, onward: str = "") -> str:
    rows = "".join(
        f"<p><a href='/product/{n}'>{text(3, f'/product/{n}')}</a>" for n in range(4 * at, 4 * at + 4)
    )
    return shell("Bestsellers", f"<h1>Bestsellers</h1>{rows}{onward}")


# --- Without end ----------------------------------------------------------------------------------------


def echo(target: str) -> str | None:
    """Links of a list have the query by which it was asked for, encoded once more."""
    path, _, query = target.partition("?")
    if path != "/best":
        return None
    asked = parse_qsl(query)
    before = [("amp;page" if key == "page" else quote(key), value) for key, value in asked]
    to = (html.escape("/best?" + urlencode([*before, ("page", str(n))])) for n in range(3))
    return listed(int(dict(asked).get("page", "0")), links(*to))


def deeper(target: str) -> str | None:
    """Each folder has the same ones in it."""
    here = "<h1>Help</h1>" + text(40, "help")
    at = target.rstrip("/")
    return shell("Help", here + links(f"{at}/faq/", f"{at}/terms/")) if target.startswith("/help/") else None


def back(target: str) -> str | None:
    """The log-in says where it was asked for, and links to itself."""
    if not target.startswith("/login"):
        return None
    to = "/login?" + urlencode({"back": target}), f"/login?lang=de&{urlencode({'back': target})}"
    return shell("Log in", f"<h1>Log in</h1>{text(40, 'login')}" + links(*map(html.escape, to)))


def sessions(target: str) -> str | None:
    """Each answer has a new session in the path of its links."""
    if not target.startswith("/s/"):
        return None
    at = f"/s/{random.getrandbits(64):016x}/"
    return shell("Account", f"<h1>Account</h1>{text(40, 'account')}" + links(at + "orders", at + "basket"))


def days(target: str) -> str | None:
    """No day has an event, and each leads to the next one and to the one before."""
    if not (match := re.fullmatch(r"/day/(\d+-\d+-\d+)", target)):
        return None
    day = date.fromisoformat(match[1])
    to = (f"/day/{day + timedelta(step)}" for step in (-1, 1))
    return shell("Events", f"<h1>Events on {day}</h1><p>Nothing is on. {text(30, 'day')}</p>{links(*to)}")


@pytest.mark.parametrize(
    ("way", "more"),
    [
        ("/best", echo),
        ("/help/", deeper),
        ("/s/home", sessions),
        (f"/day/{TODAY}", days),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_a_way_without_end_ends_before_two_hundred_pages(way: str, more: Answer, tmp_path: Path) -> None:
    assert_it_ends(crawl(shop(way, more), tmp_path, DEDUP_PROBE=False))


def assert_it_ends(found: Found) -> None:
    assert {*found.kept} >= PRODUCTS
    assert len(found.kept) <= 200
    assert found.stats["finish_reason"] == "finished"


def test_what_is_parked_is_told_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = crawl(shop("/login?back=/", back), tmp_path, DEDUP_PROBE=False)
    assert_it_ends(found)
    told = [message for message in caplog.messages if "trap" in message and "Near-duplicate" not in message]
    trap = found.stats["dedup/trap"]
    assert trap.endswith("back=*: 30 pages in a row have said nothing new")
    assert trap in told[-1]
    assert found.stats["dedup/parked"]


def wiki(edit: str, step: int) -> Answer:
    """A page that does not exist is shown with status 200, and months without end link to one for each of their days, or some."""

    def more(target: str) -> str | None:
        url = urlsplit(target)
        tools = links(f"{url.path}?action=edit")
        asked = dict(parse_qsl(url.query))
        if action := asked.get("action"):
            return shell(action, f"<h1>{edit.format(url.path)}</h1><p>{action} {text(40, action)}</p>")
        if url.path != "/calendar":
            missing = f"<h1>{url.path[1:]}</h1><p>This page does not exist yet. {text(60, 'missing')}</p>"
            return shell(url.path[1:], tools + missing)
        first = date(int(asked.get("year", "2026")), int(asked.get("month", "11")), 1)
        month = [day for at in range(0, 31, step) if (day := first + timedelta(at)).month == first.month]
        grid = "".join(f"<a href='/calendar/{day}'>{day.day}</a> " for day in month)
        near = (first - timedelta(1), first + timedelta(31))
        to = (html.escape(f"/calendar?year={day.year}&month={day.month}") for day in near)
        return shell("Calendar", f"{tools}<h1>Calendar {first:%Y %m}</h1>{grid}{links(*to)}")

    return more


@pytest.mark.parametrize(
    ("edit", "step"), [slow("Edit {}", 1), slow("You may not do that", 1), ("You may not do that", 8)]
)
def test_a_calendar_of_pages_that_do_not_exist_ends(edit: str, step: int, tmp_path: Path) -> None:
    """With an alarm at what is shown for edits, or without."""
    assert_it_ends(crawl(shop("/calendar", wiki(edit, step)), tmp_path))


def test_a_shadow_crawl_follows_all_of_it(tmp_path: Path) -> None:
    found = crawl(
        shop(f"/day/{TODAY}", days),
        tmp_path,
        DEDUP_ACTION="mark",
        DEDUP_PROBE=False,
        CLOSESPIDER_PAGECOUNT=80,
    )
    assert found.stats["finish_reason"] == "closespider_pagecount"
    assert "dedup/parked" not in found.stats


# --- Long ways to contents ------------------------------------------------------------------------------


#: The number of the last page in a row: more than say nothing new before a way is one without end.
LAST = 48


def row(start: str, show: Callable[[int], str]) -> Answer:
    """Pages in a row, of which each links to the next one, and those to which they lead."""

    def answer(target: str) -> str | None:
        if target.startswith("/leaf/"):
            return leaf(target)
        if not (match := re.fullmatch(rf"{re.escape(start)}(\d+)", target.replace("&amp;", "&"))):
            return None
        at = int(match[1])
        onward = links(html.escape(f"{start}{at + 1}")) if at < LAST else ""
        return shell("A row", f"<h1>A row</h1>{show(at)}{onward}")

    return answer


#: Pages in a row, and the step from one that shows or leads to a content to the next.
ROWS: dict[str, tuple[str, Callable[[int], str], int]] = {
    "events": ("/day/", lambda at: f"Day {at}: {'Nothing is on.' if at % 12 else links(f'/leaf/{at}')}", 12),
    "pager": ("/items?page=", lambda at: links(f"/leaf/{at}"), 1),  # which says nothing else
    "forum": ("/topic?id=7&page=", lambda at: "".join(f"<p>{text(15, (at, n))}</p>" for n in range(4)), 1),
    "photos": ("/photo/", lambda at: f"<img src='/image/{at}.jpg'>", 1),  # nothing else is new
    "register": ("/entry/", lambda at: f"{text(40, 'entry')} {at * 37 + 1000}", 1),  # nor here
}


def archive(target: str) -> str | None:
    """A blog by months and days, of which most have no post."""
    if not (match := re.fullmatch(r"/(\d{4})/(\d\d)/(?:(\d\d)/)?", target)):
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    if not match[3]:
        days = calendar.monthrange(year, month)[1]
        before = f"/{year - (month == 1)}/{month - 1 or 12:02}/"
        return shell(
            "Archive",
            f"<h1>{calendar.month_name[month]} {year}</h1>"
            + links(*(f"{target}{n:02}/" for n in range(1, days + 1)), *[before][: before > "/2026/08/"]),
        )
    post = f"<p>{text(50, target)}</p>" if (year + month + day) % 15 == 0 else "<p>No posts.</p>"
    return shell("Archive", f"<h1>{day} {calendar.month_name[month]} {year}</h1>{post}")


def facets(target: str) -> str | None:
    """A search by tags, of which each link adds one."""
    url = urlsplit(target)
    if target.startswith("/thing/"):
        return leaf(target)
    if url.path != "/search":
        return None
    tags = [int(value) for _, value in parse_qsl(url.query)]
    at = sum(1 << tag for tag in tags)
    more = (
        html.escape("/search?" + urlencode([("tag", n) for n in sorted({*tags, tag})]))
        for tag in range(5)
        if tag not in tags
    )
    return shell("Search", f"<h1>Search</h1>{links(f'/thing/{at}')}{links(*more)}")


HONEST: dict[str, tuple[str, Answer, set[str]]] = {
    "archive": (
        "/2026/11/",
        archive,
        {
            f"/2026/{month:02}/{day:02}/"
            for month in range(9, 12)
            for day in range(1, 29)
            if (2026 + month + day) % 15 == 0
        },
    ),
    "facets": ("/search", facets, {f"/thing/{at}" for at in range(32)}),
}
for kind, (start, show, step) in ROWS.items():
    to = "/leaf/" if kind in {"events", "pager"} else start
    contents = {f"{to}{at}" for at in range(0, LAST + 1, step)}
    HONEST[kind] = html.escape(f"{start}0"), row(start, show), contents


@pytest.mark.parametrize("kind", HONEST)
def test_no_content_at_the_end_of_a_long_way_is_lost(kind: str, tmp_path: Path) -> None:
    """Without probes, which take days without events for copies of each other: the links of copies are not followed anyway."""
    way, more, contents = HONEST[kind]
    found = crawl(shop(way, more), tmp_path, DEDUP_PROBE=False)
    assert (PRODUCTS | contents) - {*found.kept} == set()
    assert "dedup/parked" not in found.stats
