"""Whose turn it is: of pages that are alike, the one that is judged first is kept.

>>> from dedup import Detector
>>> pages = [Detector().fingerprint_text(text) for text in ("a", "a b c", "a b")]
>>> turns(pages), turns(pages, "longest"), turns(pages, [2.5, None, 7])
([0, 1, 2], [1, 2, 0], [2, 0, 1])
>>> turns(pages, "newest", ["2026-11-02", "2026-11-01", "2026-11-23"])
[2, 0, 1]
"""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import Any, Literal, get_args

from dedup.fingerprint.fingerprint import Fingerprint

Keep = Literal["first", "longest", "newest"]

#: What pandas has in the place of a value that is missing, by the names of their types.
_MISSING = ("NAType", "NaTType")


def is_missing(value: object) -> bool:
    """Returns whether a value stands for none: None, NaN, and what pandas has.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(0)
    (True, True, False, False)
    """
    return value is None or (isinstance(value, float) and isnan(value)) or type(value).__name__ in _MISSING


def turns(
    prints: Sequence[Fingerprint | None],
    keep: str | Iterable[Any] = "first",
    fetched: Iterable[Any] | None = None,
) -> list[int]:
    """Returns the places of pages in the order in which they are judged, and returns those of equal rank stay in their order.

    ``keep`` says which of those alike comes first: the "first", that was ``fetched`` first if that is known; the
    "longest", of most words; the "newest", that was fetched last; or that of the greatest of some keys, one for each
    page.  Pages without a time or a key, or whose key is NaN, come last.  Raises `ValueError` for another word, and if nobody knows which
    is the newest.
    """
    if isinstance(keep, str) and keep not in get_args(Keep):
        raise ValueError(f"keep is {keep!r}; allowed: {', '.join(get_args(Keep))}, or a key for each page")
    if keep == "newest" and fetched is None:
        raise ValueError(
            "keep is 'newest', but it is not said when the pages were fetched; give fetched, too"
        )
    keys: Iterable[Any] | None = keep if not isinstance(keep, str) else fetched
    if keep == "longest":
        keys = [page and page.tokens for page in prints]
    if keys is None:
        return list(range(len(prints)))
    known = [(key, place) for place, key in enumerate(keys) if not is_missing(key)]
    last = set(range(len(prints))) - {place for _, place in known}
    known.sort(key=lambda each: each[0], reverse=keep != "first")  # which is stable, also in reverse
    return [place for _, place in known] + sorted(last)
