"""Bans, captchas and logins that are served with status 200: the spider gets every item that it got without us.

Each test crawls twice over HTTP on loopback, first with the filter switched off.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler as ScrapyCrawler
from scrapy.downloadermiddlewares.retry import get_retry_request

from tests.support import slow
from tests.support.crawls import TWINS, Answer, Crawl, Run, Site, Walker, html, page, words

WALL = html(f"<title>Are you a robot?</title><p>Are you a robot? {words('robot', 60)}</p>")
NOWHERE = (404, html("")[1], b"There is nothing")
PATHS = [f"/item/{number}" for number in range(20)]
PAGES = {"/": page("home", *PATHS)} | {path: page(path) for path in PATHS}
#: As a crawl is by default; else pages come one by one.
MANY = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}

#: Whether a request is answered by the wall: its path, how many there were for this path, and how many in all.
Bans = Callable[[str, int, int], bool]


def first(path: str, of_path: int, of_all: int) -> bool:
    return path != "/" and of_path == 1


def every(step: int) -> Bans:
    return lambda path, of_path, of_all: path != "/" and of_all % step == 0


class Retries(Walker):
    """Knows the wall, and sends the request again."""

    def parse(self, response: Any) -> Any:
        if "robot" in response.text:
            return [get_retry_request(response.request, spider=self, reason="ban", max_retry_times=9) or {}]
        return super().parse(response)


class RetriesEarly:
    """A downloader middleware that does the same."""

    def __init__(self, crawler: ScrapyCrawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: ScrapyCrawler) -> "RetriesEarly":
        return cls(crawler)

    async def process_response(self, request: Request, response: Any) -> Any:
        if b"robot" in response.body:
            return get_retry_request(request, spider=self.crawler.spider, reason="ban", max_retry_times=9)
        return response


@pytest.fixture
def both(crawl: Run, site: Site) -> Callable[..., tuple[Crawl, Crawl]]:
    """Crawls a site that bans some requests, without us and with us; every time it begins to count anew."""

    def run(
        pages: dict[str, Answer], bans: Bans, spider: type[Walker], **settings: Any
    ) -> tuple[Crawl, Crawl]:
        def one(**more: Any) -> Crawl:
            asked: Counter[str] = Counter()

            def on_request(path: str) -> None:
                asked[path] += 1
                is_banned = bans(path, asked[path], asked.total())
                site.pages[path] = WALL if is_banned else pages.get(path, NOWHERE)

            site.on_request = on_request
            return crawl(dict(pages), spider, **settings, **more)

        return one(DEDUP_ENABLED=False), one()

    return run


def paths(crawl: Crawl) -> Counter[str]:
    return Counter(item.get("path", "gave up") for item in crawl.items)


@pytest.mark.parametrize(
    ("bans", "settings"),
    [slow(first, {}), slow(every(3), MANY), (every(2), MANY | {"DEDUP_CHROME": True})],
)
def test_a_callback_may_retry(both: Any, bans: Bans, settings: dict[str, Any]) -> None:
    without, ours = both(PAGES, bans, Retries, **settings)
    assert paths(ours) == paths(without) == Counter([*PAGES])
    assert ours.figures["asked_again"]
    assert ours.mishaps == []


@pytest.mark.parametrize("order", [543, slow(546)])
def test_a_middleware_may_retry(both: Any, order: int) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": {RetriesEarly: order}}
    without, ours = both(PAGES, first, Walker, **settings)
    assert paths(ours) == paths(without) == Counter([*PAGES])
    assert (ours.figures["pages"], ours.figures["new"]) == (21, 21)


def test_a_callback_may_retry_and_give_up(both: Any) -> None:
    """Of four pages, one comes at once, one the second time, one only the first time, one too late: the spider gives up.

    The filter asks for some pages, too, and no request of its own may take the one good answer that the spider would get.
    """

    class GivesUp(Walker):
        def parse(self, response: Any) -> Any:
            if "robot" not in response.text:
                return super().parse(response)
            again = get_retry_request(response.request, spider=self, reason="ban", max_retry_times=1)
            return [again or {"path": f"gave up {self.path(response)}"}]

    kinds = [range(0), range(1, 2), range(2, 100), range(1, 3)]  # which requests of a page are banned

    def some(path: str, of_path: int, of_all: int) -> bool:
        return path in PATHS and of_path in kinds[PATHS.index(path) % 4]

    without, ours = both(PAGES, some, GivesUp, **MANY)
    found, before = ({path for path in paths(crawl) if path in PAGES} for crawl in (ours, without))
    assert before == {"/", *(path for number, path in enumerate(PATHS) if number % 4 < 3)}
    assert before <= found  # what is fetched again is fetched once more than before


def test_a_start_url_that_was_retried_is_kept_like_any_other(both: Any) -> None:
    class Listed(Retries):
        starts = ("/a", "/b")

    without, ours = both(TWINS, first, Listed)
    assert paths(ours) == paths(without) == Counter(["/a", "/b", "/behind-a", "/behind-b"])


# --- Logins -----------------------------------------------------------------------------------------

LOGIN = html(f"<p>Please log in. {words('login', 60)}</p><form action='/session' method=post></form>")


class LogsIn(Walker):
    """Logs in where it has to, and asks for the page again in the same callback."""

    def parse(self, response: Any) -> Any:
        if "Please log in" not in response.text:
            yield from super().parse(response)
            return
        yield self.log_in(callback=lambda response: None)
        yield self.again(response)

    def log_in(self, **options: Any) -> Request:
        return self.request("/session", method="POST", dont_filter=True, priority=9, **options)

    def again(self, response: Any) -> Request:
        asked = response.meta.get("redirect_urls", [response.url])[0]
        return self.request(asked.removeprefix(self.url), dont_filter=True)


class LogsInFirst(LogsIn):
    """Asks for the page again once it is logged in, in the callback of the login."""

    def parse(self, response: Any) -> Any:
        if "Please log in" not in response.text:
            return super().parse(response)
        return [self.log_in(callback=self.logged_in, cb_kwargs={"again": self.again(response)})]

    def logged_in(self, response: Any, again: Request) -> Any:
        yield again


@pytest.mark.parametrize(
    ("spider", "form", "settings"),
    [
        slow(LogsIn, "in place", {}),
        (LogsIn, "redirected", MANY),
        (LogsInFirst, "in place", MANY),
        slow(LogsInFirst, "redirected", {}),
    ],
)
def test_a_login_may_be_asked_for_in_mid_crawl(
    crawl: Run, site: Site, spider: type[Walker], form: str, settings: dict[str, Any]
) -> None:
    """The session ends after every seventh page; all pages then show the login, or lead to it."""

    def one(**more: Any) -> Crawl:
        asked: list[str] = []

        def on_request(path: str) -> None:
            asked.append(path)
            if path == "/session":
                asked.clear()
            if len(asked) < 7 or path.startswith(("/session", "/login")):
                site.pages[path] = pages.get(path, NOWHERE)
            elif form == "in place":
                site.pages[path] = LOGIN
            else:
                site.pages[path] = (302, {"Location": f"/login?next={path}"}, b"")

        site.on_request = on_request
        pages = PAGES | {"/session": page("session")} | {f"/login?next={path}": LOGIN for path in PAGES}
        return crawl(dict(pages), spider, **settings, **more)

    without, ours = one(DEDUP_ENABLED=False), one()
    assert paths(ours).keys() == paths(without).keys() == set(PAGES)
    assert form == "in place" or "dropped" not in ours.figures
    assert ours.mishaps == []


# --- Walls of which a spider knows nothing ----------------------------------------------------------


@pytest.mark.parametrize("settings", [slow({}), MANY | {"DEDUP_CHROME": True}])
def test_a_wall_is_seen_early_and_what_was_dropped_for_it_is_fetched_again(both: Any, settings: Any) -> None:
    without, ours = both(PAGES, first, Walker, **settings)
    assert set(paths(ours)) == set(paths(without)) == set(PAGES)
    [alarm] = [m.getMessage() for m in ours.messages if m.getMessage().startswith("Alarm")]
    assert "looks like 6 different pages of 127.0.0.1" in alarm
    assert ours.figures["dropped"] == ours.figures["fetched_again"]
    assert ours.figures["unjudged/alarm"] >= 20 - 1 - ours.figures["dropped"]


def test_a_trap_of_one_path_is_no_wall(crawl: Run) -> None:
    copies = {f"/trap?i={number}": page("trap", more=str(number)) for number in range(30)}
    done = crawl({"/": page("home", *copies), **copies}, **MANY)
    assert (done.figures["dropped"], done.figures["new"]) == (29, 2)
    assert "alarms" not in done.figures


def test_mirrors_and_sessions_are_no_walls(crawl: Run) -> None:
    versions = {
        f"/{version}.0/{name}": page(name, more=str(version)) for version in range(8) for name in "abc"
    }
    sessions = {f"/{number:016x}a/story.html": page("story", more=str(number)) for number in range(20)}
    pages = versions | sessions
    done = crawl({"/": page("home", *pages), **pages}, **MANY)
    assert (done.figures["dropped"], done.figures["new"]) == (len(pages) - 4, 5)
    assert "alarms" not in done.figures
