"""Variants of a URL: they differ only in what doesn't matter, as the site itself says by the header No-Vary-Search.

They are near-duplicates of a kept page that are known before they are downloaded.  As with any drop, if the kept page
fails or turns out to be a wall, its variants are fetched after all.
"""

import logging
from dataclasses import replace
from typing import NamedTuple

from xxhash import xxh3_128_intdigest

from dedup.droplog.log import DropLog, as_line
from dedup.droplog.record import Record
from dedup.errors import DedupError
from dedup.filter.bodies import without_query
from dedup.filter.noise.likeness import still_kept
from dedup.filter.recording import make_record
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Outcome, Visit
from dedup.filter.watch.doubts import Watch
from dedup.filter.watch.drop import Drop
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index
from dedup.latest import PAGES, Latest
from dedup.page.variance import Variance, read_variance
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: The rule of such drops.
RULE = "no_vary_search"


class _Original(NamedTuple):
    page_id: str
    url: str
    fingerprint: Fingerprint


class Variants:
    """Knows the variants of the pages that one crawl has kept."""

    def __init__(self, index: Index, log: DropLog, watch: Watch, stats: Stats) -> None:
        self._index = index
        self._log = log
        self._watch = watch
        self._stats = stats
        self._variances = Latest[str, Variance]()  # what a path has said last
        self._pages = Latest[int, _Original](PAGES)

    def __bool__(self) -> bool:
        """Returns whether there may be any."""
        return bool(self._variances)

    def keep(self, visit: Visit, outcome: Outcome, header: bytes) -> None:
        """A page was kept that had this header; it is filed unless it could not be judged."""
        if outcome.verdict.status not in {"new", "same"}:
            return
        variance = read_variance(header.decode("latin-1"))
        if variance is None or (key := _key(visit, variance)) is None:
            return
        self._variances[without_query(visit.url)] = variance
        found = self._pages.get(key)
        if found is None or found.page_id == visit.page_id:
            self._pages[key] = _Original(visit.page_id, visit.url, outcome.fingerprint)

    async def drop(self, visit: Visit) -> Record | None:
        """Returns the record of a page that need not be fetched, since it is a variant of a kept one; else None."""
        if (kept := self._find(visit)) is None:
            return None
        try:
            found = await still_kept(self._index, kept.page_id, kept.fingerprint.digest)
            if found is None:
                return None
            _, copied = found
            is_done = copied.done and self._index.is_own(copied.of_run)
            if not (is_done or self._watch.may_doubt(visit.page_id, copied.of_run)):
                return None
            verdict = replace(copied, of=kept.url, distance=0, resemblance=1.0, rule=RULE, judge=RULE)
            record = make_record(visit, verdict, kept.fingerprint, "drop", "", None)
            self._log.write(record)
        except (DedupError, OSError, ValueError) as error:
            logger.debug("Fetched: %s: %s", inert(visit.url), error)
            return None
        count(self._stats, RULE)
        drop = Drop(visit.page_id, visit.url, visit.origin, verdict.of_simhash, line=as_line(record))
        self._watch.add(kept.page_id, drop, certain=is_done)
        return record

    def _find(self, visit: Visit) -> _Original | None:
        variance = self._variances.get(without_query(visit.url))
        key = variance and _key(visit, variance)
        kept = None if key is None else self._pages.get(key)
        return kept if kept is not None and kept.page_id != visit.page_id else None


def _key(visit: Visit, variance: Variance) -> int | None:
    """Returns the key that variants share if their requests carry the same; None for a query that can't be read."""
    path, _, query = visit.url.partition("#")[0].partition("?")
    if (matter := variance.matter(query)) is None:
        return None
    names = variance.only, variance.ordered, sorted(variance.names)
    return xxh3_128_intdigest(repr((path, matter, names, visit.carried)).encode("utf-8", "surrogatepass"))
