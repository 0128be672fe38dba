"""The site's own word: the canonical URL that a page names (``<link rel="canonical">``, RFC 6596).

A near-duplicate whose canonical URL is that of the kept page was rightly found; one that names itself says that
it is a page of its own.  So how often sites agree tells the precision of a crawl's verdicts, for nothing.  Nothing
is decided by it: templates often name a wrong page.
"""

from dedup.latest import PAGES, Latest
from dedup.page.preference import plain
from dedup.page.urls import digest


class Canonicals:
    """The canonical URLs of the pages of a crawl."""

    def __init__(self) -> None:
        self._kept = Latest[int, int](PAGES)  # whose canonical URL is another

    def keep(self, url: str, canonical: str) -> None:
        """Takes note of a page that is kept."""
        if canonical and (named := _key(canonical)) != (of := _key(url)):
            self._kept[of] = named

    def agrees(self, url: str, canonical: str, of: str) -> bool | None:
        """Returns whether a near-duplicate's canonical URL is that of the kept page; False if it is its own.

        None: it has none, or it names a third page, which says nothing of these two.

        >>> pages = Canonicals()
        >>> pages.keep("http://a.org/lamp?sort=price", "http://a.org/lamp")
        >>> [pages.agrees("http://a.org/print/lamp", named, "http://a.org/lamp?sort=price")
        ...  for named in ("https://A.org/lamp/", "http://a.org/print/lamp", "http://a.org/", "")]
        [True, False, None, None]
        """
        if not canonical:
            return None
        named, kept = _key(canonical), _key(of)
        if named in {kept, self._kept.get(kept)}:
            return True
        return False if named == _key(url) else None


def _key(url: str) -> int:
    """Returns a digest of a URL without what doesn't tell pages apart."""
    return digest(plain(url))
