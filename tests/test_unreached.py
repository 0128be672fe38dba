"""What only near-duplicates link to: counted, and sampled."""

import random
from pathlib import Path

import pytest

from dedup.droplog.course import Loss, read_missed
from dedup.filter import Counts
from dedup.filter.watch.unreached import Unreached
from dedup.page.html import Page, parse
from dedup.page.ids import MAX_URL
from dedup.page.links import MAX_LINKS, addresses, targets
from dedup.page.read import read
from tests.support.coroutines import driven
from tests.support.filters import DETECTOR, open_index, text


def left(count: int, most: int = 100_000) -> Unreached:
    """So many addresses, each on a dropped page only."""
    unreached = Unreached(Counts(), most)
    unreached.visit("http://a.org/")
    unreached.leave(f"http://a.org/{number}" for number in range(count))
    return unreached


def test_an_address_that_any_page_asks_for_is_reached_before_or_after() -> None:
    unreached = left(10)
    unreached.ask("http://a.org/3#top")
    unreached.ask("http://a.org/20?utm_source=x")
    unreached.leave(["http://a.org/20", "http://a.org/4", "http://a.org/"])
    assert unreached.count() == 9


def test_links_to_hosts_that_the_crawl_never_visits_do_not_count() -> None:
    unreached = left(1)
    unreached.leave(["http://b.org/1", "http://b.org/2"])
    unreached.ask("http://b.org/1")  # refused as off-site, say
    assert unreached.count() == 1
    unreached.visit("http://b.org/1")
    assert unreached.count() == 2


def test_of_many_hosts_those_that_were_visited_last_are_remembered() -> None:
    unreached = Unreached(Counts(), most=2)
    for name in "abc":
        unreached.visit(f"http://{name}.org/")
    assert [*unreached._hosts] == ["b.org", "c.org"]


def test_many_addresses_are_estimated() -> None:
    assert left(10_000).count() == 10_000
    # 512 to 1,024 addresses are left: a standard error of 3 to 4.4 %.
    assert left(10_000, most=1024).count() == pytest.approx(10_000, rel=0.15)


@driven
async def test_a_sample_says_how_many_contents_are_behind_them() -> None:
    chance = random.Random(3)
    contents = {
        f"http://a.org/{number}": chance.randrange(40) for number in range(160)
    }  # 40, some of them known
    unreached = left(200)  # 40 of them dead
    index = open_index("memory:", DETECTOR)
    for known in range(20):
        await index.claim(f"kept {known}", f"http://a.org/kept{known}", DETECTOR.fingerprint(text(known)))

    async def fetch(url: str) -> Page | None:
        return read(text(contents[url]), url) if url in contents else None

    await unreached.sample(index, 0.5, fetch)
    unreached.close()
    figures = unreached._stats
    assert figures.get_value("dedup/unreached") == 200
    assert figures.get_value("dedup/unreached/sampled") == 100
    new = figures.get_value("dedup/unreached/new")
    assert 10 <= new <= 20  # of 20
    assert figures.get_value("dedup/unreached/contents") == 2 * new
    low, high = (figures.get_value(f"dedup/unreached/contents_{end}") for end in ("low", "high"))
    assert low <= 20 <= high
    assert await index.count() == 20  # nothing is filed
    await index.close()


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (
            "<a href=b>1</a><a href=b#x>2</a><map><area href='?q=1'></map>",
            ["http://a.org/d/b", "http://a.org/d/c?q=1"],
        ),
        ("<base href='/other/'><a href=b>", ["http://a.org/other/b"]),
        ("<a href='javascript:x()'><a href='mailto:a@b.c'><a href='#top'><a href=''><a>", []),
        ("<a href='http://['><a href=' //B.org/x '>", ["http://B.org/x"]),
        ("<base href='http://[/'><a href=b>", ["http://a.org/d/b"]),
        (f"<a href='{'x' * 3000}'>", []),
    ],
)
def test_addresses_are_those_that_a_crawl_would_ask_for(page: str, found: list[str]) -> None:
    assert addresses(parse(page), "http://a.org/d/c") == found


def test_a_page_of_a_million_links_costs_no_more_than_one_of_a_thousand() -> None:
    page = parse("".join(f"<a href={number}>" for number in range(3 * MAX_LINKS)))
    assert len(addresses(page, "http://a.org/")) == MAX_LINKS


@pytest.mark.parametrize(
    ("page", "url", "found"),
    [
        ("<link rel=next href=2><a href=3><iframe src=4></iframe>", "http://a.org/d/1", ["2", "3", "4"]),
        ("<frameset><frame src=2><frame src=3></frameset>", "http://a.org/d/1", ["2", "3"]),
        ("<form action='search'><input name=q></form><form></form>", "http://a.org/d/1", ["search"]),
        ("<base href=..><a href=2>", "http://a.org/d/e/1", ["2"]),
        ("<a href=2>" * (MAX_LINKS + 1), "http://a.org/d/1", None),
        ("<a href=2>", "http://a.org/" + "d/" * 50, None),
        ("<a href=2>", "http://a.org/".ljust(MAX_URL + 1, "d"), None),
    ],
)
def test_targets_are_all_that_may_be_followed(page: str, url: str, found: list[str] | None) -> None:
    wanted = None if found is None else [f"http://a.org/d/{name}" for name in found]
    assert targets(parse(page), url) == wanted


def test_the_course_tells_what_the_last_run_has_not_reached(tmp_path: Path) -> None:
    path = tmp_path / "course"
    line = '{{"urls": {}, "sampled": 3, "new": 1, "low": 0, "high": 7}}\n'.format
    path.write_text(line(5) + '{"urls": 1}\n' + line(-1) + line(8) + line('"x"'))
    assert read_missed([path]) == Loss(8, 3, 1, 0, 7)
    assert read_missed([tmp_path / "none"]) is None
