"""Each remedy of docs/troubleshooting.md mends what it is there for."""

from typing import Any

import pytest

from tests.support import ROOT
from tests.support.crawls import Answer, Run, Walker, asking, html, words

MENU = "<ul>" + "".join(f"<li>menu item {number}" for number in range(40)) + "</ul>"
PAGES = 12


def manual(changed: int, own: int = 200, menu: str = MENU) -> dict[str, Answer]:
    """A manual in two releases, which differ in some words of each page, behind one of each."""
    site: dict[str, Answer] = {"/": html(f"<p>{words('front')}" + "".join(links(n) for n in range(PAGES)))}
    for number in range(PAGES):
        text = words(f"page {number}", own).split()
        for release in ("1.0", "2.0"):
            said = (
                text[: own - changed] + words(f"{number} in {release}", changed).split() if changed else text
            )
            site[f"/{release}/page{number}"] = html(f"<title>Page {number}</title>{menu}<p>{' '.join(said)}")
    return site


def links(number: int) -> str:
    return "".join(f'<a href="/{release}/page{number}">more</a>' for release in ("1.0", "2.0"))


OWN = {"DEDUP_CHROME": True}
#: What goes wrong, and what mends it: a site, how many of its pages are kept without the remedy, and with it.
DROPPED = manual(changed=8)
REMEDIES: dict[str, tuple[dict[str, Answer], type[Walker], dict[str, Any], bool]] = {
    'meta={"dedup": False}': (DROPPED, asking(meta={"dedup": False}), {}, True),
    'DEDUP_ACTION = "nofollow"': (DROPPED, Walker, {"DEDUP_ACTION": "nofollow"}, True),
    "DEDUP_MIN_CONTAINMENT = 0.99": (DROPPED, Walker, {"DEDUP_MIN_CONTAINMENT": 0.99}, True),
    'DEDUP_ACTION = "mark"': (DROPPED, Walker, {"DEDUP_ACTION": "mark"}, True),
    "DEDUP_MIN_CONTAINMENT = 0.75": (manual(changed=40), Walker, {"DEDUP_MIN_CONTAINMENT": 0.75}, False),
    "DEDUP_MIN_TOKENS = 10": (manual(changed=0, own=12, menu=""), Walker, {"DEDUP_MIN_TOKENS": 10}, False),
    "DEDUP_CHROME = False": (manual(changed=4), Walker, {"DEDUP_CHROME": False}, False),
}


@pytest.mark.parametrize("remedy", REMEDIES)
def test_it_mends_what_it_is_there_for(crawl: Run, remedy: str) -> None:
    site, spider, settings, keeps = REMEDIES[remedy]
    assert f"`{remedy}`" in (ROOT / "docs/troubleshooting.md").read_text()
    before, after = (crawl(site, of, **OWN | more) for of, more in ((Walker, {}), (spider, settings)))
    seen = [len(done.spider.judgements) for done in (before, after)]
    assert (seen[0] < seen[1] == len(site)) if keeps else (seen[0] > seen[1])
