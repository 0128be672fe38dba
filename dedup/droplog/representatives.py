"""Representatives: which page of those alike is preferred, after a crawl that has kept the one that it met first."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from dedup.droplog.drops import Drops
from dedup.page.preference import plain, preference


class Representative(NamedTuple):
    """The page that stands for a kept page and its near-duplicates."""

    url: str
    kept: str  #: URL of the page that the crawl has kept
    near_duplicates: int


def representatives(drops: Drops, which: str) -> Iterator[Representative]:
    """Yields the representative of each kept page, in the order of their URLs; where none is better, it is the kept page.

    ``which`` is one of `dedup.page.preference.PREFERENCES`, or names a function.  A page counts
    as canonical if any of the pages names its URL.  Its own shingles tell how much it says.  Soft 404 pages
    are left out.  Raises `SettingsError`.
    """
    prefer = preference(which)
    for kept, members in groupby(drops.members(), key=lambda member: member.kept):
        sizes, named = {kept: 0.0}, set[str]()
        for member in members:
            sizes.setdefault(member.url, (member.new or 0) - (member.gone or 0))
            named.add(plain(member.canonical or ""))
        best = max(sizes, key=lambda url: prefer(url, url if plain(url) in named else "", sizes[url]))
        yield Representative(best, kept, len(sizes) - 1)
