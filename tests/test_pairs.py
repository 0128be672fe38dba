"""Copies on other hosts: where a host's pages fall to another's, that is told, and their links are followed."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from dedup.filter import Counts
from dedup.filter.watch import pairs
from dedup.filter.watch.pairs import FAILED, MANY, Pairs
from tests.support.crawls import Answer, Run, Site, Walker, html, page, words

KEPT, COPY = "http://evil.org/", "http://victim.org/"


def failing(counted: Pairs, links: int = FAILED) -> list[str | None]:
    return [counted.follow(f"{KEPT}#top", leads_to_page=False) for _ in range(links)]


def test_links_of_a_copy_are_followed_if_others_fail() -> None:
    counted = Pairs(Counts())
    assert not counted.drop(COPY, KEPT, "id")
    assert failing(counted) == [None] * (FAILED - 1) + ["id"]  # what was dropped is to be fetched again, once
    assert failing(counted, 1) == [None]
    assert counted.drop(COPY, KEPT, "id")
    assert not counted.drop(f"{KEPT}copy", KEPT, "id")


def test_a_few_links_that_fail_among_others_are_none_of_that() -> None:
    counted = Pairs(Counts())
    for _ in range(FAILED):
        counted.follow(KEPT, leads_to_page=True)
    assert not counted.drop(COPY, KEPT, "id")
    assert failing(counted) == [None] * FAILED
    assert not counted.drop(COPY, KEPT, "id")


def test_the_pair_with_most_drops_is_told(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    counted = Pairs(counts)
    followed = []
    for number in range(MANY + 2):
        counted.visit(f"{COPY}{number}")
        followed.append(counted.drop(f"{COPY}{number}", f"{KEPT}{number}", str(number)))
    assert followed == [False] * (MANY - 1) + [True] * 3
    counted.drop("http://a.org/", KEPT, "id")
    counted.close()
    assert counts == {
        "dedup/hosts/dropped": MANY + 3,
        "dedup/hosts/led_on": 3,
        "dedup/hosts/alarms": 1,
        "dedup/hosts/worst": "22 of the 22 pages of victim.org for pages of evil.org",
    }
    [message] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert message.startswith(
        "Pages of victim.org were dropped for pages of evil.org, and these are 20 of the 20 "
    )


def test_a_host_of_which_more_is_kept_than_dropped_is_not_emptied() -> None:
    counted = Pairs(Counts())
    for number in range(3 * MANY):
        counted.visit(f"{COPY}{number}")
    assert not any(counted.drop(COPY, KEPT, "id") for _ in range(MANY + 10))


def test_only_so_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "REMEMBERED", 10)
    counted = Pairs(Counts())
    for number in range(100):
        counted.visit(f"http://{number}.org/")
        counted.drop(f"http://{number}.org/", f"{KEPT}{number}", "id")
        counted.follow(f"{KEPT}{number}", leads_to_page=False)
    assert {len(held) for held in (counted._pages, counted._drops, counted._copied, counted._links)} == {10}


# --- Crawls -----------------------------------------------------------------------------------------

STORIES = [f"/story-{n}" for n in range(6)]


class Traveller(Walker):
    """Visits localhost before 127.0.0.1, which are two hosts."""

    def path(self, response: Any) -> str:
        return str(response.url.replace("localhost", "127.0.0.1").removeprefix(self.url))

    def links(self, response: Any) -> list[str]:
        return list(response.css("a::attr(href)").getall())

    def parse(self, response: Any) -> Iterator[Any]:
        path, is_evil = self.path(response), "localhost" in response.url
        yield {"path": path, "is_evil": is_evil}
        if path == "/":
            evil = self.url.replace("127.0.0.1", "localhost")
            yield response.follow(f"{evil}/front", self.parse, priority=1)
            yield response.follow("/front", self.parse)
        else:
            yield from (response.follow(link, self.parse) for link in self.links(response))


@pytest.mark.parametrize("follow", ["never", "yield"])
@pytest.mark.parametrize("behind", ["nothing", "little"])
def test_a_front_page_elsewhere_empties_nothing(crawl: Run, site: Site, behind: str, follow: str) -> None:
    """Whichever host was met first, and asked for what its front page links to: nothing is there."""
    front = "".join(f"<p>{words(link, 30)} <a href='{link}'>more</a>" for link in STORIES)
    stories: dict[str, Answer] = {link: page(link) for link in STORIES}
    is_asked = dict.fromkeys(STORIES, 0)

    def ask(path: str) -> None:
        if path in is_asked:
            is_asked[path] += 1
            gone = 404, html("")[1], b"gone"
            instead = gone if behind == "nothing" else html(f"<p>{path}")
            site.pages[path] = instead if is_asked[path] == 1 else stories[path]

    site.on_request = ask
    pages = {"/": page("start"), "/front": html(f"<title>Front</title>{front}"), **stories}
    done = crawl(pages, Traveller, DEDUP_FOLLOW=follow, DEDUP_PARKED="")
    found = [item["path"] for item in done.items if not item["is_evil"]]
    assert set(found) >= set(STORIES)
    assert found.count("/front") == 0  # its content was handed over before, and only its links were followed
    if follow == "never":
        assert done.figures["hosts/led_on"] == 1
        told = [line for m in done.messages for line in m.getMessage().split("\n") if "  hosts " in line]
        assert "; the links of 1 were followed" in told[0]
