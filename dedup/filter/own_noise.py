"""Own noise: what was seen to change on a page itself, beside what changes on other pages of its kind.

Two kinds of page may have addresses of one pattern, and what changes on the ones, such as a quote of the day, may be
all that the others have of their own.  So one of two pages has to show something else at those places itself before either is
dropped for the other: it was met before, under another session or the like, or else the kept page is asked for.  Once enough
pages of a kind have, and none has not, one page may be dropped for a kept one because of what was seen on others; before a
second one is, that page is asked for, too.

>>> pages = OwnNoise()
>>> def shown(**tokens): return Shown(("a.org/view?id", 1), 2 * (Among(7, tokens),))
>>> pages.met("/view?id=1", shown(counter=17, price=4))
>>> pages.met("/view?id=1", shown(counter=18, price=4))
>>> [pages.explains("/view?id=1", "/view?id=2", shown(counter=19, price=price)) for price in (4, 5)]
[True, False]
"""

from collections import Counter

from msgspec import Struct, structs

from dedup.filter.kept import MAX_KEPT
from dedup.filter.kinds import MAX_KINDS
from dedup.filter.noise import Among, Basis, Shown
from dedup.latest import Latest

#: Pages of which it is remembered what they showed: as many as are known without their noise.
MAX_SHOWN = MAX_KEPT // 2
#: Kept pages of a kind that have to change themselves before what was seen on others explains anything.
ENOUGH = 8
#: Times that a kept page is asked for, since an advert may be the same for a while.
TURNS = 3

_NOTHING = frozenset[int](), frozenset[int]()


class _Met(Struct, gc=False):
    """What a page showed where there is noise, and what of that has changed."""

    shown: Shown
    #: By the number of tokens before it, as in `Shown.among`.
    changed: tuple[frozenset[int], frozenset[int]] = _NOTHING
    is_trusted: bool = True  #: nothing was dropped for it without having been seen to change on it
    turns: int = 0  #: how often it was asked for
    explains: bool | None = None  #: whether it explained a difference; None if it was not asked that


class OwnNoise:
    """What the pages of one crawl have shown at places of noise, by their addresses."""

    def __init__(self) -> None:
        self._pages = Latest[str, _Met](MAX_SHOWN)
        #: Kept pages that changed themselves and that did not, by kind.
        self._explaining = Latest[str, Counter[bool]](MAX_KINDS)

    def met(self, address: str, shown: Shown) -> None:
        """Notes what a page shows; what differs from what it has shown before is its own noise."""
        page = self._pages.get(address)
        if page is None:
            self._pages[address] = _Met(shown)
        elif page.shown.basis == shown.basis and any(map(_are_left_alike, page.shown.among, shown.among)):
            first, second = map(_changed, page.changed, page.shown.among, shown.among)
            page.changed = first, second
        else:  # there is more noise than was known then, or it shows something else
            self._pages[address] = structs.replace(page, shown=shown, changed=_NOTHING)

    def explains(self, kept: str, address: str, shown: Shown) -> bool:
        """Whether a page that shows this differs from the kept one only where either was seen to change itself."""
        page = self._pages.get(kept)
        if page is None:
            return False
        own = self._pages.get(address, page)
        for number, (before, now) in enumerate(zip(page.shown.among, shown.among, strict=True)):
            if _are_left_alike(before, now):
                differing = before.differing(now)
                is_own = _are_left_alike(own.shown.among[number], now) and differing <= own.changed[number]
                if is_own or differing <= page.changed[number]:
                    return True
        return False

    def count(self, kept: str, kind: str, *, explains: bool) -> None:
        """Counts a kept page among those of its kind that have explained a difference, or among those that have not."""
        page = self._pages.get(kept)
        if page is not None and not page.explains:
            counts = self._explaining[kind] = self._explaining.get(kind) or Counter()
            if page.explains is not None:
                counts[page.explains] -= 1
            page.explains = explains
            counts[explains] += 1

    def trust(self, kept: str, kind: str) -> bool:
        """Whether a page may be dropped for this one because of what was seen on others of its kind: it may, once."""
        page = self._pages.get(kept)
        counts = self._explaining.get(kind) or Counter()
        if page is None or not page.is_trusted or counts[False] or counts[True] < ENOUGH:
            return False
        page.is_trusted = False
        return True

    def ask(self, kept: str, basis: Basis) -> int:
        """How often a kept page should be fetched, which it should be in one turn; ``basis`` is that of what it will show."""
        page = self._pages.get(kept)
        if page is None or page.turns == TURNS:
            return 0
        page.turns, page.is_trusted = page.turns + 1, False
        return 1 if page.shown.basis == basis else 2


def _changed(known: frozenset[int], before: Among, now: Among) -> frozenset[int]:
    """Returns where a page has changed, by what is known of it and by two answers."""
    return known | before.differing(now) if _are_left_alike(before, now) else known


def _are_left_alike(a: Among, b: Among) -> bool:
    return a.left == b.left
