"""What speaks for and against a page's being a near-duplicate of a kept one, once the chrome of its host is set aside.

Two pages in the same large chrome resemble each other, whatever they are about.  So resemblance is not enough:
what is a page's own has to match, too.

>>> from dedup.fingerprint.chrome import Chrome
>>> from dedup.fingerprint.detector import Detector
>>> detector, chrome = Detector(min_tokens=5), Chrome(512)
>>> menu = "".join(f"<li>menu item {n} of this shop" for n in range(50))
>>> def product(n):
...     text = " ".join(f"fact{n}x{k}" for k in range(40))
...     return detector.fingerprint(f"<title>Product</title>{menu}<p>{text}")
>>> pages = [product(n) for n in range(20)]
>>> for page in pages[:10]:
...     chrome.add(page)
>>> a, b = pages[10:12]
>>> view, sketcher = chrome.view(a, detector.sketcher), detector.sketcher
>>> counts = match_counts(sketcher, sketcher.words([b.sketch]), a, view)[:, 0]
>>> detector.compare(a, b).duplicate, weigh(sketcher, a, counts.tolist(), b.called, view).suffices(0.5)
(True, False)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.chrome import Bools, View
from dedup.fingerprint.fingerprint import Called, Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.sketch import Sketcher

__all__ = ["Evidence", "can_suffice", "is_mirror", "is_same_name", "match_counts", "weigh"]

#: New shingles that are taken for noise (a counter, a date) where the heading says that it is the same page, and
#: where it doesn't tell; and their share of a page at most.  From data in scripts, noise has been left out before:
#: of a page that has data, nothing is taken for noise where the heading doesn't tell.
NOISE_NAMED, NOISE, NOISE_SHARE = 24.0, 16.0, 0.03
#: Where the heading tells nothing, this share of a page's own has to match.
UNTOLD = 0.7
#: Under another heading, the page must have this many own slots, and of its own, the first share has to match; the
#: second one if more than this many shingles are new, since a section's menu may well be four fifths of them.
FEW, STRICT, STRICTEST, PARAGRAPH = 8, 0.8, 0.9, 48.0
#: A drop with more new shingles is doubtful.  Some of them are learned for each kept page, as if they had been kept:
#: so the chrome of a section is met, although all pages but its first are dropped.
DOUBTFUL = 30.0


class Evidence(NamedTuple):
    """What speaks for and against a page's being a near-duplicate of a kept one, in shingles."""

    own: float  #: of the page's own shingles that count
    matching: float  #: of them, those that the kept page has
    new: float  #: of them, those that it has not
    slots: int  #: own slots that this rests on
    shingles: int  #: of the whole page
    heading: bool | None  #: whether the headings are equal; None: that tells nothing
    other_name: bool  #: each page is called, in heading and address, by a word that the other is not
    same_name: bool = False  #: both are called the same by heading and address, or have the same path
    shows_own: bool = False  #: enough of the page's main view is its own
    has_data: bool = False  #: some of the page's shingles are data in scripts

    def suffices(self, min_own: float) -> bool:
        """Whether it is a near-duplicate, if the whole pages resemble each other enough."""
        if self.other_name:
            return False
        if self.heading is False:
            least = STRICT if self.new <= PARAGRAPH else STRICTEST
            return self.slots >= FEW and self.matching >= least * self.own
        if self.heading:
            noise, least = NOISE_NAMED, min_own
        else:
            noise, least = 0.0 if self.has_data else NOISE, max(min_own, UNTOLD)
        return self.new <= min(noise, NOISE_SHARE * self.shingles) or self.matching >= least * self.own

    @property
    def shows_same(self) -> bool:
        """Whether it is a near-duplicate, if the main views of both pages are equal.

        Something in there has to be own: where chrome is marked wrongly, a cookie banner may be all of the view.
        """
        return self.shows_own and self.heading is not False and not self.other_name

    @property
    def is_doubtful(self) -> bool:
        """Whether a drop by this evidence is to be learned from."""
        return self.new > DOUBTFUL


def match_counts(sketcher: Sketcher, stored: Hashes, page: Fingerprint, view: View) -> npt.NDArray[np.int64]:
    """How a page's own slots compare with n sketches, of shape (n, w): int64, shape (5, n).

    Own ones outside marked chrome, those of them filled in the other, those equal; own ones inside marked
    chrome, those of them not equal.
    """
    assert page.own is not None
    query, if_equal, if_new, main = (np.frombuffer(octets, np.uint64) for octets in (page.sketch, *view[:3]))
    filled = sketcher.lanes(stored)
    equal = sketcher.lanes(query) & filled & ~sketcher.lanes(stored ^ query)
    own = (if_equal & equal) | (if_new & ~equal)
    outside, inside = own & main, own & ~main
    counted = np.array([outside, outside & filled, outside & equal, inside, inside & ~equal])
    counts: npt.NDArray[np.int64] = np.bitwise_count(counted).sum(axis=-1, dtype=np.int64)
    return counts


def can_suffice(
    sketcher: Sketcher, page: Fingerprint, counts: npt.NDArray[np.int64], min_own: float
) -> Bools:
    """Which of n kept pages can be enough by the counts of `match_counts`, whatever they are called: bool, shape (n,)."""
    assert page.own is not None
    own, matching, new = _in_shingles(sketcher, page, counts)
    noise = min(max(NOISE_NAMED, NOISE), NOISE_SHARE * page.own.shingles)
    enough: Bools = (new <= noise) | (matching >= min(min_own, STRICT, STRICTEST) * own)
    return enough


def weigh(sketcher: Sketcher, page: Fingerprint, counts: Sequence[int], kept: Called, view: View) -> Evidence:
    """The evidence that the five counts of `match_counts` give, and what both pages are called."""
    assert page.own is not None
    own, matching, new = map(float, _in_shingles(sketcher, page, np.array(counts, np.int64)))
    return Evidence(
        own,
        matching,
        new,
        counts[0] + counts[3],
        page.own.shingles,
        is_same_heading(page, kept, view),
        is_other_name(page, kept),
        is_same_name(page, kept),
        view.shows_own,
        page.own.has_data,
    )


def _in_shingles(
    sketcher: Sketcher, page: Fingerprint, counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], ...]:
    """How many of a page's shingles are its own, match, and are new, by the five counts, of shape (5,) or (5, n).

    Slots of different shingles are equal by chance once in c = 2^bits - 1.  Equality inside marked chrome proves
    nothing; what is new there is new.
    """
    assert page.own is not None
    outside, both, equal, inside, inside_new = counts
    values = sketcher.values
    match = np.maximum(0.0, (values * equal - both) / (values - 1))
    own = outside + np.minimum(inside, inside_new * values / (values - 1))
    scale = page.own.shingles / max(1, int(np.count_nonzero(page.own.filled)))
    return own * scale, match * scale, (own - match) * scale


def is_mirror(page: Fingerprint, kept: Called) -> bool:
    """Whether a page that resembles one of another host is called the same, where neither host is known."""
    own = page.called
    differs = own.heading and kept.heading and own.heading != kept.heading
    return not differs and not is_other_name(page, kept)


def is_same_heading(page: Fingerprint, kept: Called, view: View) -> bool | None:
    """Whether the heading says that a page is the same as the kept one; None if it doesn't tell.

    An equal heading tells if it is rare on the host, or if the addresses agree.
    """
    own = page.called
    if not (own.heading and kept.heading):
        return None
    if own.heading != kept.heading:
        return False
    return True if view.heading_tells or is_same_name(page, kept) else None


def is_same_name(page: Fingerprint, kept: Called) -> bool:
    """Whether two pages are called the same by heading and address, or have the same place in their sites."""
    own = page.called
    return bool((kept.names and kept.names == own.names) or (kept.place and kept.place == own.place))


def is_other_name(page: Fingerprint, kept: Called) -> bool:
    """Whether a page is called by a name that the kept one doesn't say, and the other way round.

    One of the two may have no name by which both its heading and its address call it.
    """
    names = page.called.names
    own = not names or names & ~(kept.heading | kept.names)
    other = not kept.names or kept.names & ~page.said
    return bool(own and other and (names | kept.names))
