"""The noise in what the pages of a crawl say, by their kinds.

>>> from dedup.page.read import read
>>> pages = [read(f"<h1>A story</h1><p>seen {seen} times") for seen in (17, 18)]
>>> noise = WordGaps()
>>> noise.hear("http://a.org/view?id=1", *pages)
>>> noise.left("http://a.org/view?id=2", words_of(read("<h1>Another</h1><p>seen 4 times")))
['another', 'seen', 'times']
"""

from collections.abc import Sequence

from msgspec import Struct, field

from dedup.filter.noise.answers import changes
from dedup.filter.noise.gaps import Gaps
from dedup.filter.noise.kinds import kind_of
from dedup.filter.noise.words import is_signs, left_of_words, lines_of_words, words_of
from dedup.latest import Latest
from dedup.page.html import Page


class _Known(Struct):
    """What is known of a kind of page."""

    gaps: Gaps = field(default_factory=Gaps)
    asked: int = 0
    signs_change: bool = False


class WordGaps:
    """The gaps in what the pages of a crawl say, by their kinds."""

    def __init__(self) -> None:
        self._kinds = Latest[str, _Known]()

    def hear(self, url: str, a: Page, b: Page) -> None:
        """Learns from two answers to one request."""
        name = kind_of(url)
        known = self._kinds[name] = self._kinds.get(name) or _Known()
        first, second = words_of(a), words_of(b)
        known.gaps.learn(url, changes(lines_of_words(first), lines_of_words(second)))
        known.asked += 1
        known.signs_change |= [*filter(is_signs, first)] != [*filter(is_signs, second)]

    def is_met(self, url: str) -> bool:
        """Returns whether pages like this one have shown any gap."""
        return bool(self._known(url).gaps)

    def signs_change(self, url: str) -> bool:
        """Returns whether signs were other ones when a page like this one was fetched again."""
        return self._known(url).signs_change

    def probed(self, url: str) -> int:
        """Returns how many pages like this one were fetched again: what is known of their gaps has changed if that has."""
        return self._known(url).asked

    def left(self, url: str, tokens: Sequence[str]) -> list[str]:
        """Returns the tokens of a page without breaks and without gaps."""
        return left_of_words(tokens, self._known(url).gaps)

    def _known(self, url: str) -> _Known:
        return self._kinds.get(kind_of(url)) or _Known()
