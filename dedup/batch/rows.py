"""Rows of data, judged one after another: of equal ones that are too short to be judged, one is kept, too."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, Unpack, cast

from dedup.batch.pages import Pages, Settings, open
from dedup.batch.turns import Keep, turns
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict
from dedup.index.entry import scope_mask

T = TypeVar("T")


def is_short(made: Fingerprint | None) -> bool:
    """Returns whether a row is too short to be judged, but has words by which it is known to be equal."""
    return made is not None and made.reason == "short" and made.digest != 0


class Rows:
    """Judges rows by their numbers."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._short: dict[int, tuple[int, str]] = {}  # the first of each digest: its number and its URL

    def judge(self, number: int, made: Fingerprint, url: str) -> Verdict:
        """Judges a row and keeps it, unless it is a near-duplicate of a kept one."""
        if is_short(made):
            key = made.digest ^ scope_mask(self._pages.settings.scope, url)
            first, of = self._short.setdefault(key, (number, url))
            if first != number:
                simhash = made.simhash
                return Verdict("duplicate", of, 0, 1.0, of_simhash=simhash, rule="exact", of_id=str(first))
        return self._pages.add(str(number), fingerprint=made, url=url)


def unique(
    items: Iterable[T],
    *,
    html: Callable[[T], bytes | str] | None = None,
    text: Callable[[T], str] | None = None,
    tokens: Callable[[T], Iterable[str]] | None = None,
    url: Callable[[T], str] | None = None,
    fetched: Callable[[T], Any] | None = None,
    keep: Keep | Callable[[T], Any] = "first",
    **settings: Unpack[Settings],
) -> Iterator[T]:
    """Yields the items that are no near-duplicates of one that is kept, in their order.

    Functions say what of an item is its HTML, its text, its tokens, and its URL; without any, an item is text.  What
    can't be judged is kept, but of equal texts that are too short for that, one is.  Takes about 1 kB for each item that is kept.

    The first of items that are alike is kept, and each is yielded as soon as that is known.  `dedup.batch.turns` says what
    else ``keep`` may be, which needs all items, and 1 kB for each, before the first is told: a function gives a key, such
    as a score, and of those alike the item of the greatest is kept.

    >>> from operator import itemgetter
    >>> from dedup import unique
    >>> rows = [{"n": n, "body": "one and the same story " * 8 + mark} for n, mark in enumerate(["", "...", "<b>"])]
    >>> [row["n"] for row in unique(rows, text=itemgetter("body"))]
    [0]
    >>> [row["n"] for row in unique(rows, html=lambda row: row["body"] + str(row["n"]), min_tokens=100)]
    [0, 1, 2]
    """
    if (
        isinstance(items, str | bytes | Mapping)
        or hasattr(items, "columns")
        or not isinstance(items, Iterable)
    ):
        raise TypeError(
            f"items is a {type(items).__name__}; allowed: a list or another iterable of items, such as a column"
        )
    functions = {"html": html, "text": text, "tokens": tokens, "url": url, "fetched": fetched}
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(
                f"{name} is {function!r}; it has to be a function of an item, such as operator.itemgetter({function!r})"
            )
    if html is None and tokens is None and text is None:
        text = cast(Callable[[T], str], lambda item: item)
    pages = open(**settings)

    def made(item: T) -> Fingerprint:
        given = {"html": html and html(item), "text": text and text(item), "tokens": tokens and tokens(item)}
        return pages.fingerprint(**given, url=url(item) if url else "")  # type: ignore[arg-type]

    rows = Rows(pages)

    def is_kept(number: int, item: T, found: Fingerprint) -> bool:
        return rows.judge(number, found, url(item) if url else "").kept

    def kept() -> Iterator[T]:
        with pages:
            if keep == "first" and fetched is None:
                yield from (item for n, item in enumerate(items) if is_kept(n, item, made(item)))
                return
            every = list(items)
            prints = [*map(made, every)]
            wanted = map(keep, every) if callable(keep) else keep
            order = turns(prints, wanted, fetched and map(fetched, every))
            chosen = {n for n in order if is_kept(n, every[n], prints[n])}
            yield from (item for n, item in enumerate(every) if n in chosen)

    return kept()
