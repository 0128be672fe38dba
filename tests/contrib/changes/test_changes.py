"""What has become of a site since an earlier crawl: new, changed, moved, hidden, gone, or not seen."""

import json
import sqlite3
from argparse import ArgumentParser
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.contrib.changes.changes import changes, unseen
from dedup.contrib.changes.commands import Command
from dedup.contrib.changes.contents import Contents
from dedup.contrib.changes.file import History
from dedup.filter.change import WORDS, Said
from dedup.scrapy.signals import change_found
from tests.support import slow
from tests.support.changing import Shop, crawling
from tests.support.crawls import (
    Answer,
    Crawl,
    Run,
    Site,
    Walker,
    failing,
    html,
    listening,
    losing,
    page,
    words,
)
from tests.support.processes import Scrapy, scrapy
from tests.support.waiting import LIMIT


class Visits:
    """Crawls of one site, by one index."""

    def __init__(self, crawl: Run, site: Site, folder: Path) -> None:
        self._crawl = crawl
        self._site = site
        self.index = f"file:{folder / 'index.sqlite'}"
        self.history = Path(folder, "index.sqlite.history")

    def crawl(self, pages: Any, spider: type[Walker] = Walker, **settings: Any) -> Crawl:
        own = {"DEDUP_INDEX": self.index, "DEDUP_CHROME": True, "DEDUP_KEEP_TEXT": True}
        self.last = self._crawl(pages, spider, **own | settings)
        return self.last

    def told(self, since: int | None = None) -> set[tuple[str, str]]:
        """Words and paths since the crawl before the last, or since another."""
        return {(change.word, self.path(change.url)) for change in self.changes(since)}

    def changes(self, since: int | None = None) -> list[Any]:
        with History(self.history) as history:
            number = history.crawls()[-1].number - 1 if since is None else since
            return list(changes(history, number))

    def crawls(self) -> list[Any]:
        with History(self.history) as history:
            return history.crawls()

    def unseen(self) -> list[str]:
        with History(self.history) as history:
            return [self.path(url) for url in unseen(history, history.crawls()[-1])]

    @property
    def url(self) -> str:
        return self._site.url

    def path(self, url: str) -> str:
        return url.removeprefix(self.url)


@pytest.fixture
def visits(crawl: Run, site: Site, tmp_path: Path) -> Visits:
    return Visits(crawl, site, tmp_path)


def test_crawls_of_a_shop_say_what_was_done_to_it(visits: Visits) -> None:
    """The first pages of a host are handed over again until it is seen that all of them show another date."""
    shop = Shop(products=30)
    first = visits.crawl(shop, DEDUP_INCREMENTAL=True, DEDUP_KEEP_TEXT=False)
    assert len(first.items) == 35
    assert {word for word, _ in visits.told(0)} == {"new"}
    done = shop.live(0.2)
    second = visits.crawl(shop, DEDUP_INCREMENTAL=True, DEDUP_KEEP_TEXT=False)
    paths = {item["path"] for item in second.items}
    wanted = {path for word, path in done if word in {"new", "changed"}}
    assert wanted <= paths
    assert len(paths - wanted - {path for word, path in done if word == "moved"}) <= 8
    assert visits.told() == done
    assert second.figures["unchanged"] >= 15
    told = {word: second.figures.get(f"changes/{word}", 0) for word in WORDS}
    assert told == {word: sum(word == one for one, _ in done) for word in WORDS}
    done = shop.live(0.2)
    words = visits.crawl(shop, DEDUP_INCREMENTAL="words")
    assert visits.told() == done
    assert len(words.items) == words.figures["pages"], "word for word, a counter is a change"


def test_a_page_that_is_redirected_to_where_no_link_leads_has_moved(visits: Visits) -> None:
    visits.crawl(STORY)
    hidden = {path: answer for path, answer in STORY.items() if path != "/x"}
    redirected = {"/": page("home", "/0"), "/x": (301, {"Location": "/y"}, b""), "/y": page("x")}
    for told in ({("changed", "/"), ("moved", "/y")}, {("hidden", "/y")}, set()):
        visits.crawl(hidden | redirected)
        assert visits.told() == told


class Following(Walker):
    """Follows links where they are, on whichever host."""

    def parse(self, response: Any) -> Any:
        yield self.note(response)
        for link in self.links(response):
            yield response.follow(link)


def test_all_pages_have_moved_where_a_host_is_renamed(visits: Visits) -> None:
    visits.crawl(STORY, Following)
    new = visits.url.replace("127.0.0.1", "localhost")

    def renamed(path: str) -> Any:
        moved = 301, {"Location": new + path}, b""
        return lambda headers: moved if headers["Host"].startswith("127") else STORY[path]

    visits.crawl({path: renamed(path) for path in STORY}, Following)
    told = visits.changes()
    assert {(change.word, change.url.removeprefix(new)) for change in told} == {
        ("moved", path) for path in STORY
    }
    assert {change.other for change in told if change.is_redirected} == {visits.url + "/"}
    assert visits.unseen() == []


# --- When nothing is called gone -----------------------------------------------------------------------

LAST = 8
CHAIN = {f"/{n}": page(n, f"/{n + 1}") for n in range(LAST)}
STORY = {"/": page("home", "/0", "/x"), "/x": page("x")} | CHAIN | {f"/{LAST}": page(LAST)}


def test_of_a_crawl_that_is_stopped_what_it_has_not_met_is_not_seen(visits: Visits) -> None:
    visits.crawl(STORY)
    visits.crawl(STORY, CLOSESPIDER_PAGECOUNT=5)
    assert visits.told() == set()
    assert len(visits.unseen()) >= 4
    visits.crawl({path: answer for path, answer in STORY.items() if path != "/8"})
    assert visits.told() == {("gone", "/8")}
    assert visits.unseen() == []


def test_nothing_is_gone_where_less_than_half_is_met(visits: Visits) -> None:
    visits.crawl(STORY)
    visits.crawl({"/": page("home", "/0", "/x"), "/x": page("x"), "/0": page(0)})
    assert {word for word, _ in visits.told()} <= {"changed"}
    assert len(visits.unseen()) == 8


def test_behind_a_wall_nothing_is_gone(visits: Visits) -> None:
    visits.crawl(STORY)
    wall = html("<title>Log in</title><p>" + words("log in", 60))
    visits.crawl({path: wall if path != "/" else answer for path, answer in STORY.items()})
    assert not {word for word, _ in visits.told()} & {"gone", "moved", "hidden"}
    visits.crawl(STORY)
    assert not {word for word, _ in visits.told()} & {"gone", "moved", "hidden", "new"}


@pytest.mark.parametrize("wall", [(302, {"Location": "/login"}, b""), (404, {}, b"")], ids=["login", "404"])
def test_behind_a_wall_that_is_put_up_late_nothing_is_gone(visits: Visits, wall: Answer) -> None:
    class Walled(dict[str, Answer]):
        is_up = False

        def get(self, path: str, default: Any = None) -> Any:
            self.is_up = self.is_up or path == "/4"
            return wall if self.is_up and path != "/login" else super().get(path, default)

    visits.crawl(STORY | {"/6": page("log in", "/7")})
    visits.crawl(Walled(STORY | {"/login": page("log in")}))
    assert not {"gone", "moved"} & {word for word, _ in visits.told()}
    assert len(visits.unseen()) == 5
    assert not visits.crawls()[-1].is_whole


def test_a_page_that_can_not_be_had_is_not_gone(visits: Visits) -> None:
    visits.crawl(STORY)
    broken = (503, {}, b"")
    visits.crawl(
        {path: broken if path in {"/x", "/7"} else answer for path, answer in STORY.items()},
        RETRY_ENABLED=False,
    )
    assert visits.told() == set()
    assert sorted(visits.unseen()) == ["/7", "/8", "/x"]


def test_a_page_that_failed_once_is_not_hidden(visits: Visits) -> None:
    """It is linked, and served when it is asked for at the end."""

    class OptsOut(Walker):
        def request(self, path: str, **options: Any) -> Any:
            return super().request(path, **options, meta={"dedup": False} if path == "/8" else {})

    visits.crawl(STORY)
    asked = count()
    once = STORY | {"/x": lambda headers: STORY["/x"] if next(asked) else (503, {}, b"")}
    visits.crawl(once, OptsOut, RETRY_ENABLED=False)
    assert visits.told() == set()
    assert sorted(visits.unseen()) == ["/8", "/x"]


class Fails(Walker):
    """Has an error on one page, before it has followed its links."""

    def parse(self, response: Any) -> Any:
        yield self.note(response)
        if self.path(response) == "/fails":
            raise ValueError
        for link in self.links(response):
            yield self.request(link)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/new", (503, {}, b"")),
        slow("/new", (429, {}, b"")),
        ("/new", (302, {"Location": "http://127.0.0.1:1/"}, b"")),
        ("/new", html("<p>half of it", **{"Content-Length": "9000"})),
        ("/fails", page("fails", "/7")),
    ],
    ids=["503", "429", "no connection", "cut off", "error"],
)
def test_what_an_unread_page_may_link_to_is_not_hidden(visits: Visits, path: str, answer: Answer) -> None:
    """No earlier crawl has met that page."""
    visits.crawl(STORY, Fails)
    anew = STORY | {"/6": page(6, path)}
    visits.crawl(anew | {path: answer}, Fails, RETRY_ENABLED=False, DOWNLOAD_FAIL_ON_DATALOSS=False)
    assert visits.told() <= {("changed", "/6"), ("new", path)}
    assert sorted(visits.unseen()) == ["/7", "/8"]
    visits.crawl(anew | {path: page("new")}, RETRY_ENABLED=False)
    assert {("hidden", "/7"), ("hidden", "/8")} <= visits.told()


def test_a_page_comes_back(visits: Visits) -> None:
    without = {path: answer for path, answer in STORY.items() if path != "/x"}
    unlinked = STORY | {"/": page("home", "/0")}
    for site, told in (
        (STORY, {"new"}),
        (without, {"gone"}),
        (STORY, {"new"}),
        (unlinked, {"changed", "hidden"}),
        (unlinked, set()),
        (STORY, {"changed"}),
    ):
        visits.crawl(site)
        assert {word for word, _ in visits.told()} == told


def test_a_page_on_which_the_spider_failed_has_changed(visits: Visits) -> None:
    visits.crawl(STORY, DEDUP_INCREMENTAL=True)
    other = STORY | {"/x": page("x", more="and a lamp")}
    assert visits.crawl(other, failing("/x"), DEDUP_INCREMENTAL=True).items == []
    assert [item["path"] for item in visits.crawl(other, DEDUP_INCREMENTAL=True).items] == ["/x"]
    (change,) = visits.changes()
    assert (change.word, visits.path(change.url)) == ("changed", "/x")
    assert [(said.old, said.new) for said in change.edits] == [("", "and a lamp")]


def test_what_a_page_said_before_it_was_dropped_for_another_is_not_known_any_more(visits: Visits) -> None:
    def shop(price: str, *paths: str) -> Site:
        return {"/": page("home", *paths)} | {path: page(f"lamp for {price}") for path in paths}

    lamp, mailed = "/lamp", "/lamp?utm_source=mail"
    items = [
        visits.crawl(shop(*told), DEDUP_INCREMENTAL=True, CONCURRENT_REQUESTS=1).items
        for told in (("7", lamp, mailed), ("5", mailed, lamp), ("7", lamp, mailed))
    ]
    assert [len([item for item in each if item["path"].startswith(lamp)]) for each in items] == [1, 1, 1]


def test_a_short_page_that_failed_is_handed_over_again(visits: Visits) -> None:
    site = {"/": page("home", "/short", "/brief"), "/short": html("Sold out"), "/brief": html("Not yet")}
    refusing = {"ITEM_PIPELINES": {losing("/brief"): 1}}
    broken = visits.crawl(site, failing("/short"), DEDUP_INCREMENTAL=True, **refusing)
    assert [item["path"] for item in broken.items] == ["/"]
    assert {item["path"] for item in visits.crawl(site, DEDUP_INCREMENTAL=True).items} == {"/short", "/brief"}
    assert visits.crawl(site, DEDUP_INCREMENTAL=True).items == []


class Carrying(Walker):
    """Has /y complete the item that it begins on /x."""

    def parse(self, response: Any, text: str = "") -> Any:
        yield {"path": self.path(response), "text": text}
        for link in self.links(response):
            of_x = link == "/y" and self.path(response) == "/x"
            yield self.request(link, cb_kwargs={"text": response.text} if of_x else {})


def test_a_page_whose_request_carries_a_change_is_handed_over(visits: Visits) -> None:
    """`make chaos SEED=520026` has lost items of several pages of which only the first one had changed."""
    stores = STORY | {"/x": page("x", "/y"), "/y": page("y")}
    assert len(visits.crawl(stores, Carrying, DEDUP_INCREMENTAL=True).items) > 2
    assert visits.crawl(stores, Carrying, DEDUP_INCREMENTAL=True).items == []
    stores |= {"/x": page("x", "/y", more="and a lamp")}
    items = visits.crawl(stores, Carrying, DEDUP_INCREMENTAL=True).items
    assert {item["path"] for item in items} == {"/x", "/y"}
    assert ["and a lamp" in item["text"] for item in items if item["path"] == "/y"] == [True]
    with closing(
        sqlite3.connect(visits.history)
    ) as database:  # a file of before, which does not say what was carried
        database.execute("ALTER TABLE versions DROP COLUMN carried")
    assert (
        visits.crawl(stores, Carrying, DEDUP_INCREMENTAL=True).items == []
    )  # the index knows these very words


class Twice(Walker):
    """As Scrapy does it, the start is no link that was met."""

    async def start(self) -> Any:
        yield self.request("/", dont_filter=True)


@pytest.mark.parametrize("batch", [1, 64], ids=["it is written", "not yet written"])
def test_a_page_met_twice_is_told_once(visits: Visits, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("dedup.contrib.changes.file.BATCH", batch)
    visited, front, news = count(), page("home", "/", "/x"), ["old"]

    def home(headers: object) -> Any:
        return html(front[2] + f"<p>{words(news[-1], 9)}<p>visit {next(visited)}".encode())

    site = {"/": home, "/x": page("x", "/y"), "/y": page("y")}
    first = visits.crawl(site, Twice, DEDUP_PROBE=False)
    assert first.requests.count("/") > 1
    assert first.figures["changes/new"] == 3
    assert "changes/changed" not in first.figures
    news.append("new")
    second = visits.crawl(site, Twice, DEDUP_PROBE=False)
    assert visits.told() == {("changed", "/")}
    assert second.figures["changes/changed"] == 1


def test_spiders_are_told(visits: Visits) -> None:
    visits.crawl(STORY)
    heard: list[Any] = []

    def hear(change: Any, response: Any) -> None:
        heard.append((change.word, visits.path(change.url), response is not None))

    shown = STORY | {"/y": page("y"), "/x": page("x", "/y", more="now")}
    del shown["/8"]
    visits.crawl(shown, listening(hear, change_found))
    assert sorted(heard) == [("changed", "/x", True), ("gone", "/8", False), ("new", "/y", True)]


def test_a_date_around_all_pages_is_no_change(visits: Visits) -> None:
    asked = count(100)

    def site(day: int) -> dict[str, Any]:
        """Each page is of a kind of its own."""

        def shown(name: str, *links: str) -> Any:
            return lambda headers: page(
                name, *links, more=f"day {day} and visitor {next(asked)} {words('foot', 9)}"
            )

        names = [f"/{letter}" for letter in "abcdefghij"]
        return {"/": shown("home", *names)} | {name: shown(name, "/") for name in names}

    for day in (2, 3, 4):  # the front page is met first, and last
        assert visits.crawl(site(day), Twice).requests.count("/") > 1
    assert visits.told() == set()
    assert visits.last.figures["changes/changed"] == 0


def test_a_counter_of_a_new_template_is_no_change(visits: Visits) -> None:
    asked = count(100)

    def site(template: int, **changed: str) -> dict[str, Any]:
        def shown(name: str, *links: str) -> Any:
            anchors = "".join(f"<a href='{link}'></a>" for link in links)
            own = f"<div><p>{changed.get(name, f'the{name} of')} {words(name, 90)}</p>{anchors}</div>"

            def answer(headers: Any) -> Answer:
                counter = f" and now {next(asked)}" if template else ""
                side = f"<ul><li>one<li>{words(('side', template), 30)}{counter}</ul>"
                return html(f"<title>A page</title>{side}{own}<p>{words(('foot', template), 30)}")

            return answer

        names = [f"/p{n}" for n in range(10)]
        return {"/": shown("home", *names)} | {name: shown(name[1:]) for name in names}

    visits.crawl(site(0), DEDUP_INCREMENTAL=True)
    visits.crawl(site(1), DEDUP_INCREMENTAL=True)
    assert visits.told() == set()
    done = visits.crawl(site(1, p7="a", p8="this of"), DEDUP_INCREMENTAL=True)
    assert visits.told() == {("changed", "/p7"), ("changed", "/p8")}
    assert len(done.items) <= 10
    assert next(asked) < 1_000, "a counter of more words is another place"


def test_noise_is_known_beside_the_cache_of_scrapy(visits: Visits, tmp_path: Path) -> None:
    """It would answer twice the same, so that nothing seemed to change."""
    shop = Shop(products=12, sections=2)
    for night in "ab":
        cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / night)}
        visits.crawl(shop, DEDUP_INCREMENTAL=True, **cache)
    assert visits.told() == set()
    asked = len(visits.last.requests)
    done = visits.crawl(shop, DEDUP_INCREMENTAL=True, **cache)
    assert asked > 14
    assert not [path for path in done.requests if path.startswith(("/goods", "/section"))], (
        "all is from the cache"
    )


@pytest.mark.parametrize("side", ["before", "behind"])
def test_a_word_that_goes_beside_noise_is_a_change(visits: Visits, side: str) -> None:
    """Be the page one of those that are asked for to learn of noise, or the advert as much longer as it is shorter."""
    asked = count(100)
    names = [f"/p{n}" for n in range(10)]

    def site(day: int, *shorter: str) -> dict[str, Any]:
        def shown(name: str, *links: str) -> Any:
            anchors = "".join(f"<a href='{link}'></a>" for link in links)
            own = words(name, 90).split()
            if name in shorter:
                del own[0 if side == "before" else -1]

            def answer(headers: Any) -> Answer:
                advert = f"<div>now {' '.join(f'ad{next(asked)}' for _ in range(2 + day))}</div>"
                if side == "behind":
                    advert = f"<div>{next(asked)} visits</div>"
                around = advert, f"<p>{' '.join(own)}</p>{anchors}"
                return html(
                    f"<title>A page</title>{''.join(around[:: 1 if side == 'before' else -1])}<p>{words('foot', 30)}"
                )

            return answer

        return {"/": shown("/", *names)} | {name: shown(name) for name in names}

    visits.crawl(site(1), DEDUP_INCREMENTAL=True)
    done = visits.crawl(site(2, *names), DEDUP_INCREMENTAL=True)
    assert {("changed", name) for name in names} <= visits.told()
    assert {*names} <= {item["path"] for item in done.items}


def ticked(menu: str = "", stars: Any = None, **signs: str) -> dict[str, Any]:
    """Pages that show a cross, or another sign; with stars that change from answer to answer, or with a sign in the menu."""

    def shown(name: str, *links: str) -> Any:
        def answer(headers: Any) -> Answer:
            rated = "★" * (next(stars) % 5) if stars else ""
            return page(name, *links, more=f"in stock: {signs.get(name, '✗')}. {menu} {rated}")

        return answer

    names = [f"p{n}" for n in range(10)]
    return {"/": shown("home", *(f"/{name}" for name in names))} | {f"/{name}": shown(name) for name in names}


def test_a_cross_that_becomes_a_tick_is_a_change(visits: Visits) -> None:
    visits.crawl(ticked(), DEDUP_INCREMENTAL=True)
    done = visits.crawl(ticked(p7="✓"), DEDUP_INCREMENTAL=True)
    assert [(visits.path(one.url), *one.edits) for one in visits.changes()] == [("/p7", Said("✗", "✓"))]
    assert [item["path"] for item in done.items] == ["/p7"]
    assert visits.crawl(ticked(p7="✓"), DEDUP_INCREMENTAL=True).items == []


def test_signs_that_change_everywhere_are_no_change(visits: Visits) -> None:
    stars = count()
    visits.crawl(ticked(stars=stars), DEDUP_INCREMENTAL=True)
    done = visits.crawl(ticked(stars=stars), DEDUP_INCREMENTAL=True)
    assert visits.told() == set()
    assert len(done.items) < 8
    visits.crawl(ticked(), DEDUP_PROBE=False)
    visits.crawl(ticked("→"), DEDUP_PROBE=False)
    assert visits.told() == set()


def test_what_is_learned_of_noise_late_counts_for_all_pages() -> None:
    """A counter beside the date of the day makes the edits of all pages differ, until it is known."""
    contents = Contents(cast(Any, None), cast(Any, SimpleNamespace(heard=[])))
    told = {f"http://a.org/{n}": [Said(f"1 visits {n}", f"2 visits {n + 50}")] for n in range(20)}
    for url, found in told.items():
        contents.meet(url)
        contents.note(url, found)
        assert contents.own(url, found) == found
    for url, found in told.items():
        contents.note(url, [Said("1", "2")], contents.told(url, found).keys)
    assert all(contents.own(url, [Said("1", "2")]) == [] for url in told)
    assert all(contents.own(url, found) == found for url, found in told.items())


# --- The command -------------------------------------------------------------------------------------------


def test_the_command_shows_writes_and_reports_what_has_changed(
    visits: Visits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(*options: object) -> tuple[int, str]:
        """In this process."""
        command, parser = Command(), ArgumentParser()
        command.settings = Settings({"DEDUP_INDEX": visits.index})
        command.add_options(parser)
        opts, rest = parser.parse_known_args([*map(str, options)])
        capsys.readouterr()
        command.run(rest, opts)
        return command.exitcode, "".join(capsys.readouterr())

    status, nothing = ask()
    assert status == 3
    assert "no crawl with DEDUP_KEEP_TEXT or DEDUP_INCREMENTAL" in nothing
    visits.crawl(STORY)
    shown = STORY | {
        "/": page("home", "/0", "/x", "/%3Cb%3E"),
        "/%3Cb%3E": page("y"),
        "/x": page("x", more="now"),
    }
    visits.crawl(shown)
    output, report = tmp_path / "changes.jsonl", tmp_path / "report.html"
    done = scrapy("changes", "-s", f"DEDUP_INDEX={visits.index}", "-o", output, "--html", report)
    assert done.returncode == 1, done.stderr
    assert "1 new, 2 changed, 0 moved, 0 hidden, 0 gone" in done.stdout
    assert f"         + {' '.join(words('x').split()[-2:])} now\n" in done.stdout
    lines = [json.loads(line) for line in output.read_text("ascii").splitlines()]
    told = {(line["change"], visits.path(line["url"])): line.get("edits") for line in lines}
    (said,) = told["changed", "/x"] or ()
    assert (said["old"], said["new"], said["before"].split()) == ("", "now", words("x").split()[-4:])
    assert {word for word, _ in told} == {"new", "changed"}
    assert "%3Cb%3E" in report.read_text("ascii")
    visits.crawl(shown)
    assert ask()[0] == 0
    status, since_ever = ask("--since", "2020-01-01")
    assert ask("--since", "1h") == (status, since_ever)
    assert "and all before it\n  12 new, 0 changed" in since_ever
    first = visits.crawls()[0].run
    assert "1 new, 2 changed" in ask("--since", first[:8])[1]
    status, wrong = ask("--since", "soon")
    assert status == 2
    assert "an ISO date, 2h, 3d, 1w, or a run" in wrong
    assert "2 older versions deleted" in ask("--keep", 1)[1]
    assert "1 new, 2 changed" in ask("--since", first[:8])[1]
    with pytest.raises(UsageError):
        ask("--keep", -1)


# --- Kills, stops, walls and failures at random moments ----------------------------------------------------


def interrupt(site: Site, shop: Shop, start: list[Any], chance: Random) -> None:
    """A crawl that ends, or is walled off, at some moment."""
    # A crawl takes about 1.6 requests a page, robots.txt, probes and what is asked for at the end included.
    moment, asked = chance.randrange(1, 2 * shop.products), count()
    instead: dict[str, Answer] = {
        "wall": shop.get("/login"),
        "login": (302, {"Location": "/login"}, b""),
        "503": (503, {}, b""),
        "404": (404, {}, b""),
    }
    way = chance.choice(["kill", "stop", "half", *instead])
    shop.instead = None

    def reached(path: str) -> None:
        if next(asked) != moment:
            return
        if way in ("kill", "stop"):
            process.send(SIGKILL if way == "kill" else SIGTERM)
        else:
            shop.instead = instead.get(way)

    site.on_request = reached
    options = ("-s", f"CLOSESPIDER_PAGECOUNT={moment}") if way == "half" else ()
    process = Scrapy(*start, *options)
    assert process.wait(LIMIT) is not None
    site.on_request, shop.instead = lambda path: None, None


@pytest.mark.parametrize("times", [2, slow(100)])
def test_nothing_is_called_gone_because_a_crawl_was_cut_short(site: Site, tmp_path: Path, times: int) -> None:
    shop, chance = Shop(products=20, sections=2), Random(times)
    site.pages = shop
    start = crawling(site, tmp_path / "index.sqlite", DEDUP_KEEP_TEXT=1, RETRY_ENABLED=False)
    assert Scrapy(*start).wait(LIMIT) == 0
    for _ in range(times):
        interrupt(site, shop, start, chance)
    assert Scrapy(*start).wait(LIMIT) == 0
    with History(tmp_path / "index.sqlite.history") as history:
        said = {(one.url.removeprefix(site.url), one.word) for one in history.versions("true")}
        crawls = history.crawls()
        # Only redirects lead to the login, which is served all the time: without them it is hidden.
        assert {one for one in said if one[1] not in {"new", "changed"}} <= {
            ("/login", "hidden"),
            ("/login", "back"),
        }
        assert [crawl.is_whole for crawl in crawls][:: len(crawls) - 1] == [1, 1]
        assert len(crawls) == times + 2
