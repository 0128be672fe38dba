"""Narrows the numbers that have to be read to find the pages of one run, or those filed before a date.

A page's number tells when it was filed: numbers only grow, and a run that begins notes the last one before its own.
Two things are noted because they break that order: a run that has met pages of earlier ones, which keep their numbers,
and pages that came from another index, whose runs and times are those that they had there.
"""

import math
import struct
from typing import Any

import numpy as np

from dedup.index.redis.reading import Numbers, Reading
from dedup.index.redis.record import PLACES

#: The clocks of crawlers that share an index are expected to differ by no more seconds than this.
SKEW = 86_400
#: Where this many times as many numbers as pages would be asked for, the names of all keys are read instead.
SPARSE = 4
#: This many numbers in a row are looked at to find one that a page has.
WINDOW = 100
_FILED = PLACES["filed"], PLACES["filed"] + 3


async def numbers_of(reading: Reading, run: str, before: float) -> Numbers:
    """Returns the numbers of all pages of a run, or filed ``before`` a time, ascending; some may be other pages', or nobody's."""
    if not run and before == math.inf:
        return await reading.numbers()
    keys = reading.keys
    given, released, began, added, end = await reading.server.ask(
        [
            ("GET", keys.sequence),
            ("GET", keys.released),
            ("HGET", keys.began, run),
            ("HGET", keys.began, "added"),
            ("ZSCORE", keys.runs, run),
        ]
    )
    last, came = _number(given), _number(added)
    first, high = 1, last
    if run:
        first += _number(began)
        ended = -float(end or 0)
        if 0 < ended <= last:
            high = max(int(ended), came if first == 1 else 0)
    if before < math.inf:
        high = min(high, max(came, await _filed_before(reading, before + SKEW, high)))
    if high - first >= SPARSE * max(1, last - _number(released)):
        numbers = await reading.numbers()
        return numbers[(numbers >= first) & (numbers <= high)]
    return np.arange(first, high + 1, dtype=np.uint64)


async def _filed_before(reading: Reading, moment: float, last: int) -> int:
    """Returns a number beyond which no page was filed before a moment, as far as pages were filed in the order of numbers.

    By halves: some twenty round trips of a million numbers.
    """
    first = 0
    while first < last:
        middle = (first + last + 1) // 2
        asked = [
            ("GETRANGE", reading.keys.page(number), *_FILED)
            for number in range(middle, min(middle + WINDOW, last + 1))
        ]
        found = [octets for octets in await reading.server.ask(asked) if octets and len(octets) == 4]
        if found and struct.unpack(">I", found[0])[0] >= moment:
            last = middle - 1
        else:
            first = middle
    return first


def _number(octets: Any) -> int:
    """Returns a number that is stored; 0, which bounds nothing, if it can't be read."""
    return int(octets) if octets and octets.isdigit() else 0
