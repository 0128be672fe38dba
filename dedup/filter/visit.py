"""What the filter and a crawl exchange: visits, outcomes, and what the filter asks of the crawl."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from lxml import etree

from dedup.droplog.record import Record
from dedup.errors import DedupError
from dedup.filter.bodies import Body
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict
from dedup.page.charset import charset, decode
from dedup.page.html import Page, parse
from dedup.page.links import addresses
from dedup.settings import Action

if TYPE_CHECKING:  # few crawls keep a history
    from dedup.filter.change import Change


@dataclass(frozen=True, slots=True)
class Visit:
    """A page as a crawl met it."""

    page_id: str  #: what the index knows it by: the same whenever the same page is fetched
    url: str
    read: Callable[[], Page]  #: gives its tokens
    referer: str | None = None
    depth: int = 0  #: links from a seed
    size: int = 0  #: bytes of its body
    is_seed: bool = False  #: the crawl begins with it, and reaches everything from there: never dropped
    action: Action | None = None  #: what is to be done with it if it is a near-duplicate; None: as ever
    asked: str = ""  #: the URL that was asked for, if redirects led from there to here
    links: Callable[[], Sequence[str]] = tuple  #: gives the URLs that it links to
    origin: Any = None  #: what `Crawl.fetch_again` takes; None: the page can't be fetched again
    fingerprint: Fingerprint | None = None  #: if it was made already, elsewhere
    carried: int = 0  #: stands for what its request carries: pages are compared only where it is equal
    kind: str | None = None  #: what makes its items, such as a callback, where `Filter.gave` is told of them
    #: Gives the bytes that are read, if nothing else is; of a body that was met before, `read` is called only in need.
    body: Callable[[], Body | None] = lambda: None

    @classmethod
    def of_html(
        cls,
        html: bytes | str,
        url: str,
        detector: Detector,
        *,
        encoding: str | None = None,
        asked: str = "",
        **fields: Any,
    ) -> Self:
        """Returns a page of HTML that was fetched from a URL, which is its page id; ``detector`` is that of the index.

        ``encoding`` is the character set that the server named, if it named one.  ``asked`` is the URL that was asked
        for, be it this one or not.  The other keywords are fields of a visit.

        >>> visit = Visit.of_html("<p>the <a href=lamp>lamp</a>", "http://a.org/", Detector())
        >>> visit.page_id, visit.read().tokens, visit.links()
        ('http://a.org/', ['the', '/lamp', 'lamp'], ['http://a.org/lamp'])
        """
        page = _Markup(html, url, encoding, detector)
        fields["asked"] = asked if asked != url else ""
        return cls(url, url, page.read, size=len(html), links=page.links, body=page.body, **fields)


@dataclass
class _Markup:
    """HTML, which is decoded and parsed when it is first needed, and only once."""

    html: bytes | str
    url: str
    encoding: str | None
    detector: Detector

    @cached_property
    def _text(self) -> str:
        return decode(self.html, self.encoding)

    @cached_property
    def _root(self) -> etree._Element:
        return parse(self._text)

    def read(self) -> Page:
        return self.detector.read(self._text, self.url, lambda _: self._root)

    def links(self) -> list[str]:
        return addresses(self._root, self.url)

    def body(self) -> Body | None:
        """Returns its bytes, if it is certain how they are decoded."""
        codec = charset(self.encoding or "")
        if not codec or isinstance(self.html, str):
            return None
        return Body(self.html, codec.replace("_", "-"), "html")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a page."""

    action: Action | Literal["keep"]  #: "keep" unless it is a near-duplicate
    verdict: Verdict
    fingerprint: Fingerprint
    page: Page | None  #: None: it was not read, since its body was met before
    record: Record | None  #: what the drop log says of it; there is one for each near-duplicate
    #: Whether the links of a near-duplicate are to be followed all the same, and its items left out.
    leads_on: bool = False
    unchanged: bool = False  #: in an incremental crawl: an earlier one has handed over this very content
    change: "Change | None" = None  #: what has become of the page since an earlier crawl, if that is kept


class Answer(NamedTuple):
    """What an address answers."""

    status: int
    url: str  #: where redirects have led
    page: Page | None  #: None: it is no page that is judged
    may_be_shell: bool = False  #: scripts may fill the page


class Crawl:
    """What the filter asks of the crawl that it works for.

    This base class suits pages that are replayed, and can't be fetched again.
    """

    #: The depth whose links are not followed any more; 0 = there is none.
    depth_limit = 0
    fetches = False  #: whether pages can be fetched

    def stop(self, error: DedupError) -> None:
        """The filter can't go on, and the crawl is to end.  Called once; what it raises, `judge` raises."""
        raise error

    def is_closing(self) -> bool:
        """Returns whether the crawl is about to end, so that nothing should wait for the index any more."""
        return False

    def may_fetch_again(self, origin: Any) -> bool:
        """Returns whether asking once more for a page does no harm, given `Visit.origin`."""
        return True

    async def fetch(self, url: str) -> Page | None:
        """Fetches a page for the audit; returns None if it can't be had.  It may raise anything."""
        return None

    def manner(self, origin: Any) -> Any:
        """Returns with what a page was asked for beside its URL, given `Visit.origin`; None if it may not be asked for again.

        It is held for as long as the page may be asked for again.
        """
        return ()

    async def fetch_in(self, manner: Any, url: str, origin: Any) -> Page | None:
        """Fetches the page at a URL once more, in the `manner` of the page that was kept there.

        ``origin`` is that of the page which is compared with it.  It may raise anything.
        """
        return await self.fetch(url)

    async def ask(self, url: str, origin: Any) -> Answer | None:
        """Asks an address in the manner of a page of its host, given `Visit.origin`; None if it can't be asked.  It raises
        nothing."""
        return None

    def has_ended(self) -> bool:
        """Returns whether no other worker of the crawl has anything left to do, asked when this one has not."""
        return True

    def is_own(self, url: str) -> bool:
        """Returns whether this worker of the crawl is the one that asks the host of a page."""
        return True

    def wake(self) -> None:
        """What the filter was busy with at the end of the crawl is done."""

    def tell(self, change: "Change") -> None:
        """A page that the crawl has not met has moved, or is hidden, or gone."""

    def hold(self, origin: Any) -> None:
        """A page may have to be fetched once more, given `Visit.origin`, until `let_go` is called with it."""

    def let_go(self, origin: Any) -> None:
        """It need not."""

    def fetch_again(self, origin: Any, *, judged: bool = True) -> None:
        """A page was dropped for another that failed, or is a wall: it is to be fetched once more.

        If ``judged`` is false, keep the page and do not give it to the filter: it can't be checked any more whether the
        drop was right.
        """
