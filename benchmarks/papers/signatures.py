"""Signatures that no crawl uses, beside `dedup.fingerprint.signatures`, which has a random order per selector.

* `one_permutation`: r slots of one order (Li, Owen, Zhang 2012, "One permutation hashing"), whose empty slots
  are filled as in Shrivastava 2017, "Optimal densification for fast and accurate minwise hashing";
* `bottom_k`: the k least of one order (Broder 1997, "On the resemblance and containment of documents");
* `weighted_signature`: samples that respect weights (Ioffe 2010, "Improved consistent sampling, weighted
  minhash and L1 sketching").

Each works from a set: neither the order of the shingles nor repeats matter.
"""

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.shingles import Hashes, mix

Weights = npt.NDArray[np.float64]

#: What is picked from a page without shingles; of 32 bits, the lower half.
NOTHING = np.uint64(2**64 - 1)


def agreement(a: npt.NDArray[np.unsignedinteger], b: npt.NDArray[np.unsignedinteger]) -> float:
    """The share of r selectors that picked the same from two pages: the estimate of their resemblance R.

    Unbiased for `signature`, `one_permutation` and `weighted_signature`.  Its standard error is
    sqrt(R (1 - R) / r) for selectors with an order each: .04 at R = .75 and r = 128.

    >>> agreement(np.array([3, 1, 4, 1]), np.array([3, 1, 5, 1]))
    0.75
    """
    return float((a == b).mean())


def one_permutation(shingles: Hashes, slots: int, key: int = 0) -> npt.NDArray[np.uint32]:
    """What each of r slots holds of a set of shingle hashes: uint32, shape (r,).  O(n + r^2).

    One order for all slots: the mixed hash gives a shingle its slot, and each slot keeps its least.  A slot
    that is left empty takes what the first filled one holds, in an order of the slots that is its own
    (Shrivastava 2017, "Optimal densification": an order, where the paper draws until a filled one comes up).
    For an `agreement` of two pages of N different shingles, m slots filled by either, its variance is

        R (1 - R) / r^2 * (r + s - (r (r - 1) - s) / (N - 1)),  s = 2 (r - m) + (r - m) (r - m - 1) / m,

    where s counts the pairs of slots with one source: below R (1 - R) / r for pages of N > r.  On average
    m = r (1 - (1 - 1/r)^N).

    >>> a, b = (np.arange(start, start + 90, dtype=np.uint64) for start in (0, 10))  # resemblance .8
    >>> round(agreement(one_permutation(a, 1000), one_permutation(b, 1000)), 2)
    0.8
    """
    values = mix(shingles ^ np.uint64(key))
    slot = (values >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32)
    least = np.full(slots, NOTHING)
    np.minimum.at(least, slot.astype(np.intp), values)
    is_empty = least == NOTHING
    filled, empty = np.flatnonzero(~is_empty), np.flatnonzero(is_empty)
    if 0 < len(filled) < slots:
        order = mix((empty[:, np.newaxis] * slots + filled).astype(np.uint64))
        least[empty] = least[filled[order.argmin(axis=1)]]
    return least.astype(np.uint32)  # the low bits are independent of its being the least


def bottom_k(shingles: Hashes, k: int, key: int = 0) -> Hashes:
    """The k least of a set of shingle hashes in one order, ascending: uint64, shape (k,), or all there are.

    Broder's sketch of 1997; O(n log n), and one page's is of use whatever k the other's has.

    >>> numbers = np.arange(5000, dtype=np.uint64)
    >>> bottom_k(numbers, 100).shape, bottom_k(numbers[:7], 100).shape
    ((100,), (7,))
    """
    values = np.sort(mix(shingles ^ np.uint64(key)))
    changes = np.flatnonzero(np.diff(values, prepend=values[:1] + np.uint64(1)))
    return values[changes[:k]]


def bottom_k_resemblance(a: Hashes, b: Hashes, k: int) -> float:
    """The resemblance that the `bottom_k` of two pages speak for: of the k least of both, the share in both.

    The k least of the union are among the k least of each, so this is a sample of the union without
    replacement: unbiased, with a standard error of sqrt(R (1 - R) / k * (N - k) / (N - 1)) for a union of N
    shingles, and exact for N <= k.  1 when both are empty.  O(k log k).

    >>> a, b = (np.arange(start, start + 900, dtype=np.uint64) for start in (0, 100))  # resemblance .8
    >>> bottom_k_resemblance(bottom_k(a, 100), bottom_k(b, 100), 100)
    0.81
    >>> bottom_k_resemblance(bottom_k(a, 1000), bottom_k(b, 1000), 1000)  # all of both
    0.8
    """
    least = np.union1d(a, b)[:k]
    if len(least) == 0:
        return 1.0
    common = np.intersect1d(a, b, assume_unique=True)
    return int(np.searchsorted(common, least[-1], side="right")) / len(least)


def weighted_signature(features: Hashes, weights: Weights, samples: int, key: int = 0) -> Hashes:
    """What each of r samples picks from weighted features: uint64, shape (r,).  O(n * r).

    ``weights`` are finite and not negative, one per feature; those of a repeated feature add up, and a weight
    of 0 is as good as none.  Ioffe 2010, "Improved consistent sampling", section 3: a sample is a feature and
    a quantity of at most its weight; two pages agree on it with a probability of their `weighted_resemblance`.
    It is consistent: a page whose weights are lower has the same sample as long as its quantity still fits.

    `agreement` has a standard error of sqrt(R (1 - R) / r).  Logarithms may differ in the last bit from one
    machine to another, which moves a sample about once in 10^12.

    >>> words = np.arange(300, dtype=np.uint64)
    >>> once, twice = np.full(300, 1.0), np.full(300, 2.0)
    >>> round(agreement(weighted_signature(words, once, 1000), weighted_signature(words, twice, 1000)), 1)
    0.5
    """
    features, totals = _totals(features, weights)
    picked = np.full(samples, NOTHING)
    if len(features) == 0:
        return picked
    hashes = mix(mix(features ^ np.uint64(key)))  # twice, since draws and quantities are mixed once
    logs = np.log(totals)
    step = max(1, 2**14 // len(features))
    for some in range(0, samples, step):
        rows = np.arange(some, min(some + step, samples), dtype=np.uint64)[:, np.newaxis]
        # The names are the paper's: r and c are of Gamma(2, 1), beta is uniform, y = exp(r (t - beta)).
        r, c = (_gamma(mix(hashes ^ mix(3 * rows + np.uint64(draw)))) for draw in (1, 2))
        beta = _uniform(mix(hashes ^ mix(3 * rows + np.uint64(3))))
        t = np.floor(logs / r + beta)
        chosen = (np.log(c) - r * (t - beta + 1)).argmin(axis=1)[:, np.newaxis]  # ln a = ln c - ln y - r
        quantity = np.take_along_axis(t, chosen, axis=1).astype(np.int64).view(np.uint64)
        picked[some : some + step] = mix(hashes[chosen] ^ mix(quantity)).ravel()
    return picked


def weighted_resemblance(a: Hashes, a_weights: Weights, b: Hashes, b_weights: Weights) -> float:
    """Of two pages' weighted features, sum(min) / sum(max) of the weights; 1 when both have none.  O(n log n).

    With all weights 1 and no repeats it is `dedup.fingerprint.shingles.resemblance`.

    >>> a, b = np.array([1, 2, 3], np.uint64), np.array([2, 3, 4], np.uint64)
    >>> weighted_resemblance(a, np.array([1.0, 2.0, 1.0]), b, np.array([1.0, 1.0, 3.0]))
    0.285714...
    """
    (a, in_a), (b, in_b) = _totals(a, a_weights), _totals(b, b_weights)
    _, at_a, at_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    common = float(np.minimum(in_a[at_a], in_b[at_b]).sum())
    union = float(in_a.sum() + in_b.sum()) - common
    return common / union if union else 1.0


def _totals(features: Hashes, weights: Weights) -> tuple[Hashes, Weights]:
    """Each feature that weighs something, once, ascending, with its weight in all."""
    present = weights > 0
    features, positions = np.unique(features[present], return_inverse=True)
    return features, np.bincount(positions, weights[present], len(features)).astype(np.float64)


def _uniform(hashes: Hashes) -> Weights:
    """A number in (0, 1) from each hash."""
    return ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _gamma(hashes: Hashes) -> Weights:
    """A number of Gamma(2, 1), the sum of two exponential ones, from each hash."""
    high, low = hashes >> np.uint64(32), hashes & np.uint64(0xFFFFFFFF)
    result: Weights = -np.log((high + 0.5) * (low + 0.5) * 2.0**-64)
    return result
