"""Mirrors that lead to each other are copies; pages that lead to different places are not."""

import asyncio

import pytest

from dedup import Detector, open_index
from tests.support.pages.everyday import text

MENU = "".join(f"<li><a href='/s{n}'>{text(2, ('menu', n))}</a>" for n in range(20))


def statuses(pages: list[tuple[str, str]]) -> list[str]:
    async def claim() -> list[str]:
        detector = Detector()
        found = []
        async with open_index("memory:", detector) as index:
            for url, html in pages:
                verdict = await index.claim(url, url, detector.fingerprint(html, url))
                if verdict.status == "new":
                    await index.confirm(url)
                found.append(verdict.status)
        return found

    return asyncio.run(claim())


def page(number: int, links: str) -> str:
    name = text(4, ("name", number))
    return f"<title>{name}</title><ul>{MENU}</ul><h1>{name}</h1><p>{text(120, number)}</p>{links}"


@pytest.mark.parametrize("hosts", [("a.org", "b.net"), ("a.org", "b.net", "c.example.com:8080")])
@pytest.mark.parametrize("path", ["/docs/{}.html", "/{}", "/view?id={}&lang=en", "/Folder/{}/"])
@pytest.mark.parametrize("names_itself", [False, True])
def test_mirrors_of_each_other_are_copies(hosts: tuple[str, ...], path: str, names_itself: bool) -> None:
    pages = []
    for host in hosts:
        for number in range(12):
            links = "".join(
                f"<a href='http://{other}{path.format(number)}'>Mirror</a>"
                for other in hosts
                if names_itself or other != host
            )
            pages.append((f"http://{host}{path.format(number)}", page(number, links)))
    assert statuses(pages) == ["new"] * 12 + ["duplicate"] * 12 * (len(hosts) - 1)


def test_hosts_that_lead_to_different_ones_are_no_mirrors() -> None:
    """As a directory of firms, each on a host of its own, that says of each no more than where it is."""
    pages = [
        (f"http://firm{n}.example.org/about", page(1, f"<a href='http://www.firm{n}.com/about'>Home</a>"))
        for n in range(12)
    ]
    assert statuses(pages) == ["new"] * 12


def test_a_link_to_another_page_of_a_mirror_is_content() -> None:
    pages = [
        (f"http://{host}/{n}", page(1, f"<a href='http://{other}/{n + 1}'>Next</a>"))
        for host, other in (("a.org", "b.net"), ("b.net", "a.org"))
        for n in range(6)
    ]
    assert statuses(pages) == ["new"] * 12


@pytest.mark.parametrize(
    "url", ["", "http://", "http://[", "http:///p", "/p", "http://a.org", "http://a.org/(["]
)
def test_no_address_makes_it_raise(url: str) -> None:
    html = page(1, "<a href='http://b.net/([?'>a</a><a href='//b.net'>b</a><a href='http://b.net/p'>c</a>")
    assert Detector().fingerprint(html, url).reason is None
