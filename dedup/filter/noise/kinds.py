"""Kinds of page: those of one host whose addresses are of one pattern, and the gaps that they have shown."""

import re
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct, field

from dedup.filter.noise.gaps import Gaps
from dedup.filter.noise.left import digest_of, least_of
from dedup.filter.noise.lines import Line
from dedup.latest import Latest
from dedup.page.ids import strip_session
from dedup.page.siblings import PASSING

#: How many are enough: answers of one page, since an advert may be the same twice; pages of a kind that are fetched again
#: without a new gap, or of a host without any; and pages of a kind that tell what it has in common.
ENOUGH = 3
#: Kept pages of one kind that make a section: one of them is fetched again to learn of its gaps, and by the last of them it is
#: known what pages of that kind have in common.
SECTION = 8

_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=64)
def kinds_of(url: str) -> dict[str, str]:
    """Returns the kinds that a page may be of, and what its address has in common with those of one: all but what names it.

    That is the values of its parameters, or else the last part of its path, or what is before that.  Numbers in a path count
    for nothing, nor do parameters that only say from where it was asked for, or how it is shown.

    >>> [*kinds_of("http://a.org/brass-lamp/view")], [*kinds_of("http://a.org/brass-lamp/")]
    (['a.org/brass-lamp/*', 'a.org/*/view'], ['a.org/*'])
    >>> kinds_of("http://a.org/shop7/view?id=3&sid=9f86d081884c7d65&ref=home")
    {'a.org/shop0/view?id': 'a.org/shop0/view?id', 'a.org/shop0/*': 'a.org/shop0/*?id=3'}
    """
    try:
        parts = urlsplit(strip_session(url))
    except ValueError:
        return {url: url}
    pairs = (pair.partition("=") for pair in re.split("[&;]", parts.query))
    values = {name: value for name, _, value in sorted(pairs) if name and not PASSING.fullmatch(name)}
    path = parts.netloc + _NUMBER.sub("0", parts.path.rstrip("/"))
    above, _, last = path.rpartition("/")
    folder = above or path
    if values:
        named = f"{path}?{'&'.join(values)}"
        return {named: named, f"{folder}/*": f"{folder}/*?{'&'.join(map('='.join, values.items()))}"}
    before = folder.rpartition("/")[0]
    kinds = (f"{folder}/*", f"{before}/*/{last}") if before else (f"{folder}/*",)
    return dict(zip(kinds, kinds, strict=True))


def kind_of(url: str) -> str:
    """Returns the kind that a page is of as long as nothing is known of its host."""
    return next(iter(kinds_of(url)))


def folder_of(url: str) -> str:
    """Returns the folder of a page, and its host, without numbers.

    >>> folder_of("http://a.org/shop7/view?id=3"), folder_of("http://a.org/shop/brass-lamp/"), folder_of("http://a.org/")
    ('a.org/shop0', 'a.org/shop', 'a.org')
    """
    name, _, path = url.partition("?")[0].partition("//")[2].partition("/")
    folder = path.rstrip("/").rpartition("/")[0]
    return _NUMBER.sub("0", f"{name}/{folder}" if folder else name)


class Learned(Struct):
    """What the next crawl needs to know of a kind of page, too."""

    gaps: Gaps = field(default_factory=Gaps)
    asked: int = 0  #: pages that were fetched again
    idle: int = 0  #: the last of them that have shown no new gap
    is_trusted: bool = True  #: False once a page was checked that has not changed where several have


class Kind(Learned):
    """What is known of a kind of page."""

    kept: int = 0  #: its kept pages
    requests: int = 0  #: for its pages, to fetch them again, answered or not
    #: Page ids of kept pages for which others were dropped by what the kind has shown.
    dropped: Latest[str, None] = field(default_factory=Latest)
    drops: int = 0  #: how many these were in all
    #: Page ids of the last ones that were kept.
    recent: Latest[str, None] = field(default_factory=lambda: Latest(SECTION * SECTION))
    #: Of some of these, hashes of the lines that are left without all that may be noise, by a digest of them.
    sample: Latest[int, frozenset[int]] = field(default_factory=lambda: Latest(SECTION))
    #: Page ids of kept pages, by what is left of them without all that may be noise.
    by: Latest[int, str] = field(default_factory=Latest)
    version: int = 0  #: of the gaps, when that was told

    def note(self, page_id: str, lines: Sequence[Line], nameless: Sequence[Line]) -> None:
        """Notes what is left of a kept page without all that may be noise, and without its name if it has one."""
        left = least_of(lines, self.gaps)
        digest = digest_of(left)
        if digest not in self.by:
            self.by[digest] = page_id
        self.sample[digest] = frozenset(map(hash, left))
        if nameless:
            name_left = digest_of(least_of(nameless, self.gaps))
            self.by[name_left] = self.by.get(name_left, page_id)

    @property
    def is_known(self) -> bool:
        """Whether enough pages tell what they have in common, and what of it is noise."""
        return self.asked > 0 and len(self.sample) >= ENOUGH

    @property
    def is_owed(self) -> bool:
        """Whether it has had fewer requests than sections: one more is owed to it, whatever other kinds have used up."""
        return self.kept + 1 >= SECTION * (1 + max(self.asked, self.requests))

    @property
    def is_due(self) -> bool:
        """Whether the next page to be dropped by it is asked itself first: the first is, and whenever there are four times as many."""
        return not self.drops & (self.drops + 1) and self.drops.bit_length() % 2 == 0


def has_own(lines: Sequence[Line], *kinds: Kind) -> bool | None:
    """Returns whether a page, of which these lines are left, says something that most pages of some kinds don't; None if that is not known.

    The first kinds of which enough pages are known are looked at.
    """
    own = digest_of(lines)
    others = list[frozenset[int]]()
    for kind in kinds:
        others += (said for digest, said in kind.sample.items() if digest != own)
        if len(others) >= ENOUGH:
            return any(
                4 * sum(key in other for other in others) <= len(others) and _says_something(line)
                for key, line in zip(map(hash, lines), lines, strict=True)
            )
    return None


def _says_something(line: Line) -> bool:
    """Whether there is more in a line than tags: a word, or an attribute."""
    return any(token[0] != "<" or token == "<" for token in line.tokens)
