"""What users may ask for page by page: what is done with one, how deep, and what of it doesn't count."""

from typing import Any

import pytest

from tests.support.crawls import Run, Walker, page

#: /a and /b are near-duplicates, and so are /deep-a and /deep-b below them.
TREE = {
    "/": page("home", "/a", "/b"),
    "/a": page("story", "/deep-a", "/deep-b"),
    "/b": page("story", "/behind-b", more="changed"),
    "/deep-a": page("deep"),
    "/deep-b": page("deep", "/behind", more="changed"),
    "/behind": page("behind"),
    "/behind-b": page("behind b"),
}


def asking(wanted: object) -> type[Walker]:
    """A spider whose requests say what is to be done with their pages."""

    class Asks(Walker):
        def request(self, path: str, **options: Any) -> Any:
            return super().request(path, **options | {"meta": {"dedup": wanted}})

    return Asks


@pytest.mark.parametrize("action", ["drop", "nofollow", "mark"])
def test_a_request_says_what_is_done_with_its_page(crawl: Run, action: str) -> None:
    own = crawl(TREE, asking(action), DEDUP_ACTION="mark" if action == "drop" else "drop")
    settings = crawl(TREE, DEDUP_ACTION=action)
    assert own.requests == settings.requests
    assert [record["action"] for record in own.records[:2]] == [action, action]


def test_a_start_page_is_dropped_if_its_request_says_so(crawl: Run) -> None:
    spider = type("Twice", (asking("drop"),), {"starts": ("/a", "/b")})
    assert crawl(TREE, spider).dropped == ["/b", "/deep-b"]


def test_a_request_may_opt_out(crawl: Run) -> None:
    done = crawl(TREE, asking(False))
    assert (done.figures["skipped/opted_out"], done.dropped) == (7, [])


def test_a_wish_that_can_not_be_granted_is_told_once_and_not_heeded(crawl: Run) -> None:
    done = crawl(TREE, asking("Mark"))
    assert done.dropped == ["/b", "/deep-b"]
    told = [m.getMessage() for m in done.messages if "meta['dedup']" in m.getMessage()]
    assert told == ["meta['dedup'] is 'Mark', and is not heeded; allowed: False, 'drop', 'nofollow', 'mark'"]


def test_nothing_is_dropped_that_is_not_deep_enough(crawl: Run) -> None:
    done = crawl(TREE, DEDUP_MIN_DEPTH=2)
    assert done.dropped == ["/deep-b"]
    assert [record["action"] for record in done.records] == ["mark", "drop"]
    assert "/behind-b" in done.requests
