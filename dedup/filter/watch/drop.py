"""What is remembered of a drop for as long as it may turn out wrong."""

import math
from typing import Any, NamedTuple

from dedup.index import Index, Verdict


class Drop(NamedTuple):
    """What is remembered of a page that was dropped."""

    page_id: str
    url: str
    origin: Any  #: what `Crawl` takes
    of_simhash: int | None = None  #: simhash of the kept page
    links: int = 0  #: that were not followed
    line: bytes = b""  #: what the drop log says of it
    #: The end of the lease of the kept page's run, as it was first seen after the drop.
    lease: float = math.inf


def is_certain(verdict: Verdict, index: Index) -> bool:
    """Returns whether the kept page that a verdict names is done, and can't be lost."""
    return verdict.done and (not index.is_shared or index.is_own(verdict.of_run))


def is_alive(lease: float, before: float) -> bool:
    """Returns whether a run has given a sign of life since its lease was first seen, or has finished."""
    return lease == math.inf or lease > before
