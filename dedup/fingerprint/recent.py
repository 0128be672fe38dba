"""A memory of fingerprints, so that pages that are served again and again cost no work."""

from collections import OrderedDict

from dedup.fingerprint.fingerprint import Fingerprint

__all__ = ["Recent"]

#: Fingerprints that a detector remembers, by the digest of their tokens (about 500 bytes each).
REMEMBERED = 4096


class Recent:
    """The fingerprints that were made last: pages that are served again and again cost no work.

    It is what changes in a detector that is frozen: how long an answer takes, never the answer.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, Fingerprint] = OrderedDict()

    def get(self, digest: int) -> Fingerprint | None:
        """The fingerprint of equal tokens, if it is remembered."""
        return self._known.get(digest)

    def add(self, digest: int, fingerprint: Fingerprint) -> None:
        """Remembers it, and forgets the one that was asked for least recently if there are too many."""
        self._known.pop(digest, None)  # step by step, none of which fails if another thread does the same
        self._known[digest] = fingerprint
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
