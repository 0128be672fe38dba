"""What was measured where all pages of a site share one frame: a large menu around few words of their own.

By benchmarks/one_chrome.py, at a load of 20 to 40 on two cores; of two recalls, the lower one.
"""

from typing import NamedTuple


class Crowd(NamedTuple):
    """What was measured amid a number of kept pages."""

    recall: float  #: the share of copies that were found
    file: float  #: ms of CPU of a claim in a file
    redis: float  #: ms of CPU of a claim, of the server


#: By the number of kept pages.
CROWDS = {1_000: Crowd(0.990, 0.9, 0.7), 10_000: Crowd(0.983, 1.0, 0.9), 100_000: Crowd(0.980, 1.1, 0.9)}


def recall_among(pages: int) -> tuple[int, float]:
    """Returns the nearest number of pages that was measured, upwards if there is one, and the recall there.

    >>> recall_among(1_001), recall_among(10**7)
    ((10000, 0.983), (100000, 0.98))
    """
    size = next((size for size in CROWDS if size >= pages), max(CROWDS))
    return size, CROWDS[size].recall
