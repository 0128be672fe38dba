"""Kept pages as they are without their noise: by digests, so that a page is compared with all of them at once."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from dedup.filter.noise import Basis, Noise, Shown
from dedup.filter.own_name import joined, own_name, without_name_in_row
from dedup.filter.places import is_signs, marked, without_breaks
from dedup.filter.visit import Visit
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.page.html import Page
from dedup.page.tokens import without_each

#: Digests that are remembered; a page has two at least.
MAX_KEPT = 100_000


class Kept(Struct, frozen=True, gc=False):
    """A kept page that is known without its noise."""

    page_id: str
    url: str
    simhash: int
    digest: int  #: of its tokens, noise and all
    carried: int

    @classmethod
    def as_is(cls, visit: Visit, fingerprint: Fingerprint) -> "Kept":
        """Returns a page that is at hand."""
        simhash = fingerprint.simhash or 0
        return cls(visit.page_id, visit.url, simhash, fingerprint.digest, visit.carried)


class KeptPages:
    """The kept pages of one crawl, by what is left of them, and by what their requests carried; the oldest are forgotten."""

    def __init__(self) -> None:
        self._pages: OrderedDict[int, Kept] = OrderedDict()  # by a digest, and what was carried
        self._page_ids = set[str]()

    def __contains__(self, page_id: str) -> bool:
        return page_id in self._page_ids

    def find(self, digests: Iterable[int], visit: Visit) -> Kept | None:
        """Returns the first other page with one of the digests, asked for with the same data."""
        found = (self._pages.get(digest ^ visit.carried) for digest in digests)
        return next((kept for kept in found if kept and kept.page_id != visit.page_id), None)

    def remember(self, digests: Iterable[int], kept: Kept) -> None:
        """Takes up a page, unless another was there with the same digest."""
        self._page_ids.add(kept.page_id)
        for digest in digests:
            self._pages.setdefault(digest ^ kept.carried, kept)
        while len(self._pages) > MAX_KEPT:
            _, forgotten = self._pages.popitem(last=False)
            self._page_ids.discard(forgotten.page_id)


def text_of(page: Page) -> list[str]:
    """Returns all tokens of a page with the `marked` breaks and signs, and those of data in its scripts behind the others."""
    return _octets(page).decode("utf-8", "surrogatepass").split("\0")


def _octets(page: Page) -> bytes:
    """Returns the same, joined by NULs."""
    data = [token.encode("utf-8", "surrogatepass") for token in page.data]
    return b"\0".join([*marked(page), b"", *data])


def digests(left: bytes, url: str) -> tuple[int, int]:
    """Returns two digests of a page: pages with the same first one differ in noise alone, and with the same second one in noise and
    in their names in a row.

    ``left`` are its tokens without noise, joined by NULs.
    """
    own = own_name(left, url)
    nameless = without_each(left, own.tokens) if own.is_in_row else left
    return xxh3_64_intdigest(left), xxh3_64_intdigest(b"\0" + nameless)


class Texts:
    """The text of the page that was asked about last, and its digests: it is asked about several times in turn."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._page: Page | None = None
        self._octets = self._words = b""  # its text with breaks and without
        self._tokens: list[str] = []
        self._digests = dict[tuple[Basis, str], tuple[int, int]]()

    def of(self, page: Page) -> list[str]:
        """Returns the `text_of` a page."""
        self._turn_to(page)
        if not self._tokens:
            self._tokens = self._octets.decode("utf-8", "surrogatepass").split("\0")
        return self._tokens

    def digests(self, like: str, page: Page, url: str) -> tuple[int, int]:
        """Returns the `digests` of a page at a URL without the noise of pages like another."""
        self._turn_to(page)
        asked = self._noise.basis(like), url
        if asked not in self._digests:
            is_noisy = self._noise.is_met(like)
            left = joined(self._noise.left(like, self.of(page))) if is_noisy else self._words
            self._digests[asked] = digests(left, url)
        return self._digests[asked]

    def shown(self, like: str, page: Page, url: str) -> Shown:
        """Returns what a page at a URL shows where there is noise on pages like another."""
        if self._noise.is_met(like):
            return self._noise.shown(like, self.of(page), url)
        self._turn_to(page)
        return self._noise.shown_by(like, self._words, url)

    def _turn_to(self, page: Page) -> None:
        if self._page is not page:
            self._page, self._octets, self._tokens, self._digests = page, _octets(page), [], {}
            self._words = without_breaks(self._octets)


def are_equal(noise: Noise, like: str, answers: Sequence[Page], page: Page, url: str) -> bool:
    """Returns whether a page is equal to all answers of a kept one but for noise: what differs among them, if they are several."""
    if len(answers) > 1:
        noise = Noise()
        if not noise.learn(like, *map(text_of, answers)):
            return False
    each = [*((answer, like) for answer in answers), (page, url)]
    found = [digests(joined(noise.left(like, text_of(shown))), at) for shown, at in each]
    return any(len({*some}) == 1 for some in zip(*found, strict=True))


def noisy(noise: Noise, url: str, tokens: Sequence[str]) -> Iterator[str]:
    """The tokens of a page at places of noise, and those of its name."""
    left = iter(without_name_in_row(noise.left(url, tokens), url))
    stays = next(left, None)
    for token in noise.words(url, tokens):
        if token == stays:
            stays = next(left, None)
        elif token and not is_signs(token):
            yield token
