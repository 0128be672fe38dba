"""Everyday pages, of which some were lost: a fast part of `benchmarks.scenes`."""

from functools import cache

import pytest

from benchmarks.scenes import FOLDERS, Shown, copies, crawl, in_marked, orders, others, read, scene
from dedup import Detector, Fingerprint
from tests.support import slow
from tests.support.pages.everyday import Content, name, text

DETECTOR = Detector()
STYLES = ("?id=", ".html", "words")
#: How many of the forty contents of a kind are met, behind so many articles.
FEWER = 20


@cache
def beside(style: str) -> tuple[list[Shown], list[Fingerprint]]:
    """Articles of the same host, and their fingerprints."""
    pages = others(style)[:FEWER]
    return pages, read(DETECTOR, pages)


def assert_none_is_lost(pages: list[Shown], prints: list[Fingerprint]) -> None:
    for _, order in orders(len(pages)):
        assert crawl(DETECTOR, pages, prints, order).lost == set()


def among_others(more: list[Shown], style: str) -> tuple[list[Shown], list[Fingerprint]]:
    """Pages behind articles of the same host, and the fingerprints of all."""
    pages, prints = beside(style)
    return pages + more, prints + read(DETECTOR, more)


#: Of each way to differ one: a number, a name, a link, an image, a shared text, a few words of a long one, a day.
FEW = [
    "form letters", "staff", "downloads", "gallery, one image", "jobs of an employer", "law as amended", "services",
    "notices, Chinese", "lists, a fifth new", "linked data", "product, colours",
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "style"),
    [
        (kind, style) if at % 3 == number % 3 else slow(kind, style)
        for number, kind in enumerate(FEW)
        for at, style in enumerate(STYLES)
    ],
)
def test_contents_that_differ_in_little_are_kept(kind: str, style: str) -> None:
    assert_none_is_lost(*among_others(scene(kind, style)[:FEWER], style))


@pytest.mark.parametrize(
    "kind", ["land register", slow("rooms of a hotel"), slow("court decisions"), slow("jobs of one firm")]
)
def test_contents_that_a_folder_or_a_host_names_are_kept(kind: str) -> None:
    for style in FOLDERS:
        assert_none_is_lost(*among_others(scene(kind, style)[:FEWER], style))


@pytest.mark.parametrize(("style", "articles"), [slow("?id=", 8), (".html", 4), slow("words", 8)])
def test_copies_with_noise_around_them_are_dropped_and_no_article_is_lost(style: str, articles: int) -> None:
    pages, prints = among_others(copies(style, articles), style)
    for _, order in orders(len(pages)):
        found = crawl(DETECTOR, pages, prints, order)
        assert found.lost == set()
        assert found.dropped.total() >= 0.75 * found.copies.total()
        for kind in ("counter", "tracking", "session"):
            assert found.dropped[kind] >= 0.85 * found.copies[kind], kind
        for kind, least in {"mirror": 0.7, "print": 0.5, "amp": 0.5}.items():
            # Of which the first few are kept, on another host or in another folder as they are.
            assert found.dropped[kind] >= least * found.copies[kind], kind


#: Where the names of two rooms of a hotel stand in their addresses.
ROOMS = {
    "folders": ("http://hotels.example/single/{}", "http://hotels.example/double/{}"),
    "short folders": ("http://hotels.example/m/{}", "http://hotels.example/w/{}"),
    "the end of one": ("http://hotels.example/{}", "http://hotels.example/{}/offer"),
    "a parameter of one": ("http://hotels.example/{}", "http://hotels.example/{}?room=double"),
    "numbers of parts": ("http://hotels.example/1/{}", "http://hotels.example/2/{}"),
    "months": ("http://hotels.example/2024/11/{}", "http://hotels.example/2024/12/{}"),
    "months with a dot": ("http://hotels.example/2024.11/{}", "http://hotels.example/2024.12/{}"),
    "years": ("http://hotels.example/2023/{}", "http://hotels.example/2024/{}"),
    "hosts": ("http://paris.example/{}", "http://rome.example/{}"),
}


@pytest.mark.parametrize("words", [60, slow(400)])
@pytest.mark.parametrize("where", ROOMS)
def test_pages_that_share_a_long_text_and_differ_in_a_price_are_kept(where: str, words: int) -> None:
    pages = []
    for at in range(10):
        about = text(words, ("about", at))
        for room, form in enumerate(ROOMS[where]):
            body = f"<p>{about}<p>This room costs {60 + 3 * at + 25 * room} euros"
            content = Content(f"Hotel {name(at)}", body)
            pages.append(Shown(form.format(f"hotel-{at}"), in_marked(content), f"{at} {room}"))
    assert_none_is_lost(pages, read(DETECTOR, pages))
