"""The recursion that the paper's designs of tables come from (Manku, Jain, Das Sarma 2007, section 3.1.2).

A crawl plans its tables by `dedup.fingerprint.plans`, which cuts the bits at most twice; the recursion cuts them
as often as that pays.
"""

from math import ceil, comb, inf


def fewest_tables(bits: float, k: int, d: float, tau: float) -> float:
    """X(f, k, d) of section 3.1.2: the fewest tables for 2^d fingerprints of f bits when a probe may
    meet up to 2^tau of them; inf where no cutting does.

    X = 1 if d < tau, else min over r > k of C(r, k) * X(f k / r, k, d - f (r - k) / r).

    >>> [fewest_tables(64, 3, 34, tau) for tau in (3.1, 6.1, 9.1, 18.1)]
    [20, 16, 10, 4]
    >>> fewest_tables(64, 3, 34, 0), fewest_tables(8, 3, 34, 10)
    (35, inf)
    """
    if d < tau:
        return 1
    if bits < 1:
        return inf
    best = inf
    for blocks in range(k + 1, ceil(bits) + 1):
        here = comb(blocks, k)
        if here < best:
            below = fewest_tables(bits * k / blocks, k, d - bits * (blocks - k) / blocks, tau)
            best = min(best, here * below)
    return best
