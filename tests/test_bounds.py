"""The filter's own requests do nothing that the crawl would not do, and are no pages of it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from scrapy import FormRequest, Request
from scrapy.exceptions import IgnoreRequest

from dedup.page.actions import is_action
from tests.support import serving, slow
from tests.support.crawls import TWINS, Answer, Run, Site, Walker, failing_late, hold, html, page, words

COPIES = range(14)


@contextmanager
def elsewhere(asked: list[str]) -> Iterator[str]:
    """Another host; yields its URL."""

    def answer(request: Any) -> serving.Answer:
        asked.append(request.path)
        status, headers, body = page("secret")
        return status, headers.items(), body

    with serving.served(answer, "127.0.0.2") as port:
        yield f"http://127.0.0.2:{port}"


class Counting:
    """Pages with a counter, each at two addresses, so that kept ones are fetched again; ``second`` is what they answer then."""

    def __init__(self, path: str = "/view?id={}", second: Answer | None = None) -> None:
        self.served = 0
        self.asked = Counter[str]()
        self.second = second
        paths = [path.format(number) + more for number in COPIES for more in ("", "&from=home")]
        self.pages: dict[str, Any] = {"/": page("home", *(path.replace("&", "&amp;") for path in paths))}
        self.pages |= {path: self.answering(path) for path in paths}

    def answering(self, path: str) -> Any:
        def answer(_: object) -> Answer:
            self.asked[path] += 1
            if self.asked[path] > 1 and self.second is not None:
                return self.second
            self.served += 1
            own = path.partition("&")[0]
            menu, title, seen = words("menu", 50), words(own, 3), words(self.served, 2)
            return html(
                f"<title>{title}</title><h1>{title}</h1><nav>{menu}</nav><p>{words(own, 80)}</p>"
                f"<p>seen {self.served} times, {seen}</p>"
            )

        return answer

    @property
    def twice(self) -> list[str]:
        return [path for path, times in self.asked.items() if times > 1]


def test_no_redirect_is_followed_from_a_page_that_is_asked_again(crawl: Run) -> None:
    asked: list[str] = []
    with elsewhere(asked) as other:
        site = Counting(second=(302, {"Location": f"{other}/delete?id=1"}, b""))
        crawl(site.pages, DEDUP_CHROME=True)
    assert site.twice
    assert asked == []


def test_nor_to_another_page_of_its_host(crawl: Run, site: Site) -> None:
    counting = Counting(second=(302, {"Location": "/private"}, b""))
    done = crawl(counting.pages | {"/private": page("private")}, DEDUP_CHROME=True)
    assert counting.twice
    assert "/private" not in done.requests


LateFailure = failing_late("/a", "dedup/pages", 3)


@pytest.mark.parametrize("is_far", [True, False])
def test_a_page_that_is_fetched_again_does_not_leave_its_host(crawl: Run, site: Site, is_far: bool) -> None:
    hold(site, "/b", 2)  # whichever comes first is kept
    asked: list[str] = []
    with elsewhere(asked) as other:
        moved = (302, {"Location": f"{other}/x" if is_far else "/x"}, b"")
        answers = iter([page("story"), moved])
        pages: dict[str, Any] = {"/": page("home", "/a", "/b"), "/a": page("story"), "/x": page("story")}
        pages["/b"] = lambda _: next(answers)
        done = crawl(pages, LateFailure, CONCURRENT_REQUESTS=8)
    assert done.figures["fetched_again"] == 1
    assert asked == []
    told = [failure.value for failure in done.spider.failures if type(failure.value) is IgnoreRequest]
    assert len(told) == done.figures.get("off_host", 0) == is_far
    assert ("/x" in done.requests) is not is_far


def test_own_requests_pass_what_the_project_guards_its_crawl_with(crawl: Run) -> None:
    class Guard:
        def process_request(self, request: Request, spider: object = None) -> None:
            passed.append(request.url)

    passed: list[str] = []
    site = Counting()
    done = crawl(site.pages, DEDUP_CHROME=True, DOWNLOADER_MIDDLEWARES={Guard: 1})
    assert site.twice
    assert Counter(passed) == Counter(done.spider.url + path for path in done.requests)


@pytest.mark.parametrize("limit", ["CLOSESPIDER_PAGECOUNT", "CLOSESPIDER_PAGECOUNT_NO_ITEM"])
def test_own_requests_are_no_pages_of_the_crawl(crawl: Run, limit: str) -> None:
    site = Counting()
    done = crawl(site.pages, DEDUP_CHROME=True, **{limit: 13 if limit.endswith("COUNT") else 2})
    assert site.twice
    assert len(done.items) >= 13
    assert done.stats["response_received_count"] == len(done.items)


def test_own_requests_leave_nothing_in_the_cache(crawl: Run, tmp_path: Path) -> None:
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache"), "DEDUP_AUDIT": 1.0}
    done = crawl(TWINS, **settings)
    assert done.figures["unreached/sampled"] == done.requests.count("/behind-b") == 1
    cached = [*(tmp_path / "cache").rglob("meta")]
    assert len(cached) == done.stats["httpcache/store"] == done.figures["pages"]


@pytest.mark.parametrize(
    "path", ["/cart/add/{}?x=", slow("/notes?do=delete&id={}"), slow("/go?id={}&token=8f3a")]
)
def test_addresses_that_look_like_actions_are_asked_once(crawl: Run, path: str) -> None:
    site = Counting(path)
    crawl(site.pages, DEDUP_CHROME=True, DEDUP_AUDIT=1.0)
    assert site.twice == []


def test_nor_are_they_when_the_page_that_they_copy_fails(crawl: Run, site: Site) -> None:
    hold(site, "/logout", 2)  # whichever comes first is kept
    pages = {"/": page("home", "/a", "/logout"), "/a": page("story"), "/logout": page("story")}
    done = crawl(pages, LateFailure, CONCURRENT_REQUESTS=8)
    assert done.requests.count("/logout") == 1
    assert [item["path"] for item in done.items] == ["/", "/logout"]


def test_only_pages_behind_plain_links_are_asked_again(crawl: Run) -> None:
    asks = cycle([
        lambda url, **options: FormRequest(url, method="GET", **options),
        lambda url, **options: Request(url, cb_kwargs={"form": 1}, **options),
        lambda url, **options: Request(url, meta={"form": 1}, **options),
    ])  # fmt: skip

    class Asks(Walker):
        def request(self, path: str, **options: Any) -> Any:
            return next(asks)(self.url + path, callback=self.parse, errback=self.failed, **options)

        def parse(self, response: Any, **_: Any) -> Any:
            yield from super().parse(response)

    site = Counting()
    crawl(site.pages, Asks, DEDUP_CHROME=True)
    assert site.twice == []


def test_pages_with_which_a_queue_begins_are_asked_again(crawl: Run) -> None:
    """scrapy-redis asks for all of them by `FormRequest`."""

    class Queue(Walker):
        async def start(self) -> AsyncIterator[Request]:
            for path in site.pages:
                yield FormRequest(self.url + path, callback=self.parse, errback=self.failed)

    site = Counting()
    crawl(site.pages, Queue, DEDUP_CHROME=True, DEDUP_KEEP_START=False)
    assert site.twice != []


ACTIONS = [
    "/logout", "/user/logout.php", "/?action=logout", "/log-out", "/Account/SignOut", "/unsubscribe/17",
    "/newsletter?unsubscribe=me@a.org", "/items/7/delete", "/deleteItem?id=7", "/item_delete.asp?id=7",
    "/wp-admin/post.php?action=trash&post=7", "/?remove_item=ab", "/shop?add-to-cart=7", "/cart/add/7",
    "/basket.php?add=7", "/addToWishlist/7", "/confirm/af09", "/confirm-email?key=1",
    "/verify_email?token=ab", "/reset?x=1", "/login?one_time=8", "/vote/up/7", "/buy/7", "/checkout",
]  # fmt: skip
PAGES = [
    "/", "/how-to-delete-files.html", "/tokens/list", "/item/7", "/carts", "/views/deletion",
    "/catalogue?page=2&sort=price", "/confirmed-bachelor", "/undeleted/7", "/buyers-guide", "/additives",
    "/address?id=7", "/blog/adding-a-cart-to-your-shop", "/resets",
]  # fmt: skip


def test_actions_are_told_by_their_addresses() -> None:
    assert [path for path in ACTIONS if not is_action(f"http://a.org{path}")] == []
    assert [path for path in PAGES if is_action(f"http://delete.a.org{path}#logout")] == []
