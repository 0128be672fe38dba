"""Kinds of page: those of one host whose addresses are of one pattern, and the gaps that they have shown."""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct, field

from dedup.filter.noise.gaps import Gaps
from dedup.latest import Latest
from dedup.page.ids import strip_session
from dedup.page.siblings import PASSING

#: Kinds that are remembered.
MAX_KINDS = 10_000
#: Pages that are fetched again without a new gap, one after the other, before no other is, to learn of gaps.
IDLE = 3
#: Kept pages of a kind that are looked at anew when it has shown a new gap.
RECENT = 64

_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=64)
def kind_of(url: str) -> str:
    """Returns the kind of a page: its host and path without numbers, and the names of its parameters; or else its folder.

    Parameters that only say from where it was asked for, or how it is shown, don't count.

    >>> kind_of("http://a.org/shop7/view?id=3&sid=9f86d081884c7d65&ref=home"), kind_of("http://a.org/shop7/brass-lamp.html")
    ('a.org/shop0/view?id', 'a.org/shop0/*')
    """
    try:
        parts = urlsplit(strip_session(url))
    except ValueError:
        return url
    pairs = (pair.partition("=")[0] for pair in re.split("[&;]", parts.query))
    names = sorted({name for name in pairs if name and not PASSING.fullmatch(name)})
    path = _NUMBER.sub("0", parts.path)
    if not names:
        return f"{parts.netloc}{path.rpartition('/')[0]}/*"
    return f"{parts.netloc}{path}?{'&'.join(names)}"


class Kind(Struct):
    """What is known of a kind of page."""

    gaps: Gaps = field(default_factory=Gaps)
    kept: int = 0  #: its kept pages
    asked: int = 0  #: pages that were fetched again
    idle: int = 0  #: the last of them that have shown no new gap
    stayed: int = 0  #: pages that have not changed where others of the kind have
    proved: int = 0  #: and pages that have
    is_trusted: bool = True  #: False once a page was checked that has not changed where several have
    dropped: list[
        str
    ] = []  #: page ids of kept pages for which others were dropped by what the kind has shown, since one was checked
    drops: int = 0  #: how many these were in all
    recent: Latest[str, None] = field(
        default_factory=lambda: Latest(RECENT)
    )  #: page ids of the last ones that were kept
    by: dict[int, str] = {}  #: page ids of kept pages, by what is left of them without all that may be noise
    version: int = 0  #: of the gaps, when that was told

    @property
    def is_known(self) -> bool:
        """Whether nothing new is expected of its pages."""
        return self.idle >= IDLE

    @property
    def is_doubtful(self) -> bool:
        """Whether gaps of its pages are often content on others, so that none is asked any more."""
        return self.stayed >= IDLE and self.stayed > self.proved

    @property
    def is_due(self) -> bool:
        """Whether the next page that it would have dropped is asked itself first: the first is, and whenever there are twice as many."""
        return not self.drops & (self.drops + 1)
