"""What has become of a site since an earlier crawl: new, changed, moved, hidden, gone, or not seen."""

import json
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest

from dedup.history.changes import changes, unseen
from dedup.history.file import History
from dedup.scrapy.signals import change_found
from tests.support.changing import Shop
from tests.support.crawls import Crawl, Run, Site, Walker, html, listening, page, words
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


def test_three_crawls_of_a_shop_say_what_was_done_to_it(visits: Visits) -> None:
    shop = Shop(products=40)
    visits.crawl(shop)
    assert {word for word, _ in visits.told(0)} == {"new"}
    for _ in range(2):
        done = shop.live(0.2)
        visits.crawl(shop)
        assert visits.told() == done


@pytest.mark.slow
def test_four_crawls_of_a_larger_shop_tell_nearly_all_and_nearly_nothing_else(visits: Visits) -> None:
    shop, counts = Shop(products=300, sections=12, seed=11), Counter[tuple[str, str]]()
    visits.crawl(shop)
    for _ in range(3):
        done = shop.live(0.15)
        visits.crawl(shop, CONCURRENT_REQUESTS=8)
        told = visits.told()
        for word in ("new", "changed", "moved", "hidden", "gone"):
            mine, theirs = ({pair for pair in pairs if pair[0] == word} for pairs in (told, done))
            counts[word, "right"] += len(mine & theirs)
            counts[word, "told"] += len(mine)
            counts[word, "done"] += len(theirs)
    for word in ("new", "changed", "moved", "hidden", "gone"):
        assert counts[word, "right"] >= 0.99 * counts[word, "told"] > 0, (word, counts)
        assert counts[word, "right"] >= 0.99 * counts[word, "done"], (word, counts)


def test_an_incremental_crawl_hands_over_again_what_has_changed_of_a_page_s_own(visits: Visits) -> None:
    """The first pages of a host are handed over again until it is seen that all of them show another date."""
    shop = Shop(products=60)
    first = visits.crawl(shop, DEDUP_INCREMENTAL=True, DEDUP_KEEP_TEXT=False)
    assert len(first.items) == 65
    done = shop.live(0.1)
    second = visits.crawl(shop, DEDUP_INCREMENTAL=True, DEDUP_KEEP_TEXT=False)
    paths = {item["path"] for item in second.items}
    wanted = {path for word, path in done if word in {"new", "changed"}}
    assert wanted <= paths
    assert len(paths - wanted - {path for word, path in done if word == "moved"}) <= 8
    assert visits.told() == done
    assert second.figures["unchanged"] >= 35
    words = visits.crawl(shop, DEDUP_INCREMENTAL="words", DEDUP_KEEP_TEXT=False)
    assert len(words.items) == words.figures["pages"], "word for word, a counter is a change"


# --- When nothing is called gone -----------------------------------------------------------------------

CHAIN = {f"/{n}": page(n, f"/{n + 1}") for n in range(20)}
STORY = {"/": page("home", "/0", "/x"), "/x": page("x")} | CHAIN | {"/20": page(20)}


def test_of_a_crawl_that_is_stopped_what_it_has_not_met_is_not_seen(visits: Visits) -> None:
    visits.crawl(STORY)
    visits.crawl(STORY, CLOSESPIDER_PAGECOUNT=5)
    assert visits.told() == set()
    assert len(visits.unseen()) >= 12
    visits.crawl({path: answer for path, answer in STORY.items() if path != "/20"})
    assert visits.told() == {("gone", "/20")}
    assert visits.unseen() == []


def test_nothing_is_gone_where_less_than_half_is_met(visits: Visits) -> None:
    visits.crawl(STORY)
    visits.crawl({"/": page("home", "/0", "/x"), "/x": page("x"), "/0": page(0)})
    assert {word for word, _ in visits.told()} <= {"changed"}
    assert len(visits.unseen()) == 20


def test_behind_a_wall_nothing_is_gone(visits: Visits) -> None:
    visits.crawl(STORY)
    wall = html("<title>Log in</title><p>" + words("log in", 60))
    visits.crawl({path: wall if path != "/" else answer for path, answer in STORY.items()})
    assert not {word for word, _ in visits.told()} & {"gone", "moved", "hidden"}
    visits.crawl(STORY)
    assert not {word for word, _ in visits.told()} & {"gone", "moved", "hidden", "new"}


def test_a_page_that_can_not_be_had_is_not_gone(visits: Visits) -> None:
    visits.crawl(STORY)
    broken = (503, {}, b"")
    visits.crawl(
        {path: broken if path in {"/x", "/19"} else answer for path, answer in STORY.items()},
        RETRY_ENABLED=False,
    )
    assert visits.told() == set()
    assert sorted(visits.unseen()) == ["/19", "/20", "/x"]


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


def test_a_page_on_which_the_spider_failed_has_changed_when_it_is_met_again(visits: Visits) -> None:
    class Clumsy(Walker):
        def parse(self, response: Any) -> Any:
            if self.path(response) == "/x":
                raise ValueError
            yield from super().parse(response)

    visits.crawl(STORY, DEDUP_INCREMENTAL=True)
    other = STORY | {"/x": page("x", more="and a lamp")}
    assert visits.crawl(other, Clumsy, DEDUP_INCREMENTAL=True).items == []
    assert [item["path"] for item in visits.crawl(other, DEDUP_INCREMENTAL=True).items] == ["/x"]
    (change,) = visits.changes()
    assert (change.word, visits.path(change.url)) == ("changed", "/x")
    assert [(said.old, said.new) for said in change.edits] == [("", "and a lamp")]


def test_spiders_are_told(visits: Visits) -> None:
    visits.crawl(STORY)
    heard: list[Any] = []

    def hear(change: Any, response: Any) -> None:
        heard.append((change.word, visits.path(change.url), response is not None))

    shown = STORY | {"/y": page("y"), "/x": page("x", "/y", more="now")}
    del shown["/20"]
    visits.crawl(shown, listening(hear, change_found))
    assert sorted(heard) == [("changed", "/x", True), ("gone", "/20", False), ("new", "/y", True)]


# --- The command -------------------------------------------------------------------------------------------


def test_the_command_shows_writes_and_reports_what_has_changed(visits: Visits, tmp_path: Path) -> None:
    def ask(*options: object) -> Any:
        return scrapy("changes", "-s", f"DEDUP_INDEX={visits.index}", *options)

    assert (nothing := ask()).returncode == 3
    assert "no crawl with DEDUP_KEEP_TEXT or DEDUP_INCREMENTAL" in nothing.stderr
    visits.crawl(STORY)
    shown = STORY | {
        "/": page("home", "/0", "/x", "/%3Cb%3E"),
        "/%3Cb%3E": page("y"),
        "/x": page("x", more="now"),
    }
    visits.crawl(shown)
    output, report = tmp_path / "changes.jsonl", tmp_path / "report.html"
    done = ask("-o", output, "--html", report)
    assert done.returncode == 1, done.stderr
    assert "1 new, 2 changed, 0 moved, 0 hidden, 0 gone" in done.stdout
    lines = [json.loads(line) for line in output.read_text("ascii").splitlines()]
    told = {(line["change"], visits.path(line["url"])): line.get("edits") for line in lines}
    (said,) = told["changed", "/x"] or ()
    assert (said["old"], said["new"], said["before"].split()) == ("", "now", words("x").split()[-4:])
    assert {word for word, _ in told} == {"new", "changed"}
    assert "%3Cb%3E" in report.read_text("ascii")
    visits.crawl(shown)
    assert ask().returncode == 0
    assert ask("--since", "1h").stdout == ask("--since", "2020-01-01").stdout
    first = visits.crawls()[0].run
    assert "1 new, 2 changed" in ask("--since", first[:8]).stdout
    assert (wrong := ask("--since", "soon")).returncode == 2
    assert "an ISO date, 2h, 3d, 1w, or a run" in wrong.stderr
    assert "2 older versions deleted" in ask("--keep", 1).stdout
    assert ask("--keep", -1).returncode == 2


# --- Kills, stops, walls and failures at random moments ----------------------------------------------------


def interrupt(site: Site, shop: Shop, start: list[Any], chance: Random) -> None:
    """A crawl that ends, or is walled off, at some moment."""
    moment, asked = chance.randrange(1, shop.products + shop.sections), count()
    wall, ways = (
        html(f"<title>Log in</title><p>{words('log in', 60)}"),
        ("kill", "stop", "wall", "503", "half"),
    )
    way = chance.choice(ways)
    shop.instead = None

    def reached(path: str) -> None:
        if next(asked) != moment:
            return
        if way in ("kill", "stop"):
            process.send(SIGKILL if way == "kill" else SIGTERM)
        elif way != "half":
            shop.instead = wall if way == "wall" else (503, {}, b"")

    site.on_request = reached
    options = ("-s", f"CLOSESPIDER_PAGECOUNT={moment}") if way == "half" else ()
    process = Scrapy(*start, *options)
    assert process.wait(LIMIT) is not None
    site.on_request, shop.instead = lambda path: None, None


@pytest.mark.parametrize("times", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_nothing_is_called_gone_because_a_crawl_was_cut_short(site: Site, tmp_path: Path, times: int) -> None:
    shop, chance = Shop(products=20, sections=2), Random(times)
    site.pages = shop
    settings = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite", "DEDUP_LOG": "", "DEDUP_KEEP_TEXT": 1}
    settings |= {
        "CONCURRENT_REQUESTS": 2,
        "RETRY_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
    }
    start = [
        "crawl",
        "site",
        "-a",
        f"start={site.url}",
        *(f"-s{name}={value}" for name, value in settings.items()),
    ]
    assert Scrapy(*start).wait(LIMIT) == 0
    for _ in range(times):
        interrupt(site, shop, start, chance)
    assert Scrapy(*start).wait(LIMIT) == 0
    with History(tmp_path / "index.sqlite.history") as history:
        words = Counter(version.word for version in history.versions("true"))
        crawls = history.crawls()
        assert not words.keys() & {"gone", "left", "redirected", "hidden", "moved"}
        assert [crawl.is_whole for crawl in crawls][:: len(crawls) - 1] == [1, 1]
        assert len(crawls) == times + 2
