"""What the requests of pages carried.  Equal pages are kept if their requests carried different data of the user's."""

from dedup.filter.visit import Visit
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index.entry import scope_mask
from dedup.latest import Latest


class Cargoes:
    """What the first requests for the contents of one crawl carried, as digests."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._by_content = Latest[int, int]()

    def differ(self, visit: Visit, fingerprint: Fingerprint) -> bool:
        """Returns whether the first page of this content in the same scope was asked for with other data."""
        content = fingerprint.digest ^ scope_mask(self._scope, visit.url)
        carried = self._by_content.get(content, visit.carried)
        self._by_content[content] = carried
        return carried != visit.carried
