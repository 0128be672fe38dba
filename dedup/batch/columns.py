"""Columns of data frames: which rows are near-duplicates of others.

Of pandas, polars, pyarrow and their like, through narwhals (the extra ``frames``); of lists and numpy arrays without.
A column is read row by row where it is, and never copied as a whole.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Unpack

import numpy as np

from dedup.batch.hamming import clusters as near_clusters
from dedup.batch.hamming import near_pairs
from dedup.batch.pages import Pages, Settings, open
from dedup.batch.pairs import Clusters, Numbers
from dedup.batch.rows import Rows, is_short
from dedup.batch.turns import is_missing, turns
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict

#: Pairs whose sketches are compared at once.
PAIRS = 1 << 16


class Columns(Settings, total=False):
    """What `duplicated` and its like are given: columns of one length, and the settings of `dedup.open`.

    One of ``html``, ``text``, which may be the first argument, and ``tokens``; the ``url`` of each row if they have any; see `dedup.Pages.add`.  Rows without
    a value, and those that can't be judged, are no duplicates, unless they are short and equal.  Of rows that are alike, the first is kept, unless
    ``keep``, which may be a column, and ``fetched`` say otherwise: see `dedup.batch.turns`.  All fingerprints
    are in memory at once, 1 kB for each row.
    """

    html: Any
    text: Any
    tokens: Any
    url: Any
    fetched: Any
    keep: Any


#: What `duplicates` says of each, and of what kind it is.
SCORES = {"rule": str, "distance": np.int64, "resemblance": np.float64}
#: The names of columns.
COLUMNS = Columns.__annotations__.keys() - Settings.__annotations__.keys()


def duplicated(texts: Any = None, /, **given: Unpack[Columns]) -> Any:
    """Returns which rows are near-duplicates of a row that is kept: a column of bools, of the kind of the one that is given.

    >>> from dedup import duplicated
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> duplicated(text=[story, "Not found", None, story.upper()])
    array([False, False, False,  True])
    """
    table = _Table(texts, given)
    rows = table.originals()
    return table.page.like(rows != np.arange(len(rows)))


def originals(texts: Any = None, /, **given: Unpack[Columns]) -> Any:
    """For each row, the number (from 0) of the row that it duplicates, or its own number if it duplicates none.

    The column is of the same kind as that of `duplicated`, which has the arguments and errors.

    >>> from dedup import originals
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> originals(text=[story, "Not found", None, story.upper()])
    array([0, 1, 2, 0])
    >>> originals(text=[story, "Not found", None, story.upper() + " again"], keep="longest")
    array([3, 1, 2, 3])
    """
    table = _Table(texts, given)
    return table.page.like(table.originals())


def duplicates(texts: Any = None, /, *, id: Any = None, **given: Unpack[Columns]) -> Any:
    """Returns the near-duplicates and their scores, a row each: a frame of the library of the column, or a dict of arrays.

    ``row`` and ``of`` are numbers of rows, of the near-duplicate and of the kept one; ``rule``, ``distance`` and
    ``resemblance`` are those of the `dedup.Verdict`; with the column ``id``, ``id`` and ``of_id`` say the same by its values.

    >>> from dedup import duplicates
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> found = duplicates(text=[story, "Not found", story + "Yes!"], id=["a", "b", "c"])
    >>> {name: column.tolist() for name, column in found.items()}
    {'row': [2], 'of': [0], 'rule': ['simhash'], 'distance': [...], 'resemblance': [0.9...], 'id': ['c'], 'of_id': ['a']}
    """
    table = _Table(texts, given)
    found = sorted((n, v) for n, v in table.verdicts() if v.of_id is not None)
    rows = np.array([n for n, _ in found], np.int64)
    of = np.array([v.of_id for _, v in found], np.int64)
    told = {
        name: np.array([getattr(v, name) for _, v in found], None if found else kind)
        for name, kind in SCORES.items()
    }
    values = {"row": rows, "of": of, **told}
    if id is not None:
        ids = table.ids(id)
        values |= {"id": ids[rows], "of_id": ids[of]}
    return table.page.frame(values)


def clusters(texts: Any = None, /, *, id: Any = None, **given: Unpack[Columns]) -> Any:
    """For each row, the number of the first row that belongs with it, or its own number if none does.

    With the column ``id``, it is the id of that row.

    Rows belong together that are candidates and resemble each other enough, as `dedup.Detector.compare` finds, and, chain
    by chain, all that belong with these.  So a cluster may have several rows that are kept: resemblance is not
    transitive, and pages of one host have to match in what is their own to be dropped.  With ``keep``, a cluster
    is named by the row that it asks for.

    Uses 600 bytes for each row; raises `DedupError` if there are too many pairs for 1 GiB.

    >>> from dedup import clusters
    >>> story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    >>> clusters(text=[story, "Not found", None, story.upper()])
    array([0, 1, 2, 0])
    >>> clusters(text=[story, "Not found", None, story.upper()], id=["a", "b", "c", "d"])
    array(['a', 'b', 'c', 'a'], dtype=object)
    """
    table = _Table(texts, given)
    ids = None if id is None else table.ids(id)
    with table.opened() as pages:
        prints = [made for _, made in table.prints(pages)]
        order = np.array(table.turns(prints), np.int64)
        judged = order[[_is_known(prints[n]) for n in order.tolist()]]
        lowest = _joined(pages.detector, [prints[n] for n in judged.tolist()])
    found = np.arange(len(prints))
    found[judged] = judged[lowest]
    return table.page.like(found if ids is None else ids[found])


def _joined(detector: Detector, prints: Sequence[Fingerprint]) -> Numbers:
    """For each page, the first one that belongs with it; copies are compared once."""
    _, first, copies = np.unique([made.digest for made in prints], return_index=True, return_inverse=True)
    joined = Clusters(len(prints))
    joined.join(np.arange(len(prints)), first[copies])
    first = first[[not is_short(prints[n]) for n in first]]
    contents = [prints[n] for n in first]
    if not contents:
        return joined.lowest()
    words = detector.sketcher.words(made.sketch for made in contents)
    for keys in np.array([made.keys for made in contents], np.uint64).reshape(len(contents), -1).T:
        left, right, _ = near_pairs(keys, detector.radius)
        for at in range(0, len(left), PAIRS):
            a, b = left[at : at + PAIRS], right[at : at + PAIRS]
            alike = detector.sketcher.estimate(*detector.sketcher.match_counts(words[a], words[b]))
            near = alike >= detector.min_resemblance
            joined.join(first[a[near]], first[b[near]])
    return joined.lowest()


def _related(detector: Detector, prints: Sequence[Fingerprint | None]) -> set[int]:
    """Returns the rows that have a key near that of another row: any other can be no duplicate, and have none."""
    filed = {n: made for n, made in enumerate(prints) if made and _is_known(made) and made.keys}
    found = np.zeros(len(filed), np.bool_)
    keys = ((made.digest, made.markup, *made.keys) for made in filed.values())
    for place, column in enumerate(zip(*keys, strict=True)):
        near = near_clusters(column, detector.radius) if place > 1 and detector.radius else column
        _, at, sizes = np.unique(near, return_inverse=True, return_counts=True)
        found |= sizes[at] > 1
    return {n for n, is_near in zip(filed, found.tolist(), strict=True) if is_near}


def _is_known(made: Fingerprint | None) -> bool:
    return made is not None and (made.reason is None or is_short(made))


class _Column:
    """A column of any library."""

    def __init__(self, name: str, given: Any) -> None:
        self._name = name
        self._is_plain = isinstance(given, list | tuple | np.ndarray)
        self._is_array = type(given).__module__.partition(".")[0] == "pyarrow" and hasattr(given, "buffers")
        self._values = given if self._is_plain else self._series(given)

    def _series(self, given: Any) -> Any:
        try:
            import narwhals.stable.v2 as nw
        except ImportError:
            raise ImportError(
                "columns of data frames need narwhals: pip install 'shingleback[frames]'"
            ) from None
        if self._is_array:  # narwhals knows those in chunks only
            import pyarrow as pa

            given = pa.chunked_array([given])
        try:
            return nw.from_native(given, series_only=True)
        except TypeError:
            kind = type(given).__name__
            allowed = "a column of pandas, polars or pyarrow, a numpy array or a list"
            raise TypeError(f"{self._name} is a {kind}; allowed: {allowed}") from None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        """Yields the values, None where there is none."""
        nulls = repeat(False) if self._is_plain else self._values.is_null()
        for value, is_null in zip(self._values, nulls, strict=False):
            yield None if is_null or is_missing(value) else value

    def like(self, values: Any) -> Any:
        """Returns a column of the same kind, with the same index if it has one, of other values."""
        if self._is_plain:
            return values
        import narwhals.stable.v2 as nw

        values = values.tolist() if values.dtype == object else values
        made = nw.new_series(self._values.name, values, backend=self._values.implementation)
        index = nw.maybe_get_index(self._values)
        found = (made if index is None else nw.maybe_set_index(made, index=index)).to_native()
        return found.combine_chunks() if self._is_array else found

    def frame(self, values: dict[str, Any]) -> Any:
        """Returns a frame of the same library, of other columns."""
        if self._is_plain:
            return values
        import narwhals.stable.v2 as nw

        return nw.from_dict(values, backend=self._values.implementation).to_native()


class _Table:
    """The columns that are given, as a table."""

    def __init__(self, texts: Any, given: Columns) -> None:
        every: dict[str, Any] = dict(given)
        columns = {name: every.pop(name, None) for name in COLUMNS}
        self._settings = every
        kinds = [kind for kind in ("html", "text", "tokens") if columns[kind] is not None]
        if texts is not None:
            columns["text"] = texts
            kinds.append("text")
        if len(kinds) != 1:
            raise TypeError(f"of html, text and tokens, {len(kinds) or 'none'} are given; give one")
        self._kind = kinds[0]
        self.page = _Column(self._kind, columns[self._kind])
        self._url, self._fetched = (
            None if (found := columns[name]) is None else self.column(name, found)
            for name in ("url", "fetched")
        )
        keep = "first" if columns["keep"] is None else columns["keep"]
        self._keep = keep if isinstance(keep, str) else self.column("keep", keep)

    def column(self, name: str, given: Any) -> _Column:
        """Another column of as many rows."""
        found = _Column(name, given)
        if len(found) != len(self.page):
            raise TypeError(f"{self._kind} has {len(self.page)} rows, and {name} has {len(found)}")
        return found

    def ids(self, given: Any) -> Any:
        """Returns what the rows are called: an array of objects, shape (n,)."""
        return np.fromiter(self.column("id", given), object, len(self.page))

    def opened(self) -> Pages:
        """Returns a new index of pages."""
        return open(**self._settings)

    def prints(self, pages: Pages) -> Iterator[tuple[str, Fingerprint | None]]:
        """Yields the URL and the fingerprint of each row; None for one without a value."""
        urls = repeat(None) if self._url is None else self._url
        for row, (value, url) in enumerate(zip(self.page, urls, strict=False)):
            try:
                made = None if value is None else pages.fingerprint(**{self._kind: value}, url=url or "")
            except TypeError as error:
                raise TypeError(f"row {row}: {error}") from None
            yield url or "", made

    def turns(self, prints: Sequence[Fingerprint | None]) -> list[int]:
        """Returns the rows in the order in which they are judged."""
        return turns(prints, self._keep, self._fetched)

    def verdicts(self) -> Iterator[tuple[int, Verdict]]:
        """Yields the rows that may be like another one, in the order in which they are judged."""
        with self.opened() as pages:
            prints = [*self.prints(pages)]
            made = [each for _, each in prints]
            some = _related(pages.detector, made) if self._url is None else set(range(len(made)))
            judged = Rows(pages)
            for n in self.turns(made):
                url, page = prints[n]
                if page is not None and n in some:
                    yield n, judged.judge(n, page, url)

    def originals(self) -> Numbers:
        """For each row, the number of the one that it duplicates, or its own."""
        rows = np.arange(len(self.page))
        for n, verdict in self.verdicts():
            rows[n] = n if verdict.of_id is None else int(verdict.of_id)
        return rows
