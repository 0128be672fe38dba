"""Everyday pages, of which some were lost: a fast part of `benchmarks.scenes`."""

import pytest

from benchmarks.scenes import FOLDERS, copies, crawl, orders, others, read, scene
from dedup import Detector

DETECTOR = Detector()
STYLES = pytest.mark.parametrize("style", ["?id=", ".html", "words"])


#: Of each way to differ one: a number, a name, a link, an image, a shared text, a few words of a long one, a day.
FEW = [
    "form letters", "staff", "downloads", "gallery, one image", "jobs of an employer", "law as amended", "services",
    "notices, Chinese", "lists, a fifth new", "linked data", "product, colours",
]  # fmt: skip


@STYLES
@pytest.mark.parametrize("kind", FEW)
def test_contents_that_differ_in_little_are_kept(kind: str, style: str) -> None:
    pages = others(style) + scene(kind, style)
    prints = read(DETECTOR, pages)
    for _, order in orders(len(pages)):
        assert crawl(DETECTOR, pages, prints, order).lost == set()


@pytest.mark.parametrize("kind", ["land register", "rooms of a hotel", "court decisions", "jobs of one firm"])
def test_contents_that_a_folder_or_a_host_names_are_kept(kind: str) -> None:
    for style in FOLDERS:
        pages = others(style) + scene(kind, style)
        prints = read(DETECTOR, pages)
        for _, order in orders(len(pages)):
            assert crawl(DETECTOR, pages, prints, order).lost == set()


@STYLES
def test_copies_with_noise_around_them_are_dropped_and_no_article_is_lost(style: str) -> None:
    pages = others(style) + copies(style)
    prints = read(DETECTOR, pages)
    for _, order in orders(len(pages)):
        found = crawl(DETECTOR, pages, prints, order)
        assert found.lost == set()
        assert found.dropped.total() >= 0.8 * found.copies.total()
        for kind in ("counter", "tracking", "session", "mirror"):
            assert found.dropped[kind] >= 0.85 * found.copies[kind], kind
        for kind in ("print", "amp"):  # of which the first few are kept, in another folder as they are
            assert found.dropped[kind] >= 0.5 * found.copies[kind], kind
