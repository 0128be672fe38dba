"""Samples of a page's shingles, and an inverted index over them.

Two ways to choose.  **0 mod m** (Barber, "Shingling", 2009; Manber 1994) keeps the shingles whose hash is a
multiple of m: whether a shingle is kept depends on nothing but itself, so shares of samples estimate shares
of pages without bias, but a copied passage of any length may lie in a gap.  **Winnowing** (Schleimer,
Wilkerson, Aiken 2003) keeps the least of every window of shingles: no gap is longer than the window, so no
long copy is missed, but what is kept depends on its neighbours too: shares of changed pages come out low.

>>> from dedup.fingerprint.shingles import hash_tokens, shingle_hashes
>>> tweets = ["one week until the conference starts say hurrah now everybody please", "booked train tickets"]
>>> index = InvertedIndex()
>>> for tweet in tweets:
...     index.add(tweet[:8], mod_sample(shingle_hashes(hash_tokens(tweet.split()), SIZE), MODULUS))
>>> query = shingle_hashes(hash_tokens(("rt " + tweets[0]).split()), SIZE)
>>> [match for match in index.scores(mod_sample(query, MODULUS)) if match[1] > THRESHOLD]
[('one week', 1.0)]
"""

from collections import Counter
from itertools import chain

import numpy as np

from dedup.errors import SettingsError
from dedup.fingerprint.shingles import Hashes, mix

#: Barber's m, his w (tokens per shingle), and the score over which he reports a match.
MODULUS, SIZE, THRESHOLD = 3, 4, 0.8
#: Shingles per window of winnowing: keeps 2 of 6, so as many as 0 mod 3.
WINDOW = 5


def mod_sample(shingles: Hashes, m: int) -> Hashes:
    """The shingles whose mixed hash is 0 mod m, in the page's order: uint64, about n / m of n.  O(n).

    A short page may have none (with a probability of (1 - 1/m)^n for n different shingles).  No other
    shingle stands in for them, since it would be one that other pages with it don't keep: such a page
    can't be judged by its sample.  ``m`` is at least 1, else `SettingsError`.

    >>> len(mod_sample(np.arange(0, 30_000, 3, dtype=np.uint64), 3))
    3338
    """
    if m < 1:
        raise SettingsError(f"m is {m}; allowed: a whole number from 1 (1 keeps every shingle)")
    # Mixed, as the numbers that are given may themselves be all, or never, multiples of m.
    sampled: Hashes = shingles[mix(shingles) % np.uint64(m) == 0]
    return sampled


def winnow(shingles: Hashes, window: int) -> Hashes:
    """The least hash of every window of W consecutive shingles, the rightmost of equals: uint64.

    A shingle that several windows choose is kept once, in the page's order; about 2n / (W + 1) of n are
    kept, if the hashes are as good as random.  A page of fewer than W shingles is one window.  Two pages
    with a run of W + w - 1 tokens in common keep a shingle of it in common (section 3).  O(n log W).
    ``window`` is at least 1, else `SettingsError`.

    The example of the paper's figure 2:

    >>> figure = [77, 74, 42, 17, 98, 50, 17, 98, 8, 88, 67, 39, 77, 74, 42, 17, 98]
    >>> winnow(np.array(figure, np.uint64), 4).tolist()
    [17, 17, 8, 39, 17]
    """
    if window < 1:
        raise SettingsError(f"window is {window}; allowed: a whole number from 1 (1 keeps every shingle)")
    chosen = np.arange(len(shingles))  # by the window that starts at each shingle
    width, full = 1, min(window, len(shingles))
    while width < full:
        # Two windows of one width, side by side or overlapping, make a wider one.
        step = min(width, full - width)
        left, right = chosen[:-step], chosen[step:]
        chosen = np.where(shingles[right] <= shingles[left], right, left)
        width += step
    return shingles[chosen[np.diff(chosen, prepend=-1) > 0]]  # choices never step back


class InvertedIndex:
    """Shingle -> the documents that have it, in memory: about 200 bytes for a shingle that one has.

    >>> index = InvertedIndex()
    >>> index.add("a", np.array([1, 2, 3, 4], np.uint64))
    >>> index.add("b", np.array([3, 4, 5], np.uint64))
    >>> index.scores(np.array([2, 3, 4, 9], np.uint64))
    [('a', 0.75), ('b', 0.5)]
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._postings: dict[int, list[int]] = {}

    def add(self, name: str, sample: Hashes) -> None:
        """Files a document, even if its name is there already; without a sample it is never found.  O(n)."""
        for shingle in set(sample.tolist()):
            self._postings.setdefault(shingle, []).append(len(self._names))
        self._names.append(name)

    def scores(self, sample: Hashes) -> list[tuple[str, float]]:
        """Documents with any shingle of the sample, best first, of equals the first that was added.

        The score is the share of the sample's different shingles that the document has, over 0 to 1; an
        empty sample matches nothing.  O(all postings of the sample's shingles).
        """
        shingles = set(sample.tolist())
        postings = (self._postings.get(shingle, ()) for shingle in shingles)
        matched = Counter(chain.from_iterable(postings))
        best = sorted(matched.items(), key=lambda match: (-match[1], match[0]))
        return [(self._names[document], count / len(shingles)) for document, count in best]
