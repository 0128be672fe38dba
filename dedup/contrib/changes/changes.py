"""What has become of a site since an earlier crawl, by its history."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from dedup.contrib.changes.file import Crawl, History, Version
from dedup.filter.change import Change


def changes(history: History, since: int) -> Iterator[Change]:
    """Yields what differs between the site as the crawl of a number left it and as it was found last.  O(versions since).

    >>> import tempfile
    >>> from pathlib import Path
    >>> from dedup.filter.change import Said
    >>> with tempfile.TemporaryDirectory() as folder, History(Path(folder, "x")) as history:
    ...     for run, digest in enumerate((7, 8)):
    ...         history.begin(str(run))
    ...         history.write("http://a.org/", "changed" if run else "new", digest, edits=[Said("lamp", "lantern")])
    ...         history.end(is_whole=True)
    ...     [(change.word, change.url, change.edits[0].new) for change in changes(history, since=1)]
    [('changed', 'http://a.org/', 'lantern')]
    """
    later = "page IN (SELECT page FROM versions WHERE first > ?) ORDER BY page, first"
    for _, group in groupby(history.versions(later, since), key=lambda version: version.page):
        versions = [*group]
        before = [version for version in versions if version.first <= since]
        after = versions[len(before) :]
        was_here = bool(before) and before[-1].is_here
        yield from _changed(history, after) if was_here else _new(after)


def _new(after: Sequence[Version]) -> Iterator[Change]:
    """Yields the change of a page that was not there, and returns what moved to it is said of where it was."""
    last = after[-1]
    if last.is_here and "moved" not in {version.word for version in after}:
        yield Change("new", last.url, crawl=after[0].first)


def _changed(history: History, after: Sequence[Version]) -> Iterator[Change]:
    """Of a page that was there."""
    last = after[-1]
    if not last.is_here:
        to, seen = last, {last.url}
        while to.other and to.other not in seen and (following := history.last(to.other)):
            to = following
            seen.add(to.url)
            if to.is_here:
                is_redirected = last.word == "redirected"
                yield Change("moved", to.url, (), last.url, is_redirected, last.first)
                return
        yield Change("gone", last.url, crawl=last.first)
        return
    edits = [edit for version in after for edit in version.edits]
    if any(version.word in {"changed", "new"} for version in after):
        yield Change("changed", last.url, edits, crawl=last.first)
    if last.word == "hidden":
        yield Change("hidden", last.url, crawl=last.first)


def unseen(history: History, latest: Crawl) -> Iterator[str]:
    """Yields the pages that may still be there: the last crawl has not met them, and nothing says that they are gone."""
    return (version.url for version in history.lasting() if version.last < latest.number)
