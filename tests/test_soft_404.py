"""Soft 404s: what a host shows where nothing is, is kept once; and no content is taken for that.

A site of the tests answers every address; a test says which of its addresses are links, and what must be kept.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dedup.droplog.log import DropLog
from dedup.errors import IndexUnavailableError
from dedup.filter import Counts, Crawl, Filter, Visit
from dedup.filter.visit import Answer
from dedup.fingerprint.detector import Detector
from dedup.index import Entry, Index, open_index
from dedup.index.local.index import LocalIndex
from dedup.page.html import Page, parse
from dedup.page.read import read
from dedup.page.shell import may_be_shell
from dedup.scrapy.log.summary import summary
from tests.support import slow
from tests.support.coroutines import driven
from tests.support.crawls import Run, Site, html, words
from tests.support.logs import read_log

HOST = "http://example.org"


MENU = words("menu", 60) + "".join(
    f'<li><a href="/section/{n}">{words(("entry", n), 2)}</a>' for n in range(9)
)


def page(title: str, body: str) -> str:
    return f"<title>{title}</title>{MENU}<h1>{title}</h1><p>{body}"


class Found(NamedTuple):
    """What came of a crawl."""

    kept: list[str]
    stats: Counts
    records: list[Any]
    asked: list[str]

    @property
    def soft(self) -> list[str]:
        """The pages that were dropped as soft 404s."""
        return [record["url"].removeprefix(HOST) for record in self.records if record["rule"] == "soft_404"]


class Served(Crawl):
    """Answers all addresses by their paths, with a page, or with a status and the path to which it leads."""

    fetches = True

    def __init__(self, answer: Callable[[str], str | tuple[int, str]]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.again: list[str] = []

    def fetch_again(self, origin: Any, *, judged: bool = True) -> None:
        self.again.append(origin)

    async def fetch(self, url: str) -> Page | None:
        answer = await self.ask(url, None)
        return answer.page

    async def ask(self, url: str, origin: Any) -> Answer:
        path = url.removeprefix(HOST)
        self.asked.append(path)
        found = self.answer(path)
        if isinstance(found, str):
            return Answer(200, url, read(found, url), may_be_shell(parse(found)))
        status, to = found
        return await self.ask(HOST + to, origin) if to else Answer(status, url, None)


async def crawl(
    served: Served, paths: list[str], log: Path, index: Index | None = None, **settings: Any
) -> Found:
    """Visits pages in a shuffled order, the first of them first; those that are fetched again come last."""
    counts, kept = Counts(), list[str]()
    index = index or open_index("memory:", Detector())
    filter = Filter(index, DropLog(str(log)), stats=counts, crawl=served, **settings)
    waiting = [paths[0], *random.Random(1).sample(paths[1:], len(paths) - 1)]
    while waiting:
        path = waiting.pop(0)
        found, at = served.answer(path), path
        while not isinstance(found, str) and found[1]:
            at, found = found[1], served.answer(found[1])
        if not isinstance(found, str):
            continue
        url, asked = HOST + at, HOST + path if at != path else ""
        seed = path == paths[0]
        html = found
        outcome = await filter.judge(
            Visit(url, url, partial(read, html, url), asked=asked, is_seed=seed, origin=path)
        )
        if outcome.action in {"keep", "mark"}:
            kept.append(path)
            await filter.handed_over(url)
        waiting += served.again
        served.again.clear()
    await filter.close()
    return Found(kept, counts, read_log(log), served.asked)


def shop(nothing: Callable[[str], str | tuple[int, str]]) -> Served:
    """Its front page, forty things, and what it answers at all other addresses."""
    served = Counter[str]()

    def answer(path: str) -> str | tuple[int, str]:
        served[path] += 1
        if path == "/":
            return page("The shop", words("front", 150))
        if path in THINGS:
            return page(f"Thing {path[7:]}", words(path, 120))
        return nothing(path)

    return Served(answer)


THINGS = [f"/thing/{name}" for name in words("things", 24).split()]
DEAD = [f"/{words('dead', 20).split()[n]}{'' if n % 2 else '/old'}/{words(n, 1)}" for n in range(20)]
SORRY = "There is nothing here any more. " + words("sorry", 40)


@pytest.mark.parametrize(
    "nothing",
    {
        "the same": lambda path: page("Not found", SORRY),
        "with its address": lambda path: page(
            f"{path[1:]}: not found", f"{path} {SORRY} <a href='/login?next={path}'>in"
        ),
        "with a counter": lambda path, seen=Counter(): page(
            "Not found", f"{SORRY} {seen.update('a') or seen['a']} visits"
        ),
    }.items(),
    ids=lambda scene: scene[0],
)
@driven
async def test_of_what_a_shop_shows_where_nothing_is_one_page_is_kept_or_two(
    tmp_path: Path, nothing: tuple[str, Callable[[str], str]]
) -> None:
    """More are if each says something else, so that two have to be met before anybody asks."""
    found = await crawl(shop(nothing[1]), ["/", *THINGS, *DEAD], tmp_path / "log")
    assert {*THINGS} < {*found.kept}
    assert len({*found.kept} & {*DEAD}) <= 3
    assert found.stats["dedup/soft_404"] == len(found.soft) >= 17
    assert found.stats["dedup/soft_404/hosts"] == 1
    assert "dedup/alarms" not in found.stats
    [of] = {record["duplicate_of"] for record in found.records if record["rule"] == "soft_404"}
    path = of.removeprefix(HOST)
    assert path in found.asked
    assert is_nowhere(path)
    assert f"; soft 404s of 1 host: {len(found.soft)}\n" in summary(found.stats, "")


def is_nowhere(path: str) -> bool:
    """Whether a path has been made up by the filter."""
    return len(path) == 33 and path[1:].isalpha()


@driven
async def test_pages_that_come_while_their_host_is_asked_wait_for_its_answer(tmp_path: Path) -> None:
    """Else so many of them were alike before the answer was there that they looked like a wall."""

    class Slow(Served):
        async def ask(self, url: str, origin: Any) -> Answer:
            for _ in range(1_000):  # the other pages have their turns
                await asyncio.sleep(0)
            return await super().ask(url, origin)

    served, counts = Slow(shop(lambda path: page("Not found", SORRY)).answer), Counts()
    filter = Filter(open_index("memory:", Detector()), DropLog(""), stats=counts, crawl=served)

    async def visit(path: str) -> None:
        url, html = HOST + path, served.answer(path)
        outcome = await filter.judge(Visit(url, url, partial(read, str(html), url), origin=path))
        if outcome.action == "keep":
            await filter.handed_over(url)

    for path in ("/", *THINGS, DEAD[0]):
        await visit(path)
    await asyncio.gather(*map(visit, DEAD[1:]))
    await filter.close()
    assert counts["dedup/dropped"] == len(DEAD) - 1
    assert counts["dedup/soft_404"] >= 16
    assert "dedup/alarms" not in counts


@driven
async def test_pages_are_kept_if_the_index_goes_away_when_asked_about_the_first(tmp_path: Path) -> None:
    served = shop(
        lambda path: page(f"{path[1:]}: not found", f"{path} {SORRY} <a href='/login?next={path}'>Log in</a>")
    )

    class Away(LocalIndex):
        """It does not answer once the host has been asked."""

        async def find(self, page_id: str) -> Entry | None:
            if len(served.asked) >= 3:
                raise IndexUnavailableError("it is away")
            return await super().find(page_id)

    found = await crawl(served, ["/", *THINGS, *DEAD], tmp_path / "log", Away("memory:", "", Detector()))
    assert found.stats["dedup/soft_404/hosts"] == 1
    assert {*THINGS} <= {*found.kept}


@driven
async def test_where_nothing_is_not_found_one_request_says_so(tmp_path: Path) -> None:
    copies = [f"/copy-of/{path[7:]}-{n}" for n in range(2) for path in THINGS[:10]]
    shown = shop(
        lambda path: page("Thing", words(f"/thing/{path[9:-2]}", 120)) if path in copies else (404, "")
    )
    found = await crawl(shown, ["/", *THINGS, *copies], tmp_path / "log")
    assert found.stats["dedup/duplicate"]
    assert len([*filter(is_nowhere, found.asked)]) == 1
    assert "dedup/soft_404/hosts" not in found.stats
    assert not found.soft


@driven
async def test_without_a_probe_nobody_asks(tmp_path: Path) -> None:
    found = await crawl(
        shop(lambda path: page("Not found", SORRY)), ["/", *THINGS, *DEAD], tmp_path / "log", probe=False
    )
    assert not found.asked
    assert not found.soft
    assert found.stats["dedup/alarms"]


# --- Nothing is lost ------------------------------------------------------------------------------------


class Scene(NamedTuple):
    """A site, the paths that are visited, those that have to be kept, and the stats that have to be there, or must not."""

    served: Served
    paths: list[str]
    wanted: list[str]
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ("soft_404",)


def search_everywhere() -> Scene:
    """A shop whose search page is the answer to everything that it doesn't know."""
    search = page("Search", words("search", 100))
    return Scene(shop(lambda path: search), ["/", "/search", *THINGS, *DEAD], THINGS, ("soft_404",), ())


def redirects_to_the_home_page() -> Scene:
    """Each is kept: the alarm doesn't know a login from a home page."""
    wanted = ["/", *THINGS]
    return Scene(
        shop(lambda path: (302, "/")), [*wanted, *DEAD], wanted, lacks=("soft_404", "soft_404/hosts")
    )


def application_with_pages_of_its_own() -> Scene:
    paths = ["/", *(f"/about/{name}" for name in words("about", 5).split())]
    served = Served(lambda path: page("About", words(path, 100)) if path in paths else SHELL)
    return Scene(served, [*paths, *THINGS], [*paths, *THINGS], lacks=())


def application_beside_pages(shell: str) -> Scene:
    """What its scripts would show at an address that leads nowhere is not known."""
    paths = ["/", *THINGS, *(f"/app/{words(('app', n), 1)}" for n in range(30))]
    shown = page("The shop", SHELLS[shell])
    return Scene(shop(lambda path: shown), paths, paths, has=("alarms",))


def register_that_makes_up_entries() -> Scene:
    """Addresses that lead nowhere show any entry, another one each time."""
    entries, served = [f"/entry/{n}" for n in range(40)], itertools.count(1)

    def answer(path: str) -> str:
        seed = path if path in entries else f"/entry/{next(served) % 40}"
        return page("Entry", f"{words('shared', 60)} {words(seed, 15)}")

    return Scene(Served(answer), entries, entries)


def down_with_status_200() -> Scene:
    """From the eleventh page on every address shows the same, kept pages, too: that is no soft 404."""
    shown, served = shop(lambda path: (404, "")).answer, itertools.count(1)
    site = Served(lambda path: shown(path) if next(served) <= 10 else page("We are down", SORRY))
    return Scene(site, ["/", *THINGS], THINGS, has=("alarms",))


def wall_like_what_is_shown_where_nothing_is() -> Scene:
    """Some sites show those whom they ban that a page is not there.  What was dropped meanwhile is fetched again."""
    many, served = [f"/more/{n}/{words(('more', n), 1)}" for n in range(120)], itertools.count(1)
    nothing = page("Not found", SORRY)
    shown = shop(lambda path: page("More", words(path, 120)) if path in many else nothing).answer
    site = Served(lambda path: shown(path) if next(served) <= 100 else nothing)
    return Scene(site, ["/", *THINGS, *DEAD[:6], *many], [*THINGS, *many], ("fetched_again",), ())


def page_that_says_the_same_but_for_a_few_words() -> Scene:
    """It is no copy of what is shown where nothing is."""
    sorry = f"{SORRY} {words('more', 300)}"
    almost = page("Not found", f"{sorry} but the brass lamp is back tomorrow")
    served = shop(lambda path: almost if path == "/almost/there" else page("Not found", sorry))
    return Scene(served, ["/", *THINGS, *DEAD, "/almost/there"], ["/almost/there"], ("soft_404",), ())


SHELL = page("The shop", "This application is about to begin. " + words("shell", 100))
#: Shells with more words than what is known for a shell by its words.
SHELLS = {
    "a mount": f"<div>{words('shell', 150)}</div><div id=root>Loading</div><script src=/app.js></script>",
    "a notice": f"<noscript>You need to enable JavaScript.</noscript><div id=x></div>{words('shell', 150)}<script src=/app.js></script>",
}
SCENES: list[Callable[[], Scene]] = [
    search_everywhere,
    redirects_to_the_home_page,
    application_with_pages_of_its_own,
    *(partial(application_beside_pages, shell) for shell in SHELLS),
    register_that_makes_up_entries,
    down_with_status_200,
    wall_like_what_is_shown_where_nothing_is,
    page_that_says_the_same_but_for_a_few_words,
]


@pytest.mark.parametrize("scene", SCENES)
@driven
async def test_no_content_is_lost(tmp_path: Path, scene: Callable[[], Scene]) -> None:
    served, paths, wanted, has, lacks = scene()
    found = await crawl(served, paths, tmp_path / "log")
    assert {*wanted} - {*found.kept} == set()
    for stats, are_there in ((has, True), (lacks, False)):
        assert [f"dedup/{name}" in found.stats for name in stats] == [are_there] * len(stats)


@driven
async def test_a_home_page_that_is_shown_everywhere_else_is_kept(tmp_path: Path) -> None:
    home = page("The shop", words("front", 150))
    found = await crawl(shop(lambda path: home), ["/", *THINGS, *DEAD], tmp_path / "log")
    assert sorted(found.kept) == sorted(["/", *THINGS])
    assert "dedup/alarms" not in found.stats


@driven
async def test_of_an_application_with_its_shell_everywhere_as_much_is_kept_as_unasked(tmp_path: Path) -> None:
    """Its pages are told apart by scripts, or by a callback that knows their addresses."""
    found, without = [
        await crawl(Served(lambda path: SHELL), ["/", *THINGS], tmp_path / f"{probe}", probe=probe)
        for probe in (True, False)
    ]
    assert sorted(found.kept) == sorted(without.kept)
    assert not found.soft


@driven
async def test_of_a_wiki_no_article_is_lost_and_of_missing_ones_a_few_are_kept(tmp_path: Path) -> None:
    """A missing one is an edit form with its title."""
    articles = ["/", *(f"/wiki/{name}" for name in words("articles", 40).split())]
    missing = [f"/wiki/{words(('missing', n), 2).replace(' ', '_')}" for n in range(20)]

    def answer(path: str) -> str:
        title = path.rpartition("/")[2].replace("_", " ")
        edit = f"<a href='{path}?action=edit'>edit</a>"
        if path in articles:
            return page(title, f"{words(path, 100)} {edit}")
        form = f"{title} does not exist. {words('edit', 400)} <form><textarea></textarea>{edit}"
        return page(f"Create {title}", form)

    found = await crawl(Served(answer), [*articles, *missing], tmp_path / "log")
    assert {*articles} <= {*found.kept}
    assert len(found.soft) >= 16


# --- Over HTTP ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obeys", "nothing", "asks"),
    [(False, SORRY, 2), (True, SORRY, 0), slow(False, SHELLS["a mount"], 1)],
    ids=["asks", "robots", "shell"],
)
def test_a_crawl_asks_its_host_for_two_addresses_and_one_page_unless_robots_forbid_it(
    crawl: Run, site: Site, obeys: bool, nothing: str, asks: int
) -> None:
    gone = [f"/gone/{n}/{name[1:]}" for n, name in enumerate(THINGS[:12])]
    links = "".join(f"<a href={path}>more</a>" for path in [*THINGS, *gone])
    shown = {"/robots.txt": "User-agent: *\nAllow: /thing\nAllow: /gone\nAllow: /$\nDisallow: /"}
    shown |= {"/": page("The shop", words("front", 150) + links)}
    shown |= {path: page("Thing", words(path, 120)) for path in THINGS}

    def on_request(path: str) -> None:
        site.pages[path] = html(shown.get(path) or page("Not found", nothing))

    site.on_request = on_request
    done = crawl({}, DEDUP_CHROME=True, ROBOTSTXT_OBEY=obeys)
    assert len([*filter(is_nowhere, done.requests)]) == asks
    assert {*THINGS} <= {item["path"] for item in done.items}
    assert ("soft_404" in done.figures) is (asks == 2)
