"""Pages one by one, without asyncio in sight: `dedup.open`."""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Self, TypedDict, Unpack

from msgspec.structs import replace

from dedup.batch.loop import AtOnce, Loop
from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.features import Features
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Entry, Index, Verdict, open_index
from dedup.index.entry import original_id
from dedup.settings import IndexSettings

#: What is added here belongs to one run, which goes on whenever the index is opened: what was added once counts
#: for good.  (A crawl meets what earlier crawls have filed anew.)
RUN = b"dedup.batch.page".hex()

#: What other libraries call a setting.
PEERS = {"threshold": "min_resemblance"}


class Settings(TypedDict, total=False):
    """The settings that a library can have, by their names in lower case; `dedup.settings` says what they do."""

    features: Features
    # Written by "make settings":
    max_distance: int
    min_resemblance: float
    shingle_size: int
    min_tokens: int
    keep_urls: bool
    ignore: tuple[str, ...]
    ignore_text: tuple[str, ...]
    hash_key: str
    method: str
    recall: float
    supershingle_size: int
    megashingle_size: int
    scope: str
    chrome: bool
    min_containment: float
    expected_pages: int
    lease: float
    tables: int | None


def open(address: str = "memory:", *, namespace: str = "dedup", **settings: Unpack[Settings]) -> "Pages":
    """Opens the index at an address: ``memory:``, ``file:PATH`` or Redis, as in `dedup.open_index`.

    Raises `SettingsError`, or what `Index.open` raises.

    >>> import dedup
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> with dedup.open("memory:", min_resemblance=0.8) as pages:
    ...     for name, text in [("a", story), ("b", story.upper()), ("c", "Not found")]:
    ...         verdict = pages.add(name, text=text)
    ...         print(name, verdict.status, verdict.kept, verdict.of_id, verdict.reason)
    a new True None None
    b duplicate False a None
    c unjudged True None short
    """
    unknown = [name for name in settings if name not in Settings.__annotations__]
    if unknown:
        near = get_close_matches(PEERS.get(unknown[0], unknown[0]), Settings.__annotations__, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(Settings.__annotations__)}"
        raise TypeError(f"there is no setting {unknown[0]}{hint}")
    given: dict[str, Any] = dict(settings)
    plan = {name: given.pop(name) for name in IndexSettings.settings() if name in given}
    return Pages(open_index(address, Detector(**given), namespace=namespace, run=RUN, **plan))


class Pages:
    """Pages that are kept, each with an id of the caller's; any thread may use it.

    What is added stays added, also if its program dies half a second later.  Whoever runs the same program again gets
    the same answers: "same" instead of "new", which is kept, too.
    """

    def __init__(self, index: Index) -> None:
        self.detector = index.detector
        self.settings = index.settings
        self._index = index
        self._loop = Loop() if index.persistent else AtOnce()
        self._abandoned = weakref.finalize(self, _abandon, self._loop, index)
        self._abandoned.atexit = False
        try:
            self._loop.run(index.open())
        except BaseException:
            with suppress(DedupError):  # the first error tells more
                self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self,
        page_id: str,
        *,
        html: bytes | str | None = None,
        text: str | None = None,
        tokens: Iterable[str] | None = None,
        fingerprint: Fingerprint | None = None,
        url: str = "",
        encoding: str | None = None,
    ) -> Verdict:
        """Judges a page and keeps it, unless it is a near-duplicate of a kept one.

        The page is given as ``html``, whose character set is ``encoding`` if that is known; as ``text``, plain or
        Markdown, in which nothing is taken for markup; as ``tokens``, words in their order; or as the ``fingerprint``
        that `fingerprint` made of it, maybe in another process.  Its links are resolved
        against its ``url``.  Pages of one host have to match in what is their own, beside its menus; pages without a
        URL are compared as a whole.

        The verdict's ``kept`` is what one mostly asks for; ``status`` is "new", "same" (this id was added before,
        whatever it said), "duplicate" (of the page ``of_id``, which is at ``of``) or "unjudged" (kept, but not filed:
        ``reason`` says why, such as "short").

        Raises TypeError for anything else than a page, and `IndexUnavailableError` if the store does not answer.
        """
        if not isinstance(page_id, str):
            raise TypeError(
                f"page_id is {page_id!r}; allowed: a str, such as its URL or the number of its row"
            )
        if fingerprint is None:
            fingerprint = self.fingerprint(html=html, text=text, tokens=tokens, url=url, encoding=encoding)
        elif not (html is text is tokens is None):
            raise TypeError("a fingerprint is given, and a page as well; give one of the two")
        return self._claim(page_id, url, fingerprint)

    def fingerprint(
        self,
        *,
        html: bytes | str | None = None,
        text: str | None = None,
        tokens: Iterable[str] | None = None,
        url: str = "",
        encoding: str | None = None,
    ) -> Fingerprint:
        """Returns the fingerprint of a page, which is not added."""
        given = [each is not None for each in (html, text, tokens)]
        if sum(given) != 1:
            raise TypeError(f"of html, text and tokens, {sum(given) or 'none'} are given; give one")
        if not isinstance(url, str):
            raise TypeError(f"url is {url!r}; allowed: a str")
        if html is not None:
            found = self.detector.fingerprint(html, url, encoding)
        elif text is not None:
            found = self.detector.fingerprint_text(text, url)
        else:
            found = self.detector.fingerprint_tokens(() if tokens is None else tokens)
        return found if url else replace(found, own=None)  # of no host, so nothing is its host's

    def _claim(self, page_id: str, url: str, fingerprint: Fingerprint) -> Verdict:
        async def claim() -> Verdict:
            verdict = await self._index.claim(page_id, url, fingerprint)
            if verdict.status in ("new", "same"):
                await self._index.confirm(page_id)
            return verdict

        return self._loop.run(claim())

    def forget(self, *page_ids: str) -> int:
        """Takes pages out, so that they can be added anew, with other content, and returns how many were kept here."""
        return self._loop.run(self._index.forget(page_ids))

    def __len__(self) -> int:
        """Returns how many pages are kept here, without those that can't be judged."""
        return self._loop.run(self._index.count())

    def __contains__(self, page_id: str) -> bool:
        return self._loop.run(self._index.find(page_id)) is not None

    def __iter__(self) -> Iterator[str]:
        """Yields the ids of these pages, in the order of their filing; of what is in Redis, without the last half second."""
        entries = self._index.entries()

        async def step() -> Entry | None:
            return await anext(entries, None)

        while (entry := self._loop.run(step())) is not None:
            yield original_id(entry.page_id)

    def __repr__(self) -> str:
        return f"<Pages in {self._index.where}: {self._index.describe()}>"

    def close(self) -> None:
        """Writes what was added, and lets go of the store.  Doing it twice is harmless."""
        if self._abandoned.detach() is None:
            return
        try:
            self._loop.run(self._index.close())
        finally:
            self._loop.close()


def _abandon(loop: Loop | AtOnce, index: Index) -> None:
    """Pages that nobody closed are gone: no thread may wait here, as it may be the loop's own."""
    loop.finish(index.close())
