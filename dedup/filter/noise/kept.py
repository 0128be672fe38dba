"""Kept pages, with what they and their other answers have shown."""

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from dedup.filter.noise.gaps import MANY
from dedup.filter.noise.left import Own
from dedup.filter.noise.lines import Line, lines_of
from dedup.filter.noise.names import nameless
from dedup.filter.visit import Visit
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.latest import PAGES, Latest
from dedup.page.html import Page
from dedup.page.ids import strip_session
from dedup.page.siblings import MAX_PARAMETERS, one_address

#: Characters of the markup of kept pages that are held: those of the last thousand of 32 kB.
MAX_HELD = 1 << 25
#: Characters of the markup of pages whose lines are held.
MAX_READ = 1 << 20

#: The last part of a path, and parameters.
Name = tuple[str, ...]


class Shown(Struct, gc=False):
    """A page, and what it has shown."""

    page_id: str
    url: str
    address: str  #: that it shares with what is the same page by the site's own word
    simhash: int
    digest: int  #: of its tokens
    carried: int
    markup: str = ""  #: "" if it is not held any more
    last: str = ""  #: that of its last answer, if it was fetched again
    seen: float = 0.0  #: when that came, in seconds
    own: Own | None = None  #: what differs between its answers
    asked: int = 0  #: how often it was fetched again
    is_gone: bool = False  #: an answer did not show it: it is not fetched again, and says nothing of its kind
    lines: Sequence[Line] = ()  #: of its markup, once they were read
    last_lines: Sequence[Line] = ()  #: of its last answer, likewise
    nameless: Sequence[Line] | None = None  #: the same without its name, likewise

    @classmethod
    def at_hand(cls, visit: Visit, page: Page, fingerprint: Fingerprint) -> "Shown":
        """Returns a page that is at hand."""
        address, simhash = one_address(visit.url), fingerprint.simhash or 0
        return cls(
            visit.page_id, visit.url, address, simhash, fingerprint.digest, visit.carried, page.markup,
            seen=time.monotonic(),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Characters of its markup."""
        return len(self.markup) + len(self.last)

    def forget(self) -> None:
        """Lets go of its lines, which can be read again as long as its markup is held."""
        self.lines, self.last_lines, self.nameless = (), (), None

    def read(self) -> Sequence[Line]:
        """Returns its lines; none if its markup is not held."""
        if not self.lines and self.markup:
            self.lines = lines_of(self.markup, self.url)
        return self.lines

    def read_last(self) -> Sequence[Line]:
        """Returns the lines of its last answer."""
        if not self.last:
            return self.read()
        if not self.last_lines:
            self.last_lines = lines_of(self.last, self.url)
        return self.last_lines

    def read_nameless(self) -> Sequence[Line]:
        """Returns its lines without its name; none if it leads to no page beside it."""
        if self.nameless is None:
            self.nameless = nameless(self.markup, self.url)
        return self.nameless


class KeptPages:
    """The kept pages of one crawl, by page id; the oldest are forgotten."""

    def __init__(self) -> None:
        self._pages = Latest[str, Shown](PAGES)
        #: Page ids, and the addresses of them or of their copies, by the names that others may share with these, such as a
        #: print version; {} if many have such a name, which then tells nothing without the folder before it.
        self._named = Latest[Name, dict[str, str]](PAGES)
        #: Names that are nothing but these and one parameter; () once several are.
        self._more = Latest[Name, Name](PAGES)
        self._held = dict[str, int]()  # characters of the markup that is held, by page id, the oldest first
        self._size = 0
        self._read = OrderedDict[str, tuple[Shown, int]]()  # and characters of its markup
        self._read_size = 0

    def read(self, page: Shown) -> Sequence[Line]:
        """Returns the lines of a page, which are held for a while."""
        _, size = self._read.pop(page.page_id, (page, 0))
        self._read[page.page_id] = page, page.size
        self._read_size += page.size - size
        while self._read_size > MAX_READ and len(self._read) > 1:
            _, (oldest, size) = self._read.popitem(last=False)
            self._read_size -= size
            oldest.forget()
        return page.read()

    def read_last(self, page: Shown) -> Sequence[Line]:
        """Returns the lines of its last answer, likewise."""
        self.read(page)
        return page.read_last()

    def get(self, page_id: str) -> Shown | None:
        return self._pages.get(page_id)

    def like(self, page: Shown, *, more: bool = False) -> list[Shown]:
        """Returns the first kept pages of whose addresses, or of a copy's, all is the same but hosts, folders and one parameter.

        With ``more``, these have a parameter that it lacks, with one value on all pages of that name.
        """
        return [*filter(None, map(self._pages.get, dict(self._like(page.url, more=more))))]

    def address_like(self, page: Shown, url: str) -> str:
        """Returns the address of a kept page, or of a copy of it, that shares a name with a URL; "" if there is none."""
        named = *self._like(url), *self._like(url, more=True)
        found = (like for page_id, like in named if page_id == page.page_id)
        return page.url if share_name(page.url, url) else next(found, "")

    def name(self, page_id: str, url: str) -> None:
        """Notes an address at which a kept page, or a copy of it, is."""
        names, (whole, *fewer) = names_of(url)
        for name in names:
            found = self._named.setdefault(name, {page_id: url})
            if found and len(found) < MANY:
                found.setdefault(page_id, url)
                continue
            self._named[name] = {}
            for its_id, its_url in {**found, page_id: url}.items():
                its = self._named.setdefault(_longer(name, its_url), {})
                if len(its) < MANY:
                    its.setdefault(its_id, its_url)
        for name in {*fewer} - {*names}:
            self._more[name] = whole if self._more.get(name, whole) == whole else ()

    def _like(self, url: str, *, more: bool = False) -> Iterator[tuple[str, str]]:
        for sought in names_of(url)[1]:
            name = self._more.get(sought, ()) if more else sought
            if self._named.get(name) == {}:
                name = _longer(name, url)
            yield from self._named.get(name, {}).items()

    def add(self, page: Shown) -> None:
        """Takes up a page, or what it shows by now."""
        self._drop(page.page_id)
        page.forget()
        self._pages[page.page_id] = page
        self.name(page.page_id, page.url)
        self._held[page.page_id] = page.size
        self._size += page.size
        while self._size > MAX_HELD and len(self._held) > 1:
            oldest = next(iter(self._held))
            self._drop(oldest)
            if (known := self._pages.get(oldest)) is not None:
                known.markup, known.last, known.own = "", "", None
                known.forget()

    def _drop(self, page_id: str) -> None:
        self._size -= self._held.pop(page_id, 0)


def names_of(url: str) -> tuple[list[Name], list[Name]]:
    """Returns by which names a page is found: the last part of its path and its parameters, but for one at most; and by which it is sought.

    >>> names_of("http://a.org/print/view?id=7")
    ([('view', 'id=7')], [('view', 'id=7'), ('view',)])
    """
    path, _, query = strip_session(url).partition("?")
    parameters = sorted(filter(None, query.split("&")))[:MAX_PARAMETERS]
    name = path.rstrip("/").rpartition("/")[2]
    fewer = [(name, *parameters[:at], *parameters[at + 1 :]) for at in range(len(parameters))]
    whole = (name, *parameters)
    return [whole, *(fewer if len(parameters) > 1 else ())], [whole, *fewer]


def _longer(name: Name, url: str) -> Name:
    """Returns a name with the folder that is before it."""
    folders = url.partition("?")[0].rstrip("/").split("/")[3:-1]
    return (f"{folders[-1] if folders else ''}/{name[0]}", *name[1:])


def share_name(url: str, other: str) -> bool:
    """Returns whether two addresses share a name, by which one is found when the other is sought."""
    return not {*names_of(url)[0]}.isdisjoint(names_of(other)[1])
