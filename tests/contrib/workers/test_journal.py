"""What a worker notes for whoever takes its place: what it has scheduled, and what is done, in an order that is safe."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from dedup.contrib.workers.feeds import check_feeds
from dedup.contrib.workers.handover import Delivery, Note
from dedup.contrib.workers.journal import Journal
from dedup.contrib.workers.outbox import Outbox
from dedup.errors import SettingsError
from dedup.scrapy.requests.packing import Packing


class Desk:
    """A journal of shard 0 of two, its scheduler, and what a crawl from the notes that were written would still do."""

    def __init__(self, **more: Any) -> None:
        crawler = get_crawler(Spider, more.get("settings"))
        crawler.spider = self.spider = Spider("walker")
        self.packing = Packing(self.spider)
        self.outbox = Outbox(crawler, 1, self.packing, {})
        self.journal = Journal(crawler, self.packing, self.outbox, is_kept=True)
        self.journal.begin(SimpleNamespace(df=more.get("filter") or RFPDupeFilter()))
        self.stats = crawler.stats
        self.rest: dict[bytes, bytes] = {}
        self.past: list[bytes] = []

    def schedule(self, url: str, parent: Request | None = None, **more: Any) -> Request:
        request = Request(f"http://a.org/{url}", **more)
        if parent is not None:
            self.journal.found(request, parent)
        self.journal.scheduled(request, 0)
        return request

    def write(self, links: int = 0) -> list[Note]:
        notes = self.journal.first(links)
        for note in notes:
            if note.request:
                self.rest[note.ticket] = note.request
            else:
                self.rest.pop(note.ticket, None)
            self.past += [note.key] if note.key else []
        self.journal.written(len(notes))
        return notes

    def left(self) -> list[str]:
        self.write()
        return [self.packing.unpack(packed).url[13:] for packed in self.rest.values()]

    def heir(self, **more: Any) -> "Desk":
        heir = Desk(**more)
        heir.journal.remember(self.past)
        return heir


def test_what_is_scheduled_is_left_until_it_is_done() -> None:
    desk = Desk()
    page = desk.schedule("page")
    assert desk.left() == ["page"]
    desk.schedule("link", page)
    desk.journal.let_go(page)
    assert [bool(note.request) for note in desk.write()] == [True, False], (
        "links are noted before the end of a page"
    )
    assert desk.left() == ["link"]


def test_a_page_is_not_done_before_its_links_were_handed_over() -> None:
    desk = Desk()
    page = desk.schedule("page")
    assert desk.outbox.add(Request("http://b.org/"), held=())
    desk.journal.let_go(page)
    assert desk.left() == ["page"]
    assert len(desk.write(links=1)) == 1
    assert desk.left() == []


def test_a_page_that_may_be_fetched_again_is_not_done() -> None:
    """Something holds it, or it is scheduled once more."""
    for again in (Journal.hold, lambda journal, page: journal.scheduled(page, 0)):
        desk = Desk()
        page = desk.schedule("page")
        again(desk.journal, page)
        desk.journal.let_go(page)
        assert desk.left() == ["page"]
        desk.journal.let_go(page)
        assert desk.left() == []


def test_a_page_is_not_done_before_links_that_can_t_be_noted() -> None:
    desk = Desk()
    page = desk.schedule("page")
    part = desk.schedule("part", page, callback=print)
    further = desk.schedule("further", part, callback=print)
    desk.journal.let_go(page)
    desk.journal.let_go(part)
    assert desk.left() == ["page"]
    desk.schedule("link", further)
    desk.journal.let_go(further)
    assert desk.left() == ["link"]
    heir = desk.heir()
    assert [heir.journal.is_past(Request(f"http://a.org/{url}")) for url in ("page", "link")] == [True, False]


def test_what_can_t_be_noted_and_is_found_on_no_page_ends_the_notes(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    page = desk.schedule("page")
    desk.schedule("fed by the spider", callback=print)
    desk.schedule("link", page)
    desk.journal.let_go(page)
    assert desk.left() == ["page"]
    assert (
        "a worker that takes the place of this one has to crawl everything again: <GET http://a.org/fed"
        in caplog.text
    )
    assert desk.stats.get_value("dedup/shard/not_noted") == 1


def test_what_every_worker_begins_with_need_not_be_noted() -> None:
    desk = Desk()
    start = Request("http://a.org/login", callback=print)
    desk.journal.begins(start)
    desk.journal.scheduled(start, 0)
    desk.schedule("form", start, callback=print)
    desk.schedule("link", start)
    desk.journal.let_go(start)
    assert desk.left() == ["link"]


def test_an_heir_sends_nothing_that_is_done() -> None:
    desk = Desk()
    for more in ({}, {"dont_filter": True}):
        desk.journal.let_go(desk.schedule(f"{len(more)}", **more))
    desk.left()
    heir = desk.heir()
    assert heir.journal.is_past(Request("http://a.org/0"))
    assert not heir.journal.is_past(Request("http://a.org/0", dont_filter=True))
    assert not heir.journal.is_past(Request("http://a.org/1"))


def test_an_heir_takes_what_was_handed_over_and_is_not_done() -> None:
    desk, requests = Desk(), [Request("http://a.org/", dont_filter=True) for _ in range(3)]
    for place, request in enumerate(requests):
        desk.journal.taken(Delivery(0, place, b""), request)
        desk.journal.scheduled(request, 0)
    desk.journal.let_go(requests[1])
    assert desk.left() == []  # they are in the log of the shard
    heir, past = desk.heir(), []
    for place, request in enumerate([request.copy() for request in requests]):
        heir.journal.taken(Delivery(0, place, b""), request)
        past.append(heir.journal.is_past(request))
    assert past == [False, True, False]


def test_what_the_scheduler_refuses_is_not_noted_as_done() -> None:
    desk = Desk()
    handed, left = Request("http://a.org/page"), Request("http://a.org/page")
    desk.schedule("page")
    desk.journal.taken(Delivery(0, 0, b""), handed)
    assert desk.journal.inherited(0, b"a ticket", left)
    desk.rest[b"a ticket"] = b"..."
    for request in (handed, left):
        desk.journal.refused(request)
    assert desk.left() == ["page"]
    assert desk.past == []


def test_another_filter_of_duplicate_requests_decides_for_itself() -> None:
    desk = Desk()
    desk.journal.let_go(desk.schedule("page"))
    desk.left()
    assert not desk.heir(filter=BaseDupeFilter()).journal.is_past(Request("http://a.org/page"))


@pytest.mark.parametrize(
    ("feeds", "why"),
    [
        ({"pages.jsonl": {}}, "put %(time)s into its name"),
        ({"s3://bucket/%(time)s.jsonl": {}}, "is stored when the crawl ends"),
        (
            {"%(time)s.jsonl": {"postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}},
            "holds back",
        ),
        ({"%(time)s.jsonl": {}, "file:///tmp/%(time)s.jsonl": {}, "stdout:": {}}, ""),
    ],
)
def test_feeds_that_a_kill_would_spoil_are_refused(feeds: dict[str, Any], why: str) -> None:
    if not why:
        check_feeds(Settings({"FEEDS": feeds}))
        return
    with pytest.raises(
        SettingsError,
        match=f"heir is 'rest' and FEEDS is .*, but .*{why.replace('(', '.').replace(')', '.')}",
    ):
        check_feeds(Settings({"FEEDS": feeds}))


@pytest.mark.parametrize("is_full", [False, True])
def test_what_is_done_outlives_a_worker_once_its_items_are_written(tmp_path: Path, is_full: bool) -> None:
    path = Path("/dev/full") if is_full else tmp_path / "items.jsonl"
    desk = Desk(settings={"FEEDS": {str(path): {"format": "jsonlines"}}})
    exporter = desk.journal._crawler.get_extension(FeedExporter)
    assert exporter is not None
    exporter.open_spider(desk.spider)
    exporter.item_scraped({"url": "a"}, desk.spider)
    assert desk.journal.is_inherited() is not is_full
    assert is_full or path.read_text() == '{"url": "a"}\n'
    with suppress(OSError):
        exporter.slots[0].file.close()


def test_nothing_outlives_a_worker_that_notes_no_more() -> None:
    desk = Desk()
    assert desk.journal.is_inherited()
    desk.schedule("of nobody", callback=lambda _: None)
    assert not desk.journal.is_inherited()
