"""What an index does with pages that it meets in some order, by the settings of a project."""

import asyncio
import random
from collections.abc import Sequence
from typing import NamedTuple

from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.index import Index, open_index

__all__ = ["Replay"]


class Replay(NamedTuple):
    """An index of some settings, made anew for each order."""

    address: str
    detector: Detector
    like: Index  #: one of the settings, which is not opened

    @property
    def has_chrome(self) -> bool:
        """Whether it looks at what is a page's own."""
        return self.like.hosts is not None

    def __call__(
        self, fingerprints: Sequence[Fingerprint], urls: Sequence[str], order: Sequence[int]
    ) -> list[int]:
        """Per page: the number of the page that it duplicates, or -1."""
        return asyncio.run(self._claim(fingerprints, urls, order))

    async def _claim(
        self, fingerprints: Sequence[Fingerprint], urls: Sequence[str], order: Sequence[int]
    ) -> list[int]:
        hosts = self.like.hosts
        own = {"chrome": False} if hosts is None else {"min_own": hosts.min_own}
        namespace = f"evaluate-{random.SystemRandom().getrandbits(48):x}"
        index = open_index(
            self.address, self.detector, namespace=namespace, expected_pages=self.like.expected_pages, **own
        )
        of = [-1] * len(fingerprints)
        for page in order:
            verdict = await index.claim(str(page), urls[page], fingerprints[page])
            if verdict.of_id is not None:
                of[page] = int(verdict.of_id)
        await index.close()  # releases the pending claims, so that no page stays in the index
        return of
