"""Everyday pages, of which some were lost: a fast part of `benchmarks.scenes`."""

import pytest

from benchmarks.scenes import copies, crawl, orders, others, read, scene
from dedup import Detector

DETECTOR = Detector()
STYLES = pytest.mark.parametrize("style", ["?id=", ".html"])


@STYLES
@pytest.mark.parametrize("kind", ["news", "short news", "cities", "lists, a fifth new"])
def test_contents_with_words_of_their_own_are_kept(kind: str, style: str) -> None:
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
        for kind in ("counter", "advert", "tracking", "session", "mirror"):
            assert found.dropped[kind] >= 0.6 * found.copies[kind], kind
