"""Columns of data frames: which rows are near-duplicates of a row above.

Of pandas, polars, pyarrow and their like, through narwhals (the extra ``frames``); of lists and numpy arrays without.
A column is read row by row where it is, and never copied as a whole.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Unpack

import numpy as np

from dedup.batch.pages import Settings, open
from dedup.batch.pairs import Numbers

__all__ = ["duplicated", "originals"]


def duplicated(
    *,
    html: Any = None,
    text: Any = None,
    tokens: Any = None,
    url: Any = None,
    **settings: Unpack[Settings],
) -> Any:
    """Which rows are near-duplicates of a row above: a column of bools, of the kind of the one that is given.

    One column is given, of ``html``, ``text`` or ``tokens``, and the ``url`` of each row if they have any; see
    `dedup.Pages.add`.  Rows without a value, and those that can't be judged, are no duplicates.

    >>> from dedup import duplicated
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> duplicated(text=[story, "Not found", None, story.upper()])
    array([False, False, False,  True])
    """
    rows, column = _judged({"html": html, "text": text, "tokens": tokens}, url, settings)
    return column.like(rows != np.arange(len(rows)))


def originals(
    *,
    html: Any = None,
    text: Any = None,
    tokens: Any = None,
    url: Any = None,
    **settings: Unpack[Settings],
) -> Any:
    """For each row, the number (from 0) of the row that it duplicates, or its own number if it duplicates none.

    The column is of the same kind as that of `duplicated`, which has the arguments and errors.

    >>> from dedup import originals
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> originals(text=[story, "Not found", None, story.upper()])
    array([0, 1, 2, 0])
    """
    rows, column = _judged({"html": html, "text": text, "tokens": tokens}, url, settings)
    return column.like(rows)


class _Column:
    """A column of any library."""

    def __init__(self, name: str, given: Any) -> None:
        self._name = name
        self._is_plain = isinstance(given, list | tuple | np.ndarray)
        self._values = given if self._is_plain else self._series(given)

    def _series(self, given: Any) -> Any:
        try:
            import narwhals.stable.v2 as nw
        except ImportError:
            raise ImportError(
                "columns of data frames need narwhals: pip install 'shingleback[frames]'"
            ) from None
        try:
            return nw.from_native(given, series_only=True)
        except TypeError:
            kind = type(given).__name__
            allowed = "a column of pandas, polars or pyarrow, a numpy array or a list"
            raise TypeError(f"{self._name} is a {kind}; allowed: {allowed}") from None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        """The values, None where there is none."""
        if self._is_plain:
            yield from self._values
            return
        for value, is_null in zip(self._values, self._values.is_null(), strict=True):
            yield None if is_null else value

    def like(self, values: Any) -> Any:
        """A column of the same kind, with the same index if it has one, of other values."""
        if self._is_plain:
            return values
        import narwhals.stable.v2 as nw

        made = nw.new_series(self._values.name, values, backend=self._values.implementation)
        index = nw.maybe_get_index(self._values)
        return (made if index is None else nw.maybe_set_index(made, index=index)).to_native()


def _judged(given: dict[str, Any], url: Any, settings: Settings) -> tuple[Numbers, _Column]:
    kinds = [kind for kind, column in given.items() if column is not None]
    if len(kinds) != 1:
        raise TypeError(f"of html, text and tokens, {len(kinds) or 'none'} are given; give one")
    kind = kinds[0]
    column = _Column(kind, given[kind])
    urls: Iterable[Any] = [None] * len(column)
    if url is not None:
        urls = _Column("url", url)
        if len(urls) != len(column):
            raise TypeError(f"{kind} has {len(column)} rows, and url has {len(urls)}")
    rows = np.arange(len(column))
    with open(**settings) as pages:
        for number, (value, address) in enumerate(zip(column, urls, strict=True)):
            if value is None:
                continue
            try:
                verdict = pages.add(str(number), **{kind: value}, url=address or "")
            except TypeError as error:
                raise TypeError(f"row {number}: {error}") from None
            if verdict.of_id is not None:
                rows[number] = int(verdict.of_id)
    return rows, column
