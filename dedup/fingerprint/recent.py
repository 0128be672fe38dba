"""A memory of fingerprints, so that pages that are served again and again cost no work."""

from collections import OrderedDict

from dedup.fingerprint.fingerprint import Fingerprint

__all__ = ["Recent"]

#: Fingerprints that a detector remembers, in about 4 kB each.
REMEMBERED = 4096
#: What tells pages apart of which something else is computed: a digest of the tokens, and a hash of what is chrome.
Key = tuple[int, int]


class Recent:
    """The fingerprints that were made last: pages that are served again and again cost no work.

    It is what changes in a detector that is frozen: how long an answer takes, never the answer.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Key, Fingerprint] = OrderedDict()

    def get(self, key: Key) -> Fingerprint | None:
        """The fingerprint of a page with the same key, if it is remembered."""
        return self._known.get(key)

    def add(self, key: Key, fingerprint: Fingerprint) -> None:
        """Remembers it, and forgets the one that was asked for least recently if there are too many."""
        self._known.pop(key, None)  # step by step, none of which fails if another thread does the same
        self._known[key] = fingerprint
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
