"""The audit of drops: what is counted as wrong, and that a rule which is wrong is off."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from dedup import Detector, open_index
from dedup.filter import Counts
from dedup.filter.watch.audit import Audit
from dedup.page.html import Page
from dedup.page.read import read
from dedup.scrapy.log.summary import summary
from tests.support.coroutines import driven
from tests.support.filters import Run, filtering, text, visit
from tests.support.filters import open_index as whole

WORDS = [f"word{n}" for n in range(100)]


def audit(page: Page | Exception | None, min_resemblance: float = 0.75) -> tuple[Audit, Counts]:
    """An audit of which the kept page is fetched as this one."""

    async def fetch(url: str) -> Page | None:
        if isinstance(page, Exception):
            raise page
        return page

    counts, detector = Counts(), Detector(min_resemblance=min_resemblance, shingle_size=1)
    return Audit(open_index("memory:", detector, chrome=False), 1.0, counts, fetch), counts


@pytest.mark.parametrize(
    ("shared", "min_resemblance", "wrong"),
    [(100, 0.75, 0), (76, 0.75, 0), (74, 0.75, 1), (51, 0.2, 0), (49, 0.2, 1), (0, 0.0, 1)],
)
@driven
async def test_a_drop_is_wrong_below_the_threshold(shared: int, min_resemblance: float, wrong: int) -> None:
    check, counts = audit(Page(WORDS[:shared], 0), min_resemblance)
    await check.check("http://example.org/b", Page(WORDS, 0), "http://example.org/a", "simhash")
    assert counts == {"dedup/audit/checked": 1} | ({"dedup/audit/wrong": 1} if wrong else {})


@pytest.mark.parametrize(
    "page", [None, OSError("no network"), Page([], 0, "partial"), Page([], 0, "large"), Page([], 0, "binary")]
)
@driven
async def test_a_page_that_cant_be_fetched_or_read_is_not_compared(page: Page | Exception | None) -> None:
    check, counts = audit(page)
    await check.check("http://example.org/b", Page(WORDS, 0), "http://example.org/a", "simhash")
    assert counts == {"dedup/audit/failed": 1}


def article(about: str, *, menu: int = 300, words: int = 80, changed: int = 0) -> Page:
    own = [f"{about}{n}" for n in range(words - changed)] + [f"other{about}{n}" for n in range(changed)]
    return Page([f"menu{n}" for n in range(menu)] + own, 0)


async def audit_beside_others(dropped: Page, now: Page, rule: str) -> Counts:
    """Audits a drop on a host of which ten other pages with the same menu are known."""
    index, counts = open_index("memory:", Detector()), Counts()
    for number in range(10):
        url = f"http://example.org/{number}"
        await index.claim(url, url, index.detector.fingerprint_page(article(f"thing{number}x")))

    async def fetch(url: str) -> Page:
        return now

    await Audit(index, 1.0, counts, fetch).check(
        "http://example.org/print/a", dropped, "http://example.org/a", rule
    )
    return counts


@pytest.mark.parametrize(
    ("now", "rule", "is_wrong"),
    [
        (article("lamp"), "simhash", False),
        (article("vase"), "simhash", True),  # the pages resemble each other by .65
        (article("lamp", menu=5), "simhash", False),  # for print: by .21
        (article("lamp", changed=25), "simhash", True),
        (article("lamp", changed=25), "probe", False),  # it may be noise
        (article("lamp", changed=60), "probe", True),
        (article("lamp", changed=25), "exact", False),  # was equal, and has changed since
    ],
)
@driven
async def test_a_drop_is_wrong_if_no_part_contains_the_other(now: Page, rule: str, is_wrong: bool) -> None:
    counts = await audit_beside_others(article("lamp"), now, rule)
    assert counts == {"dedup/audit/checked": 1} | ({"dedup/audit/wrong": 1} if is_wrong else {})


@driven
async def test_pages_with_hardly_anything_of_their_own_are_compared_as_a_whole() -> None:
    """As those of which many copies were met before it was known what is common on their host."""
    page = article("lamp", words=2)
    now, other = Page([*page.tokens, "7"], 0), article("vase", menu=20, words=2)
    assert "dedup/audit/wrong" not in await audit_beside_others(page, now, "simhash")
    assert (await audit_beside_others(page, other, "simhash"))["dedup/audit/wrong"] == 1


#: Whatever resembles each other by a template alone is taken for one: a rule that is wrong on pages of one long list.
CONFUSED = Detector(min_resemblance=0.0, max_distance=7)


def listed(number: int) -> str:
    """The same list on each page, ten times, and sixty words of its own."""
    words = " ".join(f"own{number}x{word}" for word in range(60))
    return (
        "<title>A page</title>" + f"<p>{' '.join(f'item{item}' for item in range(40))}" * 10 + f"<p>{words}"
    )


async def meet(it: Run, path: str, html: str) -> str:
    url = f"http://example.org/{path}"
    it.crawl.pages[url] = html
    outcome = await it.filter.judge(visit(path, read=partial(read, html, url), origin=path))
    if outcome.action == "keep":
        await it.filter.handed_over(path)
    while checks := it.filter._copies._checks:
        await asyncio.wait(checks)
    return f"{outcome.action} {outcome.verdict.judge}"


@driven
async def test_a_rule_that_is_wrong_is_off_on_that_kind_of_pages_and_a_right_one_on(tmp_path: Path) -> None:
    async with filtering(tmp_path / "drops", whole("memory:", CONFUSED), audit=1.0, max_cluster=0) as it:
        lists = [f"list?id={number}" for number in range(8)]
        stories = [f"story?id={number}" for number in range(8)]
        said = [await meet(it, path, listed(number)) for number, path in enumerate(lists)]
        assert said == ["keep index", *["drop index"] * 2, *["keep audit"] * 5]
        assert it.crawl.again == lists[1:3]
        assert [await meet(it, path, listed(number)) for number, path in enumerate(lists)][1:3] == [
            "keep audit"
        ] * 2
        said = [await meet(it, path, text("a story", path)) for path in stories]
        assert said == ["keep index", *["drop index"] * 7]
        assert it.figures["audit/off"] == "simhash on pages like example.org/list?id"
        assert (it.figures["audit/wrong"], it.figures["audit/checked"]) == (2, 9)
        assert "  AUDIT     a rule was wrong, and is off: simhash on" in summary(it.counts, "drops")
    assert it.crawl.again == lists[1:3]


@driven
async def test_one_wrong_drop_proves_nothing(tmp_path: Path) -> None:
    async with filtering(tmp_path / "drops", whole("memory:", CONFUSED), audit=1.0, max_cluster=0) as it:
        paths = [f"list?id={number}" for number in range(40)]
        said = [await meet(it, path, listed(0 if at != 1 else 1)) for at, path in enumerate(paths)]
        assert said[1:] == ["drop index"] * 39
        assert it.figures["audit/wrong"] == 1
