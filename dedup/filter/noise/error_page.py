"""What a host shows at addresses that lead nowhere, and whether a page says the same.

Left out of the comparison are noise, and what each page says of its own address.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from dedup.filter.noise.answers import changes
from dedup.filter.noise.gaps import Gaps
from dedup.filter.noise.words import is_signs, left_of_words, lines_of_words, words_of
from dedup.page.html import Page
from dedup.page.siblings import MAX_PARAMETERS
from dedup.page.words import is_url, split_tokens


class ErrorPage:
    """What a host shows at addresses that lead nowhere."""

    def __init__(self, url: str, tokens: Sequence[str], heading: Sequence[str], noise: Gaps) -> None:
        """``url`` is the one of them that has shown the tokens."""
        self.url = url
        self._tokens = left_of_words(tokens, noise)
        self._heading = heading
        self._noise = noise

    def is_like(self, url: str, page: Page) -> bool:
        """Returns whether a page says the same, but for its address and for noise.  O(tokens)."""
        address = Address(url)
        if address.without(Address(self.url).without(page.heading)) != address.without(self._heading):
            return False
        own = Address(self.url).without(left_of_words(address.without(words_of(page)), self._noise))
        shown = address.without(self._tokens)
        return len(own) == len(shown) and all(map(_are_alike, own, shown))


def _are_alike(a: str, b: str) -> bool:
    """Returns whether two tokens are equal; URL tokens lack the folders that they share with their page."""
    return a == b or (is_url(a) and is_url(b) and (a.endswith(b) or b.endswith(a)))


class Address:
    """An address, as its page may say it."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        self._words = {*split_tokens(re.sub("[/_]", " ", unquote(f"{parts.path} {parts.query}")))}
        self._words |= {*split_tokens(re.sub("/", " ", unquote(f"{parts.path} {parts.query}")))}
        values = [value for _, value in parse_qsl(parts.query)[:MAX_PARAMETERS]]
        names = values or [parts.path.rstrip("/").rpartition("/")[2]]
        spelled = "|".join(re.escape(name) for name in names if name)
        self._names = rf"(?<![^\W_])(?:{spelled})(?![^\W_])" if spelled else ""

    def without(self, tokens: Iterable[str]) -> list[str]:
        """Returns the tokens of a page but for the words of its address, for links that name it, and for signs, of which it has some.

        >>> Address("http://a.org/shop/Red-lamp").without(["no", "red", "lamp", "/login?next=/shop/Red-lamp", "/lamps"])
        ['no', '/lamps']
        """
        return [token for token in tokens if not is_signs(token) and not self._is_named(token)]

    def words_left(self, tokens: Iterable[str]) -> list[str]:
        """Returns the tokens of a page but for the words of its address."""
        return [token for token in tokens if token not in self._words]

    def _is_named(self, token: str) -> bool:
        if not is_url(token):
            return token in self._words
        return bool(self._names) and re.search(self._names, token) is not None


def in_common(answers: Sequence[tuple[str, Page]], kept: Page) -> ErrorPage | None:
    """Returns what two answers have in common.  None if most of what the first says, beside the kept page, is not in the other."""
    url, page = answers[0]
    a, b = (Address(at).without(words_of(answer)) for at, answer in answers)
    own, changing = (Counter(a) - Counter(said) for said in (words_of(kept), b))
    if 2 * changing.total() >= own.total():
        return None
    noise = Gaps()
    noise.learn(url, changes(lines_of_words(a), lines_of_words(b)))
    return ErrorPage(url, a, Address(url).without(page.heading), noise)
