"""What an index does with pages that it meets in some order, by the settings of a project."""

import asyncio
import random
from collections.abc import Sequence
from typing import NamedTuple

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import open_index
from dedup.settings import IndexSettings


class Replay(NamedTuple):
    """An index of some settings, made anew for each order."""

    address: str
    detector: Detector
    settings: IndexSettings

    def __call__(
        self, fingerprints: Sequence[Fingerprint], urls: Sequence[str], order: Sequence[int]
    ) -> list[int]:
        """Per page: the number of the page that it duplicates, or -1."""
        return asyncio.run(self._claim(fingerprints, urls, order))

    async def _claim(
        self, fingerprints: Sequence[Fingerprint], urls: Sequence[str], order: Sequence[int]
    ) -> list[int]:
        namespace = f"evaluate-{random.SystemRandom().getrandbits(48):x}"
        index = open_index(self.address, self.detector, namespace=namespace, **vars(self.settings))
        of = [-1] * len(fingerprints)
        for page in order:
            verdict = await index.claim(str(page), urls[page], fingerprints[page])
            if verdict.of_id is not None:
                of[page] = int(verdict.of_id)
        await index.close()  # releases the pending claims, so that no page stays in the index
        return of
